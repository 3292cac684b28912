"""A kernel whose words no specification has is printed whole."""

from types import SimpleNamespace

import numpy as np
import pytest

from rnncli.mutants.edits import kernel_of
from rnncli.mutants.spelling import spelled_out
from rnncli.operators import operator_named
from rnncli.operators.attributes import complete
from rnncli.operators.tflite_rows import GATES
from rnncli.packs.pack import installed_packs, open_pack

TFLITE = open_pack(installed_packs()["tflite"])


def read(vector):
    """What the kernel reads of a case, as its first comment says."""
    values = complete(operator_named(vector.record.operator), vector.attributes)
    readings = vector.record.readings
    assert readings["preset"] == "tflm"
    tensors = {name: each.astype(np.int64) for name, each in vector.inputs.items()}
    x = tensors["input"] if values["time_major"] else np.swapaxes(tensors["input"], 0, 1)
    N, H = x.shape[1], len(tensors["input_gate_bias"])
    zero = np.full((N, H), values["output_state_zero_point"])
    product = values["hidden_scale"], values["hidden_zero_point"]
    is_own = readings["hidden-scale"] == "intermediate" and product[0] is not None
    made = product if is_own else (values["output_state_scale"], values["output_state_zero_point"])
    return SimpleNamespace(
        **{
            **values,
            **{name.replace("-", "_"): choice for name, choice in readings.items()},
            "hidden_scale": made[0],
            "hidden_zero_point": made[1] or 0,
        },
        input=x,
        output_state=tensors.get("output_state", zero),
        cell_state=tensors.get("cell_state", np.zeros((N, H), np.int64)),
        input_weights=np.stack([tensors[f"input_to_{gate}_weights"] for gate in GATES]),
        recurrent_weights=np.stack([tensors[f"recurrent_to_{gate}_weights"] for gate in GATES]),
        biases=np.stack([tensors[f"{gate}_gate_bias"] for gate in GATES]),
        bits=8 * vector.inputs["input"].dtype.itemsize,
    ), values["time_major"]


@pytest.mark.parametrize("record", TFLITE.cases[::6], ids=lambda record: record.id)
def test_the_program_gives_the_integers_of_the_pack(record):
    """Alone, with NumPy: whoever writes a kernel has its tables and its roundings."""
    vector, names = TFLITE.read(record), {}
    exec(spelled_out("IntegerLSTM"), names)  # noqa: S102 -- our own
    r, is_first = read(vector)
    names["integer_lstm"](r)

    found = vars(names["written"])
    found["output"] = found["output"] if is_first else np.swapaxes(found["output"], 0, 1)
    for name, wanted in vector.answers.outputs.items():
        assert np.array_equal(found[name], wanted), name


@pytest.mark.parametrize("cell", ["RNN", "GRU", "LSTM"])
def test_a_kernel_of_what_is_specified_is_shown_as_it_is(cell):
    """Its functions are those of its specification."""
    assert spelled_out(cell) == kernel_of(cell)
