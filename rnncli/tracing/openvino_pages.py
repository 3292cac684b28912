"""Statements about OpenVINO's pages: of its sequences and of its cells."""

from __future__ import annotations

from functools import partial

from rnncli.operators import OPERATORS
from rnncli.tracing.conditions import (
    BIDIRECTIONAL,
    CLIPS,
    ONE_DIRECTION,
    RAGGED,
    WRONG_HIDDEN_SIZE,
    X_OF_THREE_SIZES,
    asks,
    breaks_attribute,
    gives,
    lacks,
    lacks_required,
    leaves_out,
    of_dtype,
    uses,
    walks,
    writes,
)
from rnncli.tracing.statement import CaseCondition, CheckKind, Statement, statements
from rnncli.tracing.tensors import GATE_ORDERS
from rnncli.tracing.violations import WRONG_FORMULAS

SEQUENCES = "RNNSequence GRUSequence LSTMSequence"
CELLS = "RNNCell GRUCell LSTMCell"
EVERY = f"{SEQUENCES} {CELLS}"
# The inputs that each operator requires.
REQUIRED = {
    name: tuple(tensor.name for tensor in row.inputs if not tensor.optional)
    for row in OPERATORS.values()
    for name in EVERY.split()
    if row.type == name
}
RNNS, GRUS, LSTMS = (f"{cell}Sequence {cell}Cell" for cell in ("RNN", "GRU", "LSTM"))
said = partial(statements, of=EVERY)
of_sequences = partial(statements, of=SEQUENCES)
refused = partial(said, kind=CheckKind.REJECTION)
refused_sequence = partial(refused, of=SEQUENCES)
DIRECTION, RESET = "attribute direction", "attribute linear_before_reset"

_EQUATION = (
    *said(
        "cell.products",
        "A cell adds the products of Xt and of Ht-1 with their weights.",
        "detailed description",
        against="input-product-dropped recurrent-product-dropped recurrent-weights-transposed"
        " input-weights-columns-first",
    ),
    *said(
        "cell.activation",
        "The activation is applied to the sum.",
        "detailed description",
        against="activation-f-missing activation-g-missing activation-h-missing",
    ),
    *said(
        "cell.gru",
        "ht is added by as much as zt leaves of Ht-1, and resets Ht-1 by rt.",
        "formula",
        of=GRUS,
        against="z-inverted z-ignored reset-ignored reset-inverted",
    ),
    *said(
        "cell.lstm",
        "Ct is what ft keeps of Ct-1 and what it lets in of ct; ot lets h(Ct) out.",
        "formula",
        of=LSTMS,
        against="input-gate-open forget-gate-open output-gate-open",
    ),
    *of_sequences(
        "cell.steps",
        "Cells follow one another: each has the state of the one before.",
        "detailed description",
        against="batch-rows-mixed y-one-step-late",
    ),
    *of_sequences(
        "like-onnx",
        "Most attributes are as ONNX has them.",
        "detailed description",
        why_not="says only where else to look",
    ),
)
_ATTRIBUTES = (
    *said(
        "hidden_size",
        "hidden_size is the number of units.",
        "attribute hidden_size",
        when=writes("hidden_size"),
        against="input-weights-columns-first hidden-tail-4",
    ),
    *refused(
        "hidden_size.refused",
        "hidden_size is the size that the weights have.",
        "attribute hidden_size",
        when=WRONG_HIDDEN_SIZE,
    ),
    *(
        row
        for name in ("Relu", "Sigmoid", "Tanh")
        for row in said(
            f"activations.{name.lower()}",
            f"{name.lower()} may be the activation.",
            "attribute activations",
            when=uses(name),
            against=" ".join(f"{name.lower()}-is-{id_}" for id_, _, _ in WRONG_FORMULAS[name]),
        )
    ),
    *refused(
        "activations.refused",
        "No other function than relu, sigmoid and tanh may be the activation.",
        "attribute activations",
        when=breaks_attribute("activations"),
    ),
    *said(
        "activations.default",
        "Without activations gates have sigmoid, and all else tanh.",
        "attribute activations",
        when=leaves_out("activations"),
        against="activation-f-is-relu activation-f-is-sigmoid activation-f-is-tanh"
        " activation-g-is-relu activation-g-is-sigmoid activation-h-is-relu"
        " activation-h-is-sigmoid",
    ),
    *said(
        "alpha-beta",
        "alpha and beta mean what the activation makes of them: relu, sigmoid and tanh nothing.",
        "attributes activations_alpha, activations_beta",
        when=writes("activations_alpha") & writes("activations_beta"),
    ),
    *said(
        "clip.bounds",
        "Values beyond the bound become the bound, on both sides.",
        "attribute clip",
        when=writes("clip") & CLIPS,
        against="clip-ignored clip-doubled clip-halved clip-from-above-only clip-of-magnitude",
    ),
    *said(
        "clip.before-activation",
        "The clip comes before the activation.",
        "attribute clip",
        when=writes("clip") & CLIPS,
        against="clip-before-bias clip-of-input-product clip-of-recurrent-product clip-of-h",
    ),
    *said(
        "clip.default",
        "Without clip nothing is clipped.",
        "attribute clip",
        when=leaves_out("clip"),
        against="clip-where-none-is-given",
    ),
    *refused(
        "clip.refused",
        "The bound of clip is positive.",
        "attribute clip",
        when=breaks_attribute("clip"),
    ),
)
_DIRECTIONS = (
    *of_sequences(
        "direction.forward",
        "forward walks from the first step to the last.",
        DIRECTION,
        when=walks("forward"),
        against="forward-runs-reverse",
    ),
    *of_sequences(
        "direction.reverse",
        "reverse walks from the last step to the first.",
        DIRECTION,
        when=walks("reverse"),
        against="reverse-runs-forward",
    ),
    *of_sequences(
        "direction.bidirectional",
        "bidirectional does both, and puts the outputs side by side.",
        DIRECTION,
        when=BIDIRECTIONAL,
        against="second-direction-missing second-direction-continues outputs-of-directions-swapped",
    ),
    *of_sequences(
        "direction.one",
        "One direction has num_directions 1 in every shape.",
        DIRECTION,
        when=ONE_DIRECTION,
        against="layout-of-y-ignored",
    ),
    *refused_sequence(
        "direction.refused",
        "There is no other direction, and one is required.",
        DIRECTION,
        when=breaks_attribute("direction"),
    ),
)
_RESETS = (
    *said(
        "linear_before_reset.default",
        "By default the reset comes before the product.",
        RESET,
        of=GRUS,
        when=leaves_out("linear_before_reset"),
        against="linear-before-reset-always",
    ),
    *said(
        "linear_before_reset.one",
        "With linear_before_reset the reset is of the product and the recurrent bias.",
        RESET,
        of=GRUS,
        when=writes("linear_before_reset", 1),
        against="linear-before-reset-ignored linear-before-reset-bias-outside",
    ),
    *refused(
        "linear_before_reset.refused",
        "linear_before_reset is true or false.",
        RESET,
        of=GRUS,
        when=breaks_attribute("linear_before_reset"),
    ),
)


def _state(name: str, of: str, letter: str, sentence: str, mutants: str) -> tuple[Statement, ...]:
    """Return the statements about an initial state, which has another name in each operator."""
    sequences = " ".join(each for each in of.split() if each.endswith("Sequence"))
    return (
        *said(
            f"{letter}.given", f"{name} is the {sentence}.", f"input {name}", of=of, against=mutants
        ),
        *of_sequences(
            f"{letter}.shape",
            f"{name} is [batch_size, num_directions, hidden_size].",
            f"input {name}",
            of=sequences,
            when=BIDIRECTIONAL,
            against="layout-of-initial-states-ignored initial-states-directions-swapped"
            " initial-states-of-first-direction",
        ),
    )


_GATED = f"{GRUS} {LSTMS}"
_INPUTS = (
    *of_sequences(
        "x.shape",
        "X is [batch_size, seq_length, input_size].",
        "input X",
        when=X_OF_THREE_SIZES,
        against="layout-of-x-ignored",
    ),
    *said(
        "x.sequences",
        "Each row of the batch is computed by itself.",
        "input X",
        of=CELLS,
        against="batch-rows-mixed",
    ),
    *_state("H", RNNS, "h", "first hidden state", "initial-h-ignored"),
    *_state("initial_hidden_state", _GATED, "h", "first hidden state", "initial-h-ignored"),
    *_state("initial_cell_state", LSTMS, "c", "first cell state", "initial-c-ignored"),
    *of_sequences(
        "sequence_lengths.given",
        "sequence_lengths is the number of steps of each sequence.",
        "input sequence_lengths",
        when=RAGGED,
        against="lengths-ignored lengths-one-less lengths-one-more lengths-largest"
        " lengths-smallest lengths-of-first-sequence lengths-reversed",
    ),
    *of_sequences(
        "sequence_lengths.negative",
        "Nothing is said of negative lengths.",
        "input sequence_lengths",
        why_not="undefined by the specification",
    ),
    *(
        row
        for letter in "WR"
        for row in said(
            f"{letter.lower()}.gates",
            f"{letter} holds the gates one after the other, z, r, h or f, i, c, o.",
            f"input {letter}",
            of=_GATED,
            against=GATE_ORDERS.format(letter.lower()),
        )
    ),
    *of_sequences(
        "w.directions",
        "W holds the weights of each direction.",
        "input W",
        when=BIDIRECTIONAL,
        against="second-direction-reuses-w weights-of-directions-swapped",
    ),
    *of_sequences(
        "r.directions",
        "R holds the recurrent weights of each direction.",
        "input R",
        when=BIDIRECTIONAL,
        against="second-direction-reuses-r weights-of-directions-swapped",
    ),
    *said(
        "b.sum",
        "B is the sum of both biases.",
        "input B",
        when=gives("B"),
        against="biases-dropped input-bias-doubled biases-shifted-by-a-unit",
    ),
    *said(
        "b.gates",
        "B holds the gates in the order of W.",
        "input B",
        of=_GATED,
        when=gives("B"),
        against=GATE_ORDERS.format("b"),
    ),
    *said(
        "b.apart",
        "With linear_before_reset the biases of the hidden gate are placed separately.",
        "input B",
        of=GRUS,
        when=gives("B") & writes("linear_before_reset", 1),
        against="biases-swapped recurrent-bias-dropped",
    ),
    *said(
        "b.default",
        "Without B the biases are 0.",
        "input B",
        of="GRUCell LSTMCell",
        when=lacks("B"),
        against="absent-b-is-one",
    ),
    *of_sequences(
        "b.directions",
        "B holds the biases of each direction.",
        "input B",
        when=BIDIRECTIONAL,
        against="second-direction-reuses-biases",
    ),
    *(
        row
        for of, names in REQUIRED.items()
        for row in refused(
            "inputs.refused-missing",
            "Every required input must be there.",
            "inputs",
            of=of,
            when=lacks_required(*names),
        )
    ),
)
_OUTPUTS = (
    *of_sequences(
        "y.steps",
        "Y has the hidden state after every step.",
        "output Y",
        when=asks("Y"),
        against="y-one-step-late",
    ),
    *of_sequences(
        "y.shape",
        "Y is [batch_size, num_directions, seq_length, hidden_size].",
        "output Y",
        when=asks("Y") & BIDIRECTIONAL,
        against="y-directions-beside-units layout-of-y-ignored",
    ),
    *of_sequences(
        "ho.last",
        "Ho is the last hidden state.",
        "output Ho",
        when=asks("Ho") & RAGGED,
        against="last-h-at-t-minus-1 last-h-one-step-early last-states-run-on",
    ),
    *of_sequences(
        "ho.shape",
        "Ho is [batch_size, num_directions, hidden_size].",
        "output Ho",
        when=asks("Ho") & BIDIRECTIONAL,
        against="layout-of-last-states-ignored last-states-directions-swapped",
    ),
    *said(
        "co.last",
        "Co is the last cell state.",
        "output Co",
        of=LSTMS,
        when=asks("Co"),
        against="last-h-is-last-c last-c-is-last-h",
    ),
)
_TYPES = (
    *(
        row
        for name in ("float32", "float16", "bfloat16", "float64")
        for row in said(f"types.{name}", f"T1 may be {name}.", "type T1", when=of_dtype(name))
    ),
    *(
        row
        for name in ("int32", "int64")
        for row in of_sequences(
            f"types.lengths-{name}",
            f"T2 may be {name}.",
            "type T2",
            when=CaseCondition(
                f"has lengths of {name}",
                lambda c, name=name: c.lengths is not None and c.lengths.dtype.name == name,  # type: ignore[misc]
            ),
        )
    ),
)

_VERSIONS = tuple(
    row
    for operator in OPERATORS.values()
    if operator.type in LSTMS.split()
    for row in statements(
        f"version-{operator.version}",
        f"Operation set {operator.version} lists {operator.type}.",
        "versioned name",
        of=operator.type,
        since=operator.version,
        until=operator.version,
    )
)

ROWS = (*_EQUATION, *_ATTRIBUTES, *_RESETS, *_DIRECTIONS, *_INPUTS, *_OUTPUTS, *_TYPES, *_VERSIONS)
