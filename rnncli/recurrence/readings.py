"""Contested points of the specifications, each a reading: a named switch with a default."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rnncli.errors import InvalidRequest, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping


class Reading(NamedTuple):
    """A sentence of a specification that can be read in more than one way.

    Attributes:
        choices: the possible readings; the first is the default unless the dialect says otherwise.
        summary: the contested point.
        meanings: choice -> its meaning.
        option: the option of cells that the second choice sets; "" where it affects no equation.
        is_declared: whether other choices are right only of what declares them, because the text
            leaves no doubt and hardware has another.
        unstored: choices whose answers no pack stores; they are proved as they are needed.
    """

    summary: str
    meanings: Mapping[str, str]
    option: str = ""
    is_declared: bool = False
    unstored: tuple[str, ...] = ()

    @property
    def choices(self) -> tuple[str, ...]:
        """The names of the choices, the usual default first."""
        return tuple(self.meanings)


READINGS: Mapping[str, Reading] = {
    "alpha-order": Reading(
        "which activation an element of activation_alpha or activation_beta belongs to",
        {
            "queue": "consumed in order by only those functions that take one",
            "positional": "element k belongs to activation k, whether it takes one or not",
        },
    ),
    "clip-scope": Reading(
        "whether `applied to the input of activations` includes the LSTM's h(Ct)",
        {
            "activations": "the input of every activation is clipped, Ct into h included",
            "gates": "only the pre-activations of the gates are clipped",
        },
    ),
    "zero-length": Reading(
        "the last state of a sequence of length 0", {"zero": "zero", "initial": "the initial state"}
    ),
    "recurrence": Reading(
        "opsets 1 and 3 write Ht-1*R without the transpose",
        {
            "transposed": "Ht-1*(R^T), as corrected in opset 7 and as everybody computes it",
            "literal": "Ht-1*R, as written",
        },
    ),
    "threshold-tie": Reading(
        "ThresholdedRelu at x = alpha",
        {
            "ge": "x where x >= alpha, as the recurrent operators say",
            "gt": "x where x > alpha, as the operator ThresholdedRelu says",
        },
    ),
    "peephole-o": Reading(
        "the cell state that the output gate of an LSTM sees through its peephole",
        {
            "new": "Po (.) Ct, as ONNX says",
            "previous": "Po (.) Ct-1, like the other gates, as WebNN says",
        },
        option="peephole_previous",
    ),
    "state-round": Reading(
        "when a state of a linear recurrence is rounded to its type",
        {
            "end": "after the last step, as one call computes it",
            "step": "after each step, as calls of a step each do",
        },
        option="rounded_states",
    ),
    "conv-round": Reading(
        "whether a convolution's sum is rounded to the type of the tensors before its activation",
        {
            "output": "it is, as the text's Conv and Sigmoid exchange it",
            "none": "it is not, as in a kernel that does both",
        },
        option="unrounded_sum",
    ),
    "quant-scope": Reading(
        "which values share a scale and a zero point where inputs and states are quantised",
        {
            "batch": "X of all sequences and steps; Ht-1 of all sequences at one step",
            "row": "each sequence by itself: its X of all steps, its Ht-1 at one step",
            "weights-only": "none do: W and R become real numbers, and X and Ht-1 stay as they are",
        },
        unstored=("weights-only",),
    ),
    "quant-ended": Reading(
        "the Ht-1 of a sequence that has ended, in the range that it shares with its batch",
        {
            "zero": "zero, as in Y, from the second step after its end on",
            "last": "its last H at every step, as ONNX Runtime has it where Y is not requested",
        },
    ),
    "requantise": Reading(
        "which values of a quantised unit are rounded to levels besides its outputs",
        {
            "outputs": "none: what is between the nodes are real numbers",
            "state": "the states after each step, to the levels of their outputs",
            "gates": "these, and the gates and their arguments, to levels of their own",
        },
        option="levels",
        is_declared=True,
    ),
    "round": Reading(
        "how a quotient by the scale becomes a level in a quantised unit",
        {
            "half-even": "to the nearest, between two to the even one, as QuantizeLinear says",
            "half-away": "to the nearest, between two to the one farther from zero",
            "truncate": "to the level below, as a shift drops bits",
            "toward-zero": "to the level nearer to the zero point, as a cast drops a fraction",
            "half-up": "to the nearest, between two to the upper one, as a shift after adding half",
        },
        is_declared=True,
        unstored=("toward-zero", "half-up"),
    ),
    "state-type": Reading(
        "the type in which a quantised unit holds its states between steps",
        {
            "float": "float, for whatever values they have",
            "int8": "int8, over the range of the levels of their outputs",
            "int16": "int16, over the range of the levels of their outputs",
        },
        is_declared=True,
    ),
    "preset": Reading(
        "which implementation of TFLite's integer LSTM decides all contested points at once",
        {
            "tflm": "the other readings say; their defaults are tflite-micro's reference kernel",
            "cmsis": "CMSIS-NN",
            "litert": "LiteRT, which was TensorFlow Lite",
        },
    ),
    "rounding": Reading(
        "how often an integer LSTM rounds the product with a fixed-point multiplier",
        {
            "double": "twice: the high half of the product, and its shift to the right",
            "single": "once, as tflite-micro and CMSIS-NN do where they are built so",
        },
    ),
    "gate-sum": Reading(
        "what saturates to 16 bits where an integer LSTM adds the terms of a gate's argument",
        {
            "both-terms": "that of the input and that of the hidden state, and then their sum",
            "sum-only": "that of the input, and then the sum",
        },
    ),
    "activations": Reading(
        "the fixed-point functions of an integer LSTM",
        {
            "table": "a table of 256 numbers, interpolated",
            "gemmlowp": "gemmlowp's, of 16 bits: a series and Newton's method",
        },
    ),
    "scale-product": Reading(
        "the type in which an integer LSTM multiplies the scales of an activation and of weights",
        {
            "float64": "float64",
            "float32": "float32, as in LiteRT, and in tflite-micro before October 2026",
        },
    ),
    "cell-products": Reading(
        "how an integer LSTM scales the terms of its cell state",
        {
            "multiplier": "by fixed-point multipliers, as all products",
            "shift": "by rounded shifts, since all scales are powers of two",
        },
    ),
    "cell-sum": Reading(
        "what saturates to 16 bits where an integer LSTM adds the terms of its cell state",
        {
            "both-terms": "what is kept and what is written, and then their sum",
            "sum-only": "what is kept, and then the sum",
        },
    ),
    "clip-test": Reading(
        "when an integer LSTM clips its cell state",
        {
            "float": "if the clip is above 0",
            "integer": "if it is at least one unit of the scale of the cell state",
        },
    ),
    "hidden-scale": Reading(
        "the scale by which the output of an integer LSTM is made",
        {
            "output": "that of the output state",
            "intermediate": "that of the intermediate tensor 4, which converters set to the same",
        },
    ),
    "state": Reading(
        "the states that a call of an integer LSTM starts from",
        {"carried": "those that it is given", "fresh": "zero, whatever it is given"},
    ),
}
# Choice of the reading `preset` -> the readings that it decides.
PRESETS: Mapping[str, Mapping[str, str]] = {
    "tflm": {},
    "cmsis": {
        "gate-sum": "sum-only",
        "activations": "table",
        "scale-product": "float64",
        "cell-products": "multiplier",
        "cell-sum": "sum-only",
        "clip-test": "integer",
        "hidden-scale": "output",
    },
    "litert": {
        "rounding": "double",
        "gate-sum": "sum-only",
        "activations": "gemmlowp",
        "scale-product": "float32",
        "cell-products": "shift",
        "cell-sum": "both-terms",
        "clip-test": "integer",
        "hidden-scale": "intermediate",
        "state": "carried",
    },
}


def source_of(option: str) -> str:
    """Return what sets an option of cells: a choice of a reading, or an attribute."""
    choices = (f"{name}={row.choices[1]}" for name, row in READINGS.items() if row.option == option)
    return next((f"the reading {choice}" for choice in choices), f"the attribute {option}")


def must_be_declared(reading: str) -> bool:
    """Whether `READING=CHOICE` is right only of an implementation that declares it."""
    name, _, choice = reading.partition("=")
    return READINGS[name].is_declared or choice in READINGS[name].unstored


def check_reading(name: str, value: str) -> None:
    """Raise if a reading or its choice does not exist.

    Raises:
        InvalidRequest: unknown; the message lists the choices and suggests a spelling.
    """
    if name not in READINGS:
        hint = did_you_mean(name, READINGS) or f" (there are {', '.join(READINGS)})"
        raise InvalidRequest(f"unknown reading '{name}'{hint}")
    if value not in READINGS[name].choices:
        choices = " or ".join(READINGS[name].choices)
        raise InvalidRequest(f"reading '{name}' must be {choices}, got '{value}'")
