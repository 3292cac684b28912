"""Statements about OpenVINO's RNNSequence-5."""

from __future__ import annotations

from functools import partial

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
    lacks_required,
    leaves_out,
    of_dtype,
    uses,
    walks,
    writes,
)
from rnncli.tracing.statement import CaseCondition, CheckKind, statements
from rnncli.tracing.violations import WRONG_FORMULAS

said = partial(statements, of="RNNSequence")
refused = partial(said, kind=CheckKind.REJECTION)
DIRECTION = "attribute direction"

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
        against="activation-f-missing",
    ),
    *said(
        "cell.steps",
        "Cells follow one another: each has the state of the one before.",
        "detailed description",
        against="batch-rows-mixed y-one-step-late",
    ),
    *said(
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
        "Without activations the activation is tanh.",
        "attribute activations",
        when=leaves_out("activations"),
        against="activation-f-is-relu activation-f-is-sigmoid",
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
    *said(
        "direction.forward",
        "forward walks from the first step to the last.",
        DIRECTION,
        when=walks("forward"),
        against="forward-runs-reverse",
    ),
    *said(
        "direction.reverse",
        "reverse walks from the last step to the first.",
        DIRECTION,
        when=walks("reverse"),
        against="reverse-runs-forward",
    ),
    *said(
        "direction.bidirectional",
        "bidirectional does both, and puts the outputs side by side.",
        DIRECTION,
        when=BIDIRECTIONAL,
        against="second-direction-missing second-direction-continues outputs-of-directions-swapped",
    ),
    *said(
        "direction.one",
        "One direction has num_directions 1 in every shape.",
        DIRECTION,
        when=ONE_DIRECTION,
        against="layout-of-y-ignored",
    ),
    *refused(
        "direction.refused",
        "There is no other direction, and one is required.",
        DIRECTION,
        when=breaks_attribute("direction"),
    ),
)
_INPUTS = (
    *said(
        "x.shape",
        "X is [batch_size, seq_length, input_size].",
        "input X",
        when=X_OF_THREE_SIZES,
        against="layout-of-x-ignored",
    ),
    *said("h.given", "H is the first hidden state.", "input H", against="initial-h-ignored"),
    *said(
        "h.shape",
        "H is [batch_size, num_directions, hidden_size].",
        "input H",
        when=BIDIRECTIONAL,
        against="layout-of-initial-states-ignored initial-states-directions-swapped"
        " initial-states-of-first-direction",
    ),
    *said(
        "sequence_lengths.given",
        "sequence_lengths is the number of steps of each sequence.",
        "input sequence_lengths",
        when=RAGGED,
        against="lengths-ignored lengths-one-less lengths-one-more lengths-largest"
        " lengths-smallest lengths-of-first-sequence lengths-reversed",
    ),
    *said(
        "sequence_lengths.negative",
        "Nothing is said of negative lengths.",
        "input sequence_lengths",
        why_not="undefined by the specification",
    ),
    *said(
        "w.directions",
        "W holds the weights of each direction.",
        "input W",
        when=BIDIRECTIONAL,
        against="second-direction-reuses-w weights-of-directions-swapped",
    ),
    *said(
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
        "b.directions",
        "B holds the biases of each direction.",
        "input B",
        when=BIDIRECTIONAL,
        against="second-direction-reuses-biases",
    ),
    *refused(
        "inputs.refused-missing",
        "Every input is required.",
        "inputs",
        when=lacks_required("X", "H", "sequence_lengths", "W", "R", "B"),
    ),
)
_OUTPUTS = (
    *said(
        "y.steps",
        "Y has the hidden state after every step.",
        "output Y",
        when=asks("Y"),
        against="y-one-step-late",
    ),
    *said(
        "y.shape",
        "Y is [batch_size, num_directions, seq_length, hidden_size].",
        "output Y",
        when=asks("Y") & BIDIRECTIONAL,
        against="y-directions-beside-units layout-of-y-ignored",
    ),
    *said(
        "ho.last",
        "Ho is the last hidden state.",
        "output Ho",
        when=asks("Ho") & RAGGED,
        against="last-h-at-t-minus-1 last-h-one-step-early last-states-run-on",
    ),
    *said(
        "ho.shape",
        "Ho is [batch_size, num_directions, hidden_size].",
        "output Ho",
        when=asks("Ho") & BIDIRECTIONAL,
        against="layout-of-last-states-ignored last-states-directions-swapped",
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
        for row in said(
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

ROWS = (*_EQUATION, *_ATTRIBUTES, *_DIRECTIONS, *_INPUTS, *_OUTPUTS, *_TYPES)
