"""TFLite's UNIDIRECTIONAL_SEQUENCE_LSTM, in its float form, without and with a projection.

https://github.com/google-ai-edge/LiteRT/blob/main/tflite/kernels/unidirectional_sequence_lstm.cc
https://github.com/google-ai-edge/LiteRT/blob/main/tflite/kernels/lstm_eval.cc

A file says which gates an LSTM has by the tensors that are there: without those of the input gate,
that gate is 1 - ft (CIFG), and three more weights are peepholes. `variant` says so here. A
projection makes the hidden state narrower or wider than the cell state, and so is an operator of
its own; torch.nn.LSTM's proj_size is one without a bias and a bound. Layer normalisation is not
evaluated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.operators.operator import Attribute, Input, Operator, Output, by_name, shape
from rnncli.operators.tflite_rows import FIXED, GATES, SETTINGS, moves, weights
from rnncli.operators.translation import Translation
from rnncli.recurrence.cells import CELLS, ProjectedForm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rnncli.numerics import Array
    from rnncli.operators.translation import Moves

VARIANTS = ("plain", "coupled", "peephole", "coupled_peephole")
OWN_INPUT_GATE = ("input_to_input_weights", "recurrent_to_input_weights", "input_gate_bias")
PEEPHOLES = tuple(f"cell_to_{gate}_weights" for gate in ("input", "forget", "output"))
# Gates in the order of the cell, and of its peepholes.
_ORDER, _PEEPED = ("input", "output", "forget", "cell"), ("input", "output", "forget")


def _demands(values: Mapping[str, Any]) -> dict[str, bool]:
    is_coupled, has_peepholes = (word in values["variant"] for word in ("coupled", "peephole"))
    own = dict.fromkeys(OWN_INPUT_GATE, not is_coupled)
    first, *others = PEEPHOLES
    return {**own, first: has_peepholes and not is_coupled, **dict.fromkeys(others, has_peepholes)}


def _fields(
    values: Mapping[str, Any], tensors: Mapping[str, Array], _: Mapping[str, str]
) -> dict[str, Any]:
    def stacked(role: str, rank: int, gates: Sequence[str]) -> Array:
        """Return tensors of gates, gates first; those of a coupled input gate are not read."""
        some = [tensors.get(f"{role}_{gate}") for gate in gates]
        blank = np.zeros_like(next(each for each in some if each is not None))
        found = [blank if each is None else each for each in some]
        return np.stack(found, axis=-1 - rank)[..., None, *[slice(None)] * (1 + rank)]

    projection = tensors.get("W_projection")
    if projection is not None:
        bias = tensors.get("bias_projection")
        if bias is None:
            bias = np.zeros(projection.shape[:-1], projection.dtype)
        projection = np.concatenate([projection, bias[..., None]], axis=-1)[..., None, :, :]
    return {
        "X": tensors["X"],
        "W": stacked("W", 2, _ORDER),
        "R": stacked("R", 2, _ORDER),
        "Wb": stacked("bias", 1, _ORDER),
        "P": stacked("P", 1, _PEEPED) if "peephole" in values["variant"] else None,
        "initial": (tensors.get("initial_h"), tensors.get("initial_c")),
        "projection": projection,
        "projected": ProjectedForm(
            coupled="coupled" in values["variant"],
            cell_clip=values["cell_clip"],
            projection_clip=values.get("proj_clip") or 0.0,
        ),
    }


def _rules(values: Mapping[str, Any], _: str) -> Iterator[str]:
    for name in ("cell_clip", "proj_clip"):
        if not 0 <= (values.get(name) or 0.0) < np.inf:
            yield f"{name} must be 0, for none, or positive and finite, got {values[name]}"


def _lstm(
    form: str, width: str, *projection: Input, settings: Sequence[Attribute] = ()
) -> Operator:
    """Return the operator whose hidden states have a width, H or O."""
    parameters = (
        *weights("W", "input", "I", {}, optional=("input",)),
        *weights("R", "recurrent", width, {}, optional=("input",)),
        *(
            Input(
                name,
                f"P_{gate}",
                (shape("H"),),
                f"peephole weights of the {gate} gate",
                optional=True,
            )
            for name, gate in zip(PEEPHOLES, ("input", "forget", "output"), strict=True)
        ),
        *(
            Input(
                f"{gate}_gate_bias",
                f"bias_{gate}",
                (shape("H"),),
                f"bias of the {gate} gate",
                optional=gate == "input",
            )
            for gate in GATES
        ),
        *projection,
    )

    def own_moves(values: Mapping[str, Any]) -> dict[str, Moves]:
        return moves(values, (row.name for row in parameters))

    hidden, cell = (shape(f"N {width}"),), (shape("N H"),)
    steps = tuple(shape(f"{axes} {width}") for axes in ("N T", "T N"))
    of_h, of_c = "hidden state before the first step", "cell state before the first step"
    return Operator(
        type=f"UNIDIRECTIONAL_SEQUENCE_LSTM_{form}",
        version=1,
        versioned=False,
        domain="tflite",
        dialect="TFLite",
        cell=CELLS["ProjectedLSTM"],
        gates="",
        inputs=(
            Input("input", "X", (shape("N T I"), shape("T N I")), "input sequences"),
            *parameters,
            Input("output_state", "initial_h", hidden, f"{of_h}; absent: 0", optional=True),
            Input("cell_state", "initial_c", cell, f"{of_c}; absent: 0", optional=True),
        ),
        outputs=(
            Output("output", "Y", steps, "hidden state after each step"),
            Output("final_output_state", "Y_h", hidden, "hidden state after the last step"),
            Output("final_cell_state", "Y_c", cell, "cell state after the last step"),
        ),
        attributes=by_name(
            *SETTINGS,
            *settings,
            Attribute(
                "variant",
                "string",
                "coupled: the input gate is 1 - ft (CIFG); peephole: gates read the cell state",
                default="plain",
                choices=VARIANTS,
            ),
        ),
        dtypes=("float32",),
        activations=(),
        default_activations=CELLS["ProjectedLSTM"].defaults,
        bias="sum",
        empty_sizes=False,
        shapes_by="time_major",
        fixed=FIXED,
        readings={},
        translation=Translation(own_moves, _fields),
        demanding="variant",
        demands=_demands,
        rules=_rules,
    )


ROWS = (
    _lstm("FLOAT", "H"),
    _lstm(
        "PROJECTED",
        "O",
        Input("projection_weights", "W_projection", (shape("O H"),), "projection weights"),
        Input(
            "projection_bias",
            "bias_projection",
            (shape("O"),),
            "bias of the projection; absent: 0",
            optional=True,
        ),
        settings=(
            Attribute(
                "proj_clip", "float", "bound of the projected hidden state; 0: none", default=0.0
            ),
        ),
    ),
)
