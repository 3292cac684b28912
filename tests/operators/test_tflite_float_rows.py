"""TFLite's float LSTM: each form is its definition, and what a node may not have is refused."""

import numpy as np
import pytest
from support.float_lstms import FORMS, FloatLstm
from support.tables import every

from rnncli.errors import InvalidOperator
from rnncli.operators.evaluation import evaluate

CLOSE = 1e-6  # of numbers of about 1, rounded to float32


@every("form", FORMS)
@every("backend", ("reference", "numpy"))
def test_every_form_is_its_definition(form, backend):
    """Number by number, in plain loops."""
    lstm = FloatLstm(**FORMS[form])
    found = evaluate(lstm.operator, lstm.inputs, attributes=lstm.attributes, backend=backend)

    for name, due in lstm.defined().items():
        assert found[name] == pytest.approx(np.array(due), abs=CLOSE)


@every("form", FORMS)
def test_the_batch_may_come_first(form):
    """Inputs and outputs are exchanged, and states are not."""
    lstm = FloatLstm(**FORMS[form])
    first = evaluate(lstm.operator, lstm.inputs, attributes=lstm.attributes)
    swapped = {**lstm.inputs, "input": lstm.inputs["input"].swapaxes(0, 1)}
    other = evaluate(lstm.operator, swapped, attributes={**lstm.attributes, "time_major": False})

    assert (other["output"].swapaxes(0, 1) == first["output"]).all()
    assert (other["final_cell_state"] == first["final_cell_state"]).all()


@every("form", FORMS)
def test_two_calls_that_carry_states_are_one(form):
    """To the last bit but that states are rounded to float32 between the calls."""
    lstm = FloatLstm(**FORMS[form])
    whole = evaluate(lstm.operator, lstm.inputs, attributes=lstm.attributes)
    inputs = {**lstm.inputs, "input": lstm.inputs["input"][:2]}
    begun = evaluate(lstm.operator, inputs, attributes=lstm.attributes)
    carried = {name: begun[f"final_{name}"] for name in ("output_state", "cell_state")}
    rest = {**lstm.inputs, "input": lstm.inputs["input"][2:], **carried}
    ended = evaluate(lstm.operator, rest, attributes=lstm.attributes)

    assert ended["output"] == pytest.approx(whole["output"][2:], abs=CLOSE)


def test_the_projection_is_that_of_torch():
    """LSTM(proj_size=...) has the same results, given the sum of its biases."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(3)
    layer = torch.nn.LSTM(3, 5, proj_size=2)
    x, h, c = torch.randn(6, 2, 3), torch.randn(1, 2, 2), torch.randn(1, 2, 5)
    with torch.no_grad():
        y, (last_h, last_c) = layer.double()(x.double(), (h.double(), c.double()))
    W, R, b, more, Wp = (p.detach().numpy().astype(np.float32) for p in layer.parameters())
    inputs = {"input": x, "output_state": h[0], "cell_state": c[0], "projection_weights": Wp}
    for k, gate in enumerate(("input", "forget", "cell", "output")):
        rows = slice(5 * k, 5 * k + 5)
        inputs[f"input_to_{gate}_weights"], inputs[f"recurrent_to_{gate}_weights"] = (
            W[rows],
            R[rows],
        )
        inputs[f"{gate}_gate_bias"] = (b + more)[rows]
    arrays = {name: np.asarray(values) for name, values in inputs.items()}
    operator = "tflite.UNIDIRECTIONAL_SEQUENCE_LSTM_PROJECTED"
    found = evaluate(operator, arrays, attributes={"time_major": True})

    due = (y.numpy(), last_h[0].numpy(), last_c[0].numpy())
    for values, wanted in zip(found.values(), due, strict=True):
        assert values == pytest.approx(wanted, abs=CLOSE)


@pytest.mark.parametrize(
    ("form", "change", "told"),
    [
        ("plain", {"input_gate_bias": None}, "variant plain needs input_gate_bias"),
        ("coupled", {"input_gate_bias": np.zeros(5)}, "variant coupled"),
        ("plain", {"cell_to_output_weights": np.zeros(5)}, "variant plain"),
        (
            "narrow",
            {"projection_weights": np.zeros((2, 4))},
            r"projection_weights must be \[2, 5\]",
        ),
        ("narrow", {"output_state": np.zeros((2, 5))}, r"output_state must be \[2, 2\]"),
        ("plain", {"recurrent_to_cell_weights": np.zeros((5, 2))}, r"must be \[5, 5\]"),
    ],
    ids=lambda value: value if isinstance(value, str) else "+".join(value),
)
def test_tensors_that_its_variant_or_its_sizes_exclude_are_refused(form, change, told):
    """With the name of the tensor, and what the variant or a size says."""
    lstm = FloatLstm(**FORMS[form])
    inputs = {
        name: values.astype(np.float32)
        for name, values in {**lstm.inputs, **change}.items()
        if values is not None
    }
    with pytest.raises(InvalidOperator, match=told):
        evaluate(lstm.operator, inputs, attributes=lstm.attributes)


@every("bound", (-1.0, np.inf, np.nan))
def test_a_bound_is_positive_and_finite(bound):
    """0 stands for none."""
    lstm = FloatLstm(width=2)
    with pytest.raises(InvalidOperator, match="proj_clip must be 0"):
        evaluate(lstm.operator, lstm.inputs, attributes={**lstm.attributes, "proj_clip": bound})
