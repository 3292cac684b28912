"""Statements that only cases that must be refused can check."""

from __future__ import annotations

from functools import partial

from rnncli.tracing.conditions import (
    BFLOAT16_TOO_EARLY,
    MIXED_TYPES,
    UNKNOWN_ACTIVATION,
    WRONG_COUNT,
    WRONG_DIRECTIONS,
    WRONG_HIDDEN_SIZE,
    WRONG_LENGTH,
    breaks_attribute,
    breaks_rank,
    breaks_shape,
    breaks_type,
    lacks_required,
)
from rnncli.tracing.statement import ONNX, CheckKind, statements

refused = partial(statements, kind=CheckKind.REJECTION)

_ATTRIBUTES = (
    *refused(
        "direction.refused",
        "There is no other direction than the three.",
        "attribute direction",
        when=breaks_attribute("direction"),
    ),
    *refused(
        "activations.refused-name",
        "There is no other function than those listed.",
        "attribute activations",
        when=UNKNOWN_ACTIVATION,
    ),
    *refused(
        "activations.refused-count",
        "There are as many functions as letters, twice as many in two directions.",
        "attribute activations",
        when=WRONG_COUNT,
    ),
    *refused(
        "clip.refused",
        "A threshold bounds a range around 0: it is positive.",
        "attribute clip",
        when=breaks_attribute("clip"),
    ),
    *refused(
        "hidden_size.refused",
        "hidden_size is the size that the weights have.",
        "attribute hidden_size",
        when=WRONG_HIDDEN_SIZE,
    ),
    *refused(
        "layout.refused",
        "layout is 0 or 1.",
        "attribute layout",
        since=14,
        when=breaks_attribute("layout"),
    ),
    *refused(
        "layout.refused-early",
        "There is no layout before opset 14.",
        "attributes",
        until=13,
        when=breaks_attribute("layout"),
    ),
    *refused(
        "linear_before_reset.refused-early",
        "There is no linear_before_reset before opset 3.",
        "attributes",
        of="GRU",
        until=1,
        when=breaks_attribute("linear_before_reset"),
    ),
    *refused(
        "output_sequence.refused-late",
        "There is no output_sequence from opset 7 on.",
        "attributes",
        since=7,
        when=breaks_attribute("output_sequence"),
    ),
    *refused(
        "num_directions.refused",
        "Weights are of as many directions as there are.",
        "notations",
        when=WRONG_DIRECTIONS,
    ),
)
_SHAPES = tuple(
    row
    for operators, names in ((ONNX, "W R B sequence_lens initial_h"), ("LSTM", "initial_c P"))
    for name in names.split()
    for row in refused(
        f"{name.lower()}.refused-shape",
        f"{name} has the shape that the sizes give.",
        f"input {name}",
        of=operators,
        when=breaks_shape(name),
    )
)
_TENSORS = (
    *refused("x.refused-rank", "X has three dimensions.", "input X", when=breaks_rank("X")),
    *refused(
        "inputs.refused-missing",
        "X, W and R are required.",
        "inputs",
        when=lacks_required("X", "W", "R"),
    ),
    *refused(
        "sequence_lens.refused-range",
        "A length is between 0 and seq_length.",
        "input sequence_lens",
        when=WRONG_LENGTH,
    ),
    *refused(
        "types.refused-lengths",
        "Lengths of another type than int32 are not allowed.",
        "type T1",
        when=breaks_type("sequence_lens"),
    ),
    *refused(
        "types.refused-mixture",
        "All tensors of T have the same type.",
        "type T",
        when=MIXED_TYPES,
    ),
    *refused(
        "types.refused-bfloat16",
        "There is no bfloat16 before opset 22.",
        "type T",
        until=14,
        when=BFLOAT16_TOO_EARLY,
    ),
)

ROWS = (*_ATTRIBUTES, *_SHAPES, *_TENSORS)
