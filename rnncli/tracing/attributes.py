"""Statements about the attributes of ONNX's operators."""

from __future__ import annotations

from rnncli.tracing.conditions import (
    ALPHA_AFTER_NONE,
    BETA_AFTER_NONE,
    BIDIRECTIONAL,
    CLIPS,
    CLIPS_NOTHING,
    ONE_DIRECTION,
    asks,
    asks_not,
    differs_under,
    gives,
    in_layout,
    leaves_out,
    uses_without,
    walks,
    writes,
)
from rnncli.tracing.statement import CaseCondition, Statement, statements

DIRECTION, ACTIVATIONS = "attribute direction", "attribute activations"
ALPHA, BETA = "attribute activation_alpha", "attribute activation_beta"
CLIP, LAYOUT, HIDDEN = "attribute clip", "attribute layout", "attribute hidden_size"
RESET, FORGET = "attribute linear_before_reset", "attribute input_forget"
SEQUENCE = "attribute output_sequence"
NO_ACTIVATIONS = leaves_out("activations")

_VALUES = (
    *statements(
        "alpha.given",
        "activation_alpha scales functions that take an alpha.",
        ALPHA,
        when=writes("activation_alpha"),
        against="alpha-ignored alpha-beta-exchanged",
    ),
    *statements(
        "alpha.order",
        "Values of activation_alpha are consumed in the order of the functions.",
        ALPHA,
        when=ALPHA_AFTER_NONE,
        against="alpha-positional",
    ),
    *statements(
        "alpha.directions",
        "Backward functions consume activation_alpha from where forward ones have stopped.",
        ALPHA,
        when=writes("activation_alpha") & BIDIRECTIONAL,
        against="alpha-beta-restarted",
    ),
    *statements(
        "beta.given",
        "activation_beta scales functions that take a beta.",
        BETA,
        when=writes("activation_beta"),
        against="beta-ignored alpha-beta-exchanged",
    ),
    *statements(
        "beta.order",
        "Values of activation_beta are consumed in the order of the functions.",
        BETA,
        when=BETA_AFTER_NONE,
        against="beta-positional",
    ),
    *statements(
        "beta.directions",
        "Backward functions consume activation_beta from where forward ones have stopped.",
        BETA,
        when=writes("activation_beta") & BIDIRECTIONAL,
        against="alpha-beta-restarted",
    ),
)
_DEFAULTS = tuple(
    row
    for name, key, value in (
        ("LeakyRelu", "alpha", "0.01"),
        ("ThresholdedRelu", "alpha", "1"),
        ("HardSigmoid", "alpha", "0.2"),
        ("Elu", "alpha", "1"),
        ("HardSigmoid", "beta", "0.5"),
    )
    for operators, since in (("RNN LSTM", 1), ("GRU", 3))  # GRU-1 does not state it
    for row in statements(
        f"{key}.default.{name.lower()}",
        f"Where no {key} is given for {name}, that of ONNX's {name} is taken: {value}.",
        f"attribute activation_{key}",
        of=operators,
        since=since,
        when=uses_without(name, key),
        against=f"default-{key}-of-{name.lower()} {key}-default-zero",
    )
)
_NO_DEFAULTS = statements(
    "alpha.default.none",
    "Affine and ScaledTanh have the defaults of the ONNX operators of these names.",
    ALPHA,
    why_not="ONNX has no such operators any more, so what is taken is nobody's word",
)
_ACTIVATIONS = (
    *statements(
        "activations.given",
        "A node names the functions that it wants.",
        ACTIVATIONS,
        when=writes("activations"),
        against="activations-ignored activation-f-ignored activation-g-ignored"
        " activation-h-ignored",
    ),
    *statements(
        "activations.order",
        "The list has f first, then g, then h.",
        ACTIVATIONS,
        of="GRU LSTM",
        when=writes("activations"),
        against="activations-f-g-swapped activations-f-h-swapped activations-g-h-swapped",
    ),
    *statements(
        "activations.directions",
        "A bidirectional node names the functions of forward, then those of backward.",
        ACTIVATIONS,
        when=writes("activations") & BIDIRECTIONAL,
        against="second-direction-reuses-activations activations-by-letter",
    ),
    *statements(
        "activations.default",
        "Without activations the functions are those of the equations: Tanh, and Sigmoid for"
        " gates.",
        ACTIVATIONS,
        when=NO_ACTIVATIONS & ONE_DIRECTION,
        against="activation-f-is-relu activation-f-is-sigmoid activation-f-is-tanh"
        " activation-g-is-relu activation-g-is-sigmoid activation-h-is-relu"
        " activation-h-is-sigmoid",
    ),
    *statements(
        "activations.default.directions",
        "Without activations both directions have the default functions.",
        ACTIVATIONS,
        when=NO_ACTIVATIONS & BIDIRECTIONAL,
        against="activation-f-is-relu activation-g-is-relu activation-h-is-relu",
    ),
)
_CLIP = (
    *statements(
        "clip.bounds",
        "A value beyond the threshold becomes the threshold, on both sides.",
        CLIP,
        when=writes("clip") & CLIPS,
        against="clip-ignored clip-doubled clip-halved clip-from-above-only clip-of-magnitude",
    ),
    *statements(
        "clip.within",
        "A value within the threshold stays as it is.",
        CLIP,
        when=writes("clip") & CLIPS_NOTHING,
        against="clip-of-magnitude",
    ),
    *statements(
        "clip.preactivations",
        "The clip is of what an activation is given: the whole sum, biases included.",
        CLIP,
        when=writes("clip") & CLIPS,
        against="clip-before-bias clip-of-input-product clip-of-recurrent-product clip-of-values"
        " clip-of-h clip-of-c",
    ),
    *statements(
        "clip.every-activation",
        "Every activation's input is clipped.",
        CLIP,
        of="GRU LSTM",
        when=writes("clip") & CLIPS,
        against="clip-of-f-only clip-of-g-only",
    ),
    *statements(
        "clip.hidden",
        "The cell state that h is given is clipped, too; contested, a reading.",
        CLIP,
        of="LSTM",
        when=writes("clip") & differs_under("clip-scope=gates"),
    ),
    *statements(
        "clip.directions",
        "Both directions of a bidirectional node are clipped.",
        CLIP,
        when=writes("clip") & BIDIRECTIONAL,
        against="clip-of-first-direction-only",
    ),
    *statements(
        "clip.default",
        "Without clip nothing is clipped.",
        CLIP,
        when=leaves_out("clip"),
        against="clip-where-none-is-given",
    ),
)
_DIRECTION = (
    *statements(
        "direction.forward",
        "forward walks from the first step to the last.",
        DIRECTION,
        when=writes("direction", "forward"),
        against="forward-runs-reverse",
    ),
    *statements(
        "direction.reverse",
        "reverse walks from the last step to the first.",
        DIRECTION,
        when=writes("direction", "reverse"),
        against="reverse-runs-forward",
    ),
    *statements(
        "direction.bidirectional",
        "bidirectional walks both ways.",
        DIRECTION,
        when=writes("direction", "bidirectional"),
        against="reverse-runs-forward forward-runs-reverse second-direction-missing"
        " second-direction-continues directions-walked-the-other-way",
    ),
    *statements(
        "direction.default",
        "Without direction a node walks forward.",
        DIRECTION,
        when=leaves_out("direction"),
        against="forward-runs-reverse",
    ),
    *statements(
        "direction.misspelt",
        "GRU-1 spells its default `foward`.",
        DIRECTION,
        of="GRU",
        until=1,
        when=writes("direction", "foward"),
        against="forward-runs-reverse",
    ),
)
_HIDDEN = (
    *statements(
        "hidden_size.given",
        "hidden_size is the number of units.",
        HIDDEN,
        when=writes("hidden_size"),
        against="units-before-gates input-weights-columns-first hidden-tail-4",
    ),
    *statements(
        "hidden_size.absent",
        "hidden_size need not be written: it has no default and is not required.",
        HIDDEN,
        when=leaves_out("hidden_size"),
    ),
)


def _layout(name: str, sentence: str, when: CaseCondition, against: str) -> tuple[Statement, ...]:
    return statements(f"layout.{name}", sentence, LAYOUT, since=14, when=when, against=against)


ONE = in_layout(1)
_LAYOUT = (
    *_layout(
        "zero",
        "Layout 0 has time first in every tensor.",
        writes("layout", 0),
        "layout-of-x-ignored layout-of-y-ignored",
    ),
    *_layout("default", "Without layout it is 0.", leaves_out("layout"), "layout-ignored"),
    *_layout("one.x", "Layout 1 has X as [batch, time, input].", ONE, "layout-of-x-ignored"),
    *_layout(
        "one.y",
        "Layout 1 has Y as [batch, time, direction, unit].",
        ONE & asks("Y"),
        "layout-of-y-ignored",
    ),
    *_layout(
        "one.initial_h",
        "Layout 1 has initial_h as [batch, direction, unit].",
        ONE & gives("initial_h") & BIDIRECTIONAL,
        "layout-of-initial-states-ignored",
    ),
    *_layout(
        "one.y_h",
        "Layout 1 has Y_h as [batch, direction, unit].",
        ONE & asks("Y_h") & BIDIRECTIONAL,
        "layout-of-last-states-ignored",
    ),
    *statements(
        "layout.one.initial_c",
        "Layout 1 has initial_c as [batch, direction, unit].",
        LAYOUT,
        of="LSTM",
        since=14,
        when=ONE & gives("initial_c") & BIDIRECTIONAL,
        against="layout-of-initial-states-ignored",
    ),
    *statements(
        "layout.one.y_c",
        "Layout 1 has Y_c as [batch, direction, unit].",
        LAYOUT,
        of="LSTM",
        since=14,
        when=ONE & asks("Y_c") & BIDIRECTIONAL,
        against="layout-of-last-states-ignored",
    ),
)
_OWN = (
    *statements(
        "linear_before_reset.one",
        "linear_before_reset 1 transforms Ht-1 before the reset gate is applied.",
        RESET,
        of="GRU",
        since=3,
        when=writes("linear_before_reset", 1),
        against="linear-before-reset-ignored linear-before-reset-bias-outside",
    ),
    *statements(
        "linear_before_reset.other",
        "Any other number than 0 does what 1 does.",
        f"equations; {RESET}",
        of="GRU",
        since=3,
        when=CaseCondition(
            "writes linear_before_reset other than 0 and 1",
            lambda c: c.written.get("linear_before_reset", 0) not in (0, 1),
        ),
        against="linear-before-reset-ignored",
    ),
    *statements(
        "linear_before_reset.default",
        "Without linear_before_reset the reset comes first.",
        RESET,
        of="GRU",
        since=3,
        when=leaves_out("linear_before_reset"),
        against="linear-before-reset-always",
    ),
    *statements(
        "input_forget.one",
        "input_forget 1 couples the gates: the forget gate is what the input gate leaves.",
        FORGET,
        of="LSTM",
        when=writes("input_forget", 1),
        against="input-forget-ignored input-forget-other-way",
    ),
    *statements(
        "input_forget.default",
        "Without input_forget both gates have weights of their own.",
        FORGET,
        of="LSTM",
        when=leaves_out("input_forget"),
        against="input-forget-always",
    ),
    *statements(
        "output_sequence.one",
        "output_sequence 1 asks for Y.",
        SEQUENCE,
        until=3,
        when=writes("output_sequence", 1) & asks("Y"),
        against="y-one-step-late",
    ),
    *statements(
        "output_sequence.zero",
        "Where output_sequence is 0, its default, Y may be left out.",
        SEQUENCE,
        until=3,
        when=CaseCondition("has output_sequence 0", lambda c: not c.written.get("output_sequence"))
        & asks_not("Y"),
        against="last-h-one-step-early",
    ),
    *statements(
        "num_directions",
        "There are two directions where direction is bidirectional, else one.",
        "notations",
        when=walks("bidirectional"),
        against="second-direction-missing outputs-of-directions-swapped",
    ),
)

ROWS = (
    *(*_VALUES, *_DEFAULTS, *_NO_DEFAULTS, *_ACTIVATIONS),
    *(*_CLIP, *_DIRECTION, *_HIDDEN, *_LAYOUT, *_OWN),
)
