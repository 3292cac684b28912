"""Statements about inputs, outputs, element types and versions of ONNX's operators."""

from __future__ import annotations

from rnncli.operators import OPERATORS
from rnncli.tracing.conditions import (
    BIDIRECTIONAL,
    EMPTY_NAME_BETWEEN,
    EVERY_INPUT,
    FULL,
    INPUTS_END_EARLY,
    ONLY_REQUIRED,
    OUTPUT_SKIPPED,
    OUTPUTS_END_EARLY,
    RAGGED,
    STATES_OF_TWO_SIZES,
    TRAILING_EMPTY_NAME,
    WEIGHTS_OF_TWO_SIZES,
    X_OF_THREE_SIZES,
    asks,
    gives,
    in_layout,
    lacks,
    of_dtype,
    walks,
)
from rnncli.tracing.statement import ONNX, Statement, statements

TIME_FIRST = in_layout(0)
# Wrong orders of the gates of W, R or B.
GATE_ORDERS = (
    "gate-order-rzh-in-{0} gate-order-rhz-in-{0} gate-order-ifco-in-{0} gate-order-fico-in-{0}"
    " units-before-gates-in-{0}"
)

_X = (
    *statements(
        "x.shape",
        "X is [seq_length, batch_size, input_size].",
        "input X",
        when=TIME_FIRST & X_OF_THREE_SIZES,
        against="layout-of-x-ignored",
    ),
    *statements(
        "x.sequences",
        "Each sequence of the batch is computed by itself.",
        "input X",
        against="batch-first-row-only batch-rows-mixed",
    ),
    *statements(
        "x.padding",
        "X may be padded after the ends of sequences; results do not depend on padding.",
        "input X",
        when=RAGGED,
        against="lengths-ignored last-states-run-on",
    ),
)
_WEIGHTS = (
    *statements(
        "w.gates",
        "W holds the gates one after the other, in the order of the notation.",
        "input W",
        of="GRU LSTM",
        against=GATE_ORDERS.format("w"),
    ),
    *statements(
        "w.shape",
        "W is [num_directions, gates*hidden_size, input_size].",
        "input W",
        when=WEIGHTS_OF_TWO_SIZES,
        against="input-weights-columns-first",
    ),
    *statements(
        "w.directions",
        "W holds the forward weights, then the backward ones, along dimension 0.",
        "input W",
        when=BIDIRECTIONAL,
        against="second-direction-reuses-w weights-of-directions-swapped"
        " weights-of-directions-interleaved",
    ),
    *statements(
        "r.gates",
        "R holds the gates one after the other, in the order of the notation.",
        "input R",
        of="GRU LSTM",
        against=GATE_ORDERS.format("r"),
    ),
    *statements(
        "r.shape",
        "R is [num_directions, gates*hidden_size, hidden_size].",
        "input R",
        against="recurrent-weights-columns-first recurrent-weights-transposed",
    ),
    *statements(
        "r.directions",
        "R holds the forward weights, then the backward ones, along dimension 0.",
        "input R",
        when=BIDIRECTIONAL,
        against="second-direction-reuses-r weights-of-directions-swapped"
        " weights-of-directions-interleaved",
    ),
    *statements(
        "b.gates",
        "Each half of B holds the gates in the order of the notation.",
        "input B",
        of="GRU LSTM",
        when=gives("B"),
        against=f"{GATE_ORDERS.format('b')} biases-shifted-by-a-gate",
    ),
    *statements(
        "b.halves",
        "B holds Wb, then Rb, [num_directions, 2*gates*hidden_size].",
        "input B",
        when=gives("B"),
        against="input-bias-is-the-other recurrent-bias-is-the-other biases-swapped"
        " biases-shifted-by-a-unit biases-of-first-unit",
    ),
    *statements(
        "b.directions",
        "B holds the forward biases, then the backward ones, along dimension 0.",
        "input B",
        when=gives("B") & BIDIRECTIONAL,
        against="second-direction-reuses-biases second-direction-biases-at-half",
    ),
    *statements(
        "b.default",
        "Without B the biases are 0.",
        "input B",
        when=lacks("B"),
        against="absent-b-is-one",
    ),
)
_LENGTHS = (
    *statements(
        "sequence_lens.given",
        "sequence_lens is the number of steps of each sequence.",
        "input sequence_lens",
        when=gives("sequence_lens") & RAGGED,
        against="lengths-ignored lengths-one-less lengths-one-more lengths-largest"
        " lengths-smallest",
    ),
    *statements(
        "sequence_lens.shape",
        "sequence_lens is [batch_size], in the order of the batch.",
        "input sequence_lens",
        when=gives("sequence_lens") & RAGGED,
        against="lengths-of-first-sequence lengths-reversed outputs-left-sorted-by-length",
    ),
    *statements(
        "sequence_lens.reverse",
        "The backward direction begins where a sequence ends.",
        "input sequence_lens; attribute direction",
        when=gives("sequence_lens") & RAGGED & walks("reverse"),
        against="padding-read-reversed padding-walked-in-reverse",
    ),
    *statements(
        "sequence_lens.directions",
        "Both directions of a bidirectional node have the same lengths.",
        "input sequence_lens; attribute direction",
        when=gives("sequence_lens") & RAGGED & BIDIRECTIONAL,
        against="padding-read-reversed padding-walked-in-reverse",
    ),
    *statements(
        "sequence_lens.default",
        "Without sequence_lens every sequence has seq_length steps.",
        "input sequence_lens",
        when=FULL,
        against="last-step-missing",
    ),
)


def _state(name: str, of: str, ignored: str, *others: str) -> tuple[Statement, ...]:
    """Return the rows for an initial state."""
    given, section = gives(name), f"input {name}"
    return (
        *statements(
            f"{name}.given",
            f"The first step starts from {name}.",
            section,
            of=of,
            when=given,
            against=f"{ignored} {' '.join(others)}",
        ),
        *statements(
            f"{name}.shape",
            f"{name} is [num_directions, batch_size, hidden_size].",
            section,
            of=of,
            when=given & TIME_FIRST & STATES_OF_TWO_SIZES,
            against=f"{name.replace('_', '-')}-of-first-sequence",
        ),
        *statements(
            f"{name}.directions",
            f"Each direction has a part of {name} of its own.",
            section,
            of=of,
            when=given & BIDIRECTIONAL,
            against="initial-states-of-first-direction initial-states-directions-swapped"
            " initial-states-of-second-direction-ignored",
        ),
        *statements(
            f"{name}.default",
            f"Without {name} the state starts at 0.",
            section,
            of=of,
            when=lacks(name),
            against=f"absent-{name.replace('_', '-')}-is-one",
        ),
    )


_STATES = (
    *_state("initial_h", ONNX, "initial-h-ignored"),
    *_state("initial_c", "LSTM", "initial-c-ignored", "initial-states-swapped"),
)
_P = (
    *statements(
        "p.gates",
        "P holds the peepholes of i, o and f, in this order, [num_directions, 3*hidden_size].",
        "input P",
        of="LSTM",
        when=gives("P"),
        against="peepholes-in-order-ifo peepholes-in-order-ofi peepholes-in-order-oif"
        " peepholes-in-order-fio peepholes-in-order-foi",
    ),
    *statements(
        "p.directions",
        "P holds the forward peepholes, then the backward ones, along dimension 0.",
        "input P",
        of="LSTM",
        when=gives("P") & BIDIRECTIONAL,
        against="second-direction-reuses-peepholes",
    ),
    *statements(
        "p.default",
        "Without P there are no peepholes.",
        "input P",
        of="LSTM",
        when=lacks("P"),
        against="absent-p-is-one",
    ),
)
_OPTIONAL = (
    *statements(
        "inputs.required",
        "X, W and R are enough.",
        "inputs",
        when=ONLY_REQUIRED,
    ),
    *statements("inputs.all", "A node may have every input at once.", "inputs", when=EVERY_INPUT),
    *statements(
        "inputs.empty-name",
        "An empty name stands for an input that is left out.",
        "summary",
        since=7,
        when=EMPTY_NAME_BETWEEN,
    ),
    *statements(
        "inputs.trailing-empty-name",
        "An empty name may stand at the end of the list of inputs, too.",
        "summary",
        since=7,
        when=TRAILING_EMPTY_NAME,
    ),
    *statements(
        "inputs.end-early",
        "Inputs at the end of the list may simply not be there.",
        "summary",
        since=7,
        when=INPUTS_END_EARLY,
    ),
    *statements(
        "outputs.empty-name",
        "An empty name stands for an output that is left out.",
        "summary",
        since=7,
        when=OUTPUT_SKIPPED,
    ),
    *statements(
        "outputs.end-early",
        "Outputs at the end of the list may simply not be there.",
        "summary",
        since=7,
        when=OUTPUTS_END_EARLY,
    ),
    *(
        row
        for operators, since in (("RNN LSTM", 1), ("GRU", 3))  # GRU-1 requires Y_h
        for row in statements(
            "outputs.none",
            "A node may have no output at all.",
            "outputs",
            of=operators,
            since=since,
            why_not="nothing would be compared",
        )
    ),
    *statements(
        "outputs.y_h-required",
        "GRU-1 always has Y_h.",
        "outputs",
        of="GRU",
        until=1,
        when=asks("Y_h"),
        against="last-h-one-step-early",
    ),
)
_OUTPUTS = (
    *statements(
        "y.steps",
        "Y has H after every step.",
        "output Y",
        when=asks("Y"),
        against="y-one-step-late",
    ),
    *statements(
        "y.shape",
        "Y is [seq_length, num_directions, batch_size, hidden_size].",
        "output Y",
        when=asks("Y") & BIDIRECTIONAL & TIME_FIRST,
        against="y-directions-beside-units outputs-of-directions-swapped layout-of-y-ignored",
    ),
    *statements(
        "y.order",
        "Y of a backward direction is in the order of X.",
        "output Y; attribute direction",
        when=asks("Y"),
        against="reverse-y-in-order-of-computation",
    ),
    *statements(
        "y_h.last",
        "Y_h is H after the last step of each sequence.",
        "output Y_h",
        when=asks("Y_h") & RAGGED,
        against="last-h-at-t-minus-1 last-h-at-end-of-x last-h-one-step-early last-h-is-initial"
        " last-states-run-on",
    ),
    *statements(
        "y_h.reverse",
        "The last step of the backward direction is the sequence's first.",
        "output Y_h; attribute direction",
        when=asks("Y_h"),
        against="last-h-at-end-of-sequence",
    ),
    *statements(
        "y_h.shape",
        "Y_h is [num_directions, batch_size, hidden_size].",
        "output Y_h",
        when=asks("Y_h") & BIDIRECTIONAL & TIME_FIRST,
        against="last-states-directions-swapped last-states-of-first-direction"
        " layout-of-last-states-ignored",
    ),
    *statements(
        "y_c.last",
        "Y_c is C after the last step of each sequence.",
        "output Y_c",
        of="LSTM",
        when=asks("Y_c") & RAGGED,
        against="last-c-is-initial last-c-is-last-h last-c-runs-on",
    ),
    *statements(
        "y_c.shape",
        "Y_c is [num_directions, batch_size, hidden_size].",
        "output Y_c",
        of="LSTM",
        when=asks("Y_c") & BIDIRECTIONAL & TIME_FIRST,
        against="last-states-directions-swapped last-states-of-first-direction"
        " layout-of-last-states-ignored",
    ),
    *statements(
        "outputs.distinct",
        "Y_h and Y_c are different outputs, in this order.",
        "outputs",
        of="LSTM",
        when=asks("Y_h", "Y_c"),
        against="last-states-swapped last-h-is-last-c last-c-is-last-h",
    ),
)
_TYPES = (
    *statements("types.float32", "T may be float32.", "type T", when=of_dtype("float32")),
    *statements("types.float16", "T may be float16.", "type T", when=of_dtype("float16")),
    *statements(
        "types.float64",
        "T may be float64.",
        "type T",
        when=of_dtype("float64"),
        against="float64-computed-in-float32",
    ),
    *statements(
        "types.bfloat16", "T may be bfloat16.", "type T", since=22, when=of_dtype("bfloat16")
    ),
    *statements(
        "types.lengths",
        "sequence_lens are int32.",
        "type T1",
        when=gives("sequence_lens") & RAGGED,
        against="lengths-ignored",
    ),
)
_VERSIONS = tuple(
    row
    for operator in OPERATORS.values()
    if operator.dialect == "ONNX"
    for row in statements(
        f"version-{operator.version}",
        f"Operator set {operator.version} has a version of {operator.type} of its own.",
        "since_version",
        of=operator.type,
        since=operator.version,
        until=operator.version,
    )
)

ROWS = (
    *(*_X, *_WEIGHTS, *_LENGTHS, *_STATES, *_P),
    *(*_OPTIONAL, *_OUTPUTS, *_TYPES, *_VERSIONS),
)
