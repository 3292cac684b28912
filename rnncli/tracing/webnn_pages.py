"""Statements about the sections gru, gruCell, lstm and lstmCell of the Web Neural Network API."""

from __future__ import annotations

from functools import partial

from rnncli.operators import OPERATORS
from rnncli.tracing.conditions import (
    BIDIRECTIONAL,
    EMPTY,
    STATES_OF_TWO_SIZES,
    X_OF_THREE_SIZES,
    asks,
    breaks_attribute,
    breaks_output,
    breaks_rank,
    breaks_shape,
    breaks_type,
    differs_under,
    gives,
    lacks,
    lacks_required,
    leaves_out,
    of_dtype,
    uses,
    walks,
    writes,
)
from rnncli.tracing.statement import CheckKind, statements
from rnncli.tracing.tensors import GATE_ORDERS
from rnncli.tracing.violations import WRONG_FORMULAS

SEQUENCES, CELLS = "webnn.gru webnn.lstm", "webnn.gruCell webnn.lstmCell"
GRUS, LSTMS = "webnn.gru webnn.gruCell", "webnn.lstm webnn.lstmCell"
EVERY = f"{SEQUENCES} {CELLS}"
said = partial(statements, of=EVERY)
of_sequences = partial(statements, of=SEQUENCES)
of_cells = partial(statements, of=CELLS)
refused = partial(said, kind=CheckKind.REJECTION)
RESET = "option resetAfter"
# Inputs with a rule of their own about their shape and their type, by operator.
CHECKED = {name: [row.name for row in OPERATORS[name].inputs] for name in EVERY.split()}

_EQUATION = (
    *said(
        "cell.products",
        "A gate adds the products of the input and of the hidden state with its weights.",
        "emulation",
        against="input-product-dropped recurrent-product-dropped recurrent-weights-transposed"
        " input-weights-columns-first",
    ),
    *said(
        "cell.activation",
        "The activation is applied to the sum.",
        "emulation",
        against="activation-f-missing activation-g-missing activation-h-missing",
    ),
    *said(
        "cell.gru",
        "The new state is what z keeps of the old one, and 1 - z of the new gate.",
        "emulation",
        of=GRUS,
        against="z-inverted z-ignored reset-ignored reset-inverted",
    ),
    *said(
        "cell.lstm",
        "The cell state is what f keeps of it and what i lets in of g; o lets its activation out.",
        "emulation",
        of=LSTMS,
        against="input-gate-open forget-gate-open output-gate-open",
    ),
    *of_sequences(
        "cell.steps",
        "A step has the states of the one before.",
        "emulation",
        against="batch-rows-mixed",
    ),
    *said(
        "platform",
        "Limits and smaller bounds of an implementation apply.",
        "opSupportLimits",
        why_not="a property of an implementation, not of the operator",
    ),
)
_WEIGHTS = (
    *said(
        "layout.gates",
        "layout is the order of the gates in the weights.",
        "option layout",
        when=writes("layout"),
        against=f"{GATE_ORDERS.format('w')} {GATE_ORDERS.format('r')}",
    ),
    *said(
        "layout.default",
        "Without layout the order is zrn, or iofg.",
        "option layout",
        when=leaves_out("layout"),
        against=f"{GATE_ORDERS.format('w')} {GATE_ORDERS.format('r')}",
    ),
    *said(
        "layout.biases",
        "layout is the order of the gates in both biases.",
        "options bias, recurrentBias",
        when=gives("bias", "recurrentBias"),
        against=GATE_ORDERS.format("b"),
    ),
    *refused(
        "layout.refused",
        "layout is one of the two orders.",
        "option layout",
        when=breaks_attribute("layout"),
    ),
    *said(
        "bias.both",
        "Both biases are added.",
        "options bias, recurrentBias",
        when=gives("bias", "recurrentBias"),
        against="input-bias-dropped recurrent-bias-dropped input-bias-doubled",
    ),
    *said(
        "bias.alone",
        "bias needs no recurrentBias.",
        "option bias",
        when=gives("bias") & lacks("recurrentBias"),
        against="input-bias-dropped",
    ),
    *said(
        "recurrentBias.alone",
        "recurrentBias needs no bias.",
        "option recurrentBias",
        when=gives("recurrentBias") & lacks("bias"),
        against="recurrent-bias-dropped",
    ),
    *said(
        "bias.default",
        "Without biases nothing is added.",
        "options bias, recurrentBias",
        when=lacks("bias", "recurrentBias"),
        against="absent-b-is-one",
    ),
    *of_sequences(
        "weights.directions",
        "With both, weights and biases have those of each direction.",
        "option direction",
        when=BIDIRECTIONAL & gives("bias", "recurrentBias"),
        against="second-direction-reuses-w second-direction-reuses-r"
        " second-direction-reuses-biases weights-of-directions-swapped",
    ),
    *said(
        "peepholes.order",
        "peepholeWeight holds i, o, f.",
        "option peepholeWeight",
        of=LSTMS,
        when=gives("peepholeWeight"),
        against="peepholes-in-order-ifo peepholes-in-order-ofi peepholes-in-order-oif"
        " peepholes-in-order-fio peepholes-in-order-foi",
    ),
    *said(
        "peepholes.layout",
        "The order of the peephole weights is the same in the other layout.",
        "option peepholeWeight",
        of=LSTMS,
        when=gives("peepholeWeight") & writes("layout", "ifgo"),
        against="peepholes-in-order-ifo",
    ),
    *said(
        "peepholes.state",
        "All three gates see the cell state before the step.",
        "emulation",
        of=LSTMS,
        when=gives("peepholeWeight") & differs_under("peephole-o=new"),
        against="peepholes-of-new-cell-for-o peepholes-dropped-from-i peepholes-dropped-from-o"
        " peepholes-dropped-from-f",
    ),
)
_STATES = (
    *of_sequences(
        "initialHiddenState.given",
        "initialHiddenState is the first hidden state.",
        "option initialHiddenState",
        when=gives("initialHiddenState"),
        against="initial-h-ignored",
    ),
    *of_sequences(
        "initialHiddenState.shape",
        "initialHiddenState is [numDirections, batchSize, hiddenSize].",
        "option initialHiddenState",
        when=gives("initialHiddenState") & BIDIRECTIONAL,
        against="initial-states-directions-swapped initial-states-of-first-direction",
    ),
    *statements(
        "initialCellState.given",
        "initialCellState is the first cell state.",
        "option initialCellState",
        of="webnn.lstm",
        when=gives("initialCellState"),
        against="initial-c-ignored",
    ),
    *of_sequences(
        "states.default",
        "A state that is not given is zero.",
        "options initialHiddenState, initialCellState",
        when=lacks("initialHiddenState", "initialCellState"),
        against="absent-initial-h-is-one absent-initial-c-is-one",
    ),
    *of_cells(
        "hiddenState",
        "hiddenState is the hidden state before the step.",
        "argument hiddenState",
        against="initial-h-ignored",
    ),
    *statements(
        "cellState",
        "cellState is the cell state before the step.",
        "argument cellState",
        of="webnn.lstmCell",
        against="initial-c-ignored",
    ),
)
_OPTIONS = (
    *said(
        "hiddenSize",
        "hiddenSize is the number of units.",
        "argument hiddenSize",
        when=STATES_OF_TWO_SIZES,
        against="input-weights-columns-first hidden-tail-4",
    ),
    *refused(
        "hiddenSize.refused",
        "hiddenSize is required, at least 1, and both biases fit a dimension.",
        "argument hiddenSize",
        when=breaks_attribute("hiddenSize"),
    ),
    *of_sequences(
        "steps",
        "steps is the number of time steps.",
        "argument steps",
        when=X_OF_THREE_SIZES,
        against="last-step-missing",
    ),
    *refused(
        "steps.refused",
        "steps is greater than 0.",
        "argument steps",
        of=SEQUENCES,
        when=breaks_attribute("steps"),
    ),
    *refused(
        "steps.refused-shape",
        "steps is the first dimension of input.",
        "argument steps",
        of=SEQUENCES,
        when=breaks_shape("input"),
    ),
    *said(
        "resetAfter.default",
        "Without resetAfter the reset comes after the product and its recurrent bias.",
        RESET,
        of=GRUS,
        when=leaves_out("resetAfter"),
        against="linear-before-reset-ignored linear-before-reset-bias-outside",
    ),
    *said(
        "resetAfter.true",
        "With resetAfter the reset comes after the product and its recurrent bias.",
        RESET,
        of=GRUS,
        when=writes("resetAfter", True),
        against="linear-before-reset-ignored linear-before-reset-bias-outside",
    ),
    *said(
        "resetAfter.false",
        "Without it the reset comes before the product.",
        RESET,
        of=GRUS,
        when=writes("resetAfter", False),
        against="linear-before-reset-always",
    ),
    *(
        row
        for name in ("Relu", "Sigmoid", "Tanh")
        for row in said(
            f"activations.{name.lower()}",
            f"{name.lower()} may be an activation.",
            "option activations",
            when=uses(name),
            against=" ".join(f"{name.lower()}-is-{id_}" for id_, _, _ in WRONG_FORMULAS[name]),
        )
    ),
    *said(
        "activations.default",
        "Without activations gates have sigmoid, and all else tanh.",
        "option activations",
        when=leaves_out("activations"),
        against="activation-f-is-relu activation-f-is-tanh activation-g-is-relu"
        " activation-g-is-sigmoid activation-h-is-relu activation-h-is-sigmoid",
    ),
    *refused(
        "activations.refused",
        "activations are two, or three, of relu, sigmoid and tanh.",
        "option activations",
        when=breaks_attribute("activations"),
    ),
)
_DIRECTIONS = (
    *of_sequences(
        "direction.forward",
        "forward walks from the first step to the last.",
        "option direction",
        when=writes("direction", "forward"),
        against="forward-runs-reverse",
    ),
    *of_sequences(
        "direction.default",
        "Without direction it is forward.",
        "option direction",
        when=leaves_out("direction"),
        against="forward-runs-reverse",
    ),
    *of_sequences(
        "direction.backward",
        "backward walks from the last step to the first.",
        "option direction",
        when=walks("reverse"),
        against="reverse-runs-forward",
    ),
    *of_sequences(
        "direction.both",
        "both does both.",
        "option direction",
        when=BIDIRECTIONAL,
        against="second-direction-missing second-direction-continues outputs-of-directions-swapped",
    ),
    *refused(
        "direction.refused",
        "There is no other direction.",
        "option direction",
        of=SEQUENCES,
        when=breaks_attribute("direction"),
    ),
)
_OUTPUTS = (
    *said(
        "outputs.hidden",
        "The first output is the hidden state after the last step.",
        "returns",
        when=asks("outputHidden"),
        against="last-h-is-initial last-h-is-last-c",
    ),
    *said(
        "outputs.cell",
        "The second output of an LSTM is the cell state after the last step.",
        "returns",
        of=LSTMS,
        when=asks("outputCell"),
        against="last-c-is-last-h last-c-is-initial",
    ),
    *of_sequences(
        "outputs.directions",
        "The last states are [numDirections, batchSize, hiddenSize].",
        "returns",
        when=asks("outputHidden") & BIDIRECTIONAL,
        against="last-states-directions-swapped last-states-of-first-direction",
    ),
    *of_sequences(
        "outputs.sequence",
        "With returnSequence there is the hidden state after every step, each at its step.",
        "option returnSequence",
        when=asks("outputSequence") & walks("reverse"),
        against="y-one-step-late reverse-y-in-order-of-computation",
    ),
    *of_sequences(
        "outputs.sequence-shape",
        "The sequence is [steps, numDirections, batchSize, hiddenSize].",
        "returns",
        when=asks("outputSequence") & BIDIRECTIONAL,
        against="y-directions-beside-units",
    ),
    *refused(
        "outputs.refused-sequence",
        "Without returnSequence there is no sequence.",
        "option returnSequence",
        of=SEQUENCES,
        when=breaks_output("outputSequence"),
    ),
)
_TENSORS = (
    *(
        row
        for name in ("float32", "float16")
        for row in said(f"types.{name}", f"Tensors may be {name}.", "limits", when=of_dtype(name))
    ),
    *refused(
        "input.refused-type", "input is float32 or float16.", "limits", when=breaks_type("input")
    ),
    *refused("input.refused-rank", "input has its rank.", "limits", when=breaks_rank("input")),
    *refused("empty.refused", "No dimension is 0.", "valid dimension", of=SEQUENCES, when=EMPTY),
    *(
        row
        for operator, names in CHECKED.items()
        for name in names[1:]
        for row in (
            *refused(
                f"{name}.refused-shape",
                f"{name} has the shape that the sizes give.",
                "method steps",
                of=operator,
                when=breaks_shape(name),
            ),
            *refused(
                f"{name}.refused-type",
                f"{name} has the type of input.",
                "limits",
                of=operator,
                when=breaks_type(name),
            ),
        )
    ),
    *(
        row
        for operator in EVERY.split()
        for row in refused(
            "inputs.refused-missing",
            "Every argument that is an operand must be there.",
            "arguments",
            of=operator,
            when=lacks_required(*(t.name for t in OPERATORS[operator].inputs if not t.optional)),
        )
    ),
)

ROWS = (
    *(*_EQUATION, *_WEIGHTS, *_STATES, *_OPTIONS),
    *(*_DIRECTIONS, *_OUTPUTS, *_TENSORS),
)
