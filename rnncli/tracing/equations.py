"""Statements about the equations: every term of every line, with the bugs that drop it."""

from __future__ import annotations

from rnncli.tracing.conditions import (
    INITIALIZERS,
    differs_under,
    leaves_out,
    uses,
    writes,
)
from rnncli.tracing.statement import statements
from rnncli.tracing.violations import WRONG_FORMULAS

EQUATIONS = "equations"


def _terms(gate: str) -> str:
    """Return the violations that each omit one term of a gate."""
    terms = ("input-product", "recurrent-product", "input-bias", "recurrent-bias")
    return " ".join(f"{term}-of-{gate}-dropped" for term in terms)


_RNN = (
    *statements(
        "equations.input",
        "The pre-activation has a product of Xt with the transposed W.",
        EQUATIONS,
        of="RNN",
        against="input-product-dropped input-weights-columns-first",
    ),
    *statements(
        "equations.recurrence",
        "The pre-activation has a product of Ht-1 with R.",
        EQUATIONS,
        of="RNN",
        against="recurrent-product-dropped batch-rows-mixed",
    ),
    *statements(
        "equations.biases",
        "Both biases are added to the pre-activation, each once.",
        EQUATIONS,
        of="RNN",
        against="input-bias-dropped input-bias-doubled recurrent-bias-dropped"
        " recurrent-bias-doubled",
    ),
    *statements(
        "equations.f",
        "Ht is f of the pre-activation.",
        EQUATIONS,
        of="RNN",
        against="activation-f-missing activation-f-is-sigmoid",
    ),
)
_GRU = (
    *statements(
        "equations.z",
        "zt is f of its four terms: two products and two biases.",
        EQUATIONS,
        of="GRU",
        against=f"{_terms('z')} activation-f-missing",
    ),
    *statements(
        "equations.r",
        "rt is f of its four terms: two products and two biases.",
        EQUATIONS,
        of="GRU",
        against=f"{_terms('r')} activation-f-missing reset-ignored",
    ),
    *statements(
        "equations.h.before",
        "ht is g of Xt's product, the product of the reset Ht-1, and both biases.",
        f"{EQUATIONS}, linear_before_reset = 0",
        of="GRU",
        when=leaves_out("linear_before_reset"),
        against=f"{_terms('h')} activation-g-missing linear-before-reset-always reset-inverted",
    ),
    *statements(
        "equations.h.after",
        "ht is g of Xt's product, Wbh, and the reset sum of Ht-1's product and Rbh.",
        f"{EQUATIONS}, linear_before_reset != 0",
        of="GRU",
        since=3,
        when=writes("linear_before_reset"),
        against=f"{_terms('h')} activation-g-missing linear-before-reset-ignored"
        " linear-before-reset-bias-outside reset-inverted",
    ),
    *statements(
        "equations.H",
        "Ht blends ht and Ht-1: 1 - zt of the one and zt of the other.",
        EQUATIONS,
        of="GRU",
        against="z-inverted z-ignored z-of-old-state-only z-of-new-state-only",
    ),
)
_LSTM = (
    *statements(
        "equations.i",
        "it is f of two products, two biases, and Ct-1 times its peephole.",
        EQUATIONS,
        of="LSTM",
        against=f"{_terms('i')} activation-f-missing peepholes-dropped-from-i",
    ),
    *statements(
        "equations.f",
        "ft is f of two products, two biases, and Ct-1 times its peephole.",
        EQUATIONS,
        of="LSTM",
        against=f"{_terms('f')} activation-f-missing peepholes-dropped-from-f forget-bias-plus-one",
    ),
    *statements(
        "equations.c",
        "ct is g of two products and two biases, without a peephole.",
        EQUATIONS,
        of="LSTM",
        against=f"{_terms('c')} activation-g-missing",
    ),
    *statements(
        "equations.C",
        "Ct is what ft keeps of Ct-1 and what it lets in of ct.",
        EQUATIONS,
        of="LSTM",
        against="input-gate-open forget-gate-open initial-c-ignored",
    ),
    *statements(
        "equations.o",
        "ot is f of two products, two biases, and the new Ct times its peephole.",
        EQUATIONS,
        of="LSTM",
        against=f"{_terms('o')} activation-f-missing peepholes-dropped-from-o"
        " peepholes-of-old-cell-for-o",
    ),
    *statements(
        "equations.H",
        "Ht is h of Ct, as far as ot lets it out.",
        EQUATIONS,
        of="LSTM",
        against="output-gate-open activation-h-missing",
    ),
    *statements(
        "equations.peepholes",
        "Peepholes show the cell's state to the gates, not the hidden one.",
        EQUATIONS,
        of="LSTM",
        against="peepholes-of-h peepholes-dropped",
    ),
)
_TRANSPOSES = (
    *statements(
        "equations.transpose",
        "Ht-1 is multiplied by the transposed R.",
        EQUATIONS,
        since=7,
        against="recurrent-weights-transposed",
    ),
    *statements(
        "equations.transpose.early",
        "Ht-1 is multiplied by R itself, as the first operator sets write it; corrected later.",
        EQUATIONS,
        until=3,
        when=differs_under("recurrence=literal"),
    ),
    *statements(
        "equations.input-transpose",
        "Xt is multiplied by the transposed W.",
        EQUATIONS,
        against="input-weights-transposed",
    ),
    *statements(
        "equations.constants",
        "W and R are parameters: a model may hold them.",
        "notations",
        when=INITIALIZERS,
        against="input-product-dropped recurrent-product-dropped",
    ),
    *statements(
        "equations.one-layer",
        "The operator is one layer.",
        "summary",
        why_not="a node has no number of layers",
    ),
    *statements(
        "support",
        "Custom implementations, such as CuDNN's, usually compute it.",
        "summary",
        why_not="about implementations, not results",
    ),
    *statements(
        "shape-inference",
        "ONNX infers its shapes.",
        "version",
        why_not="about ONNX's shape inference, not about what a node computes",
    ),
)

# The formulas of the activation functions, and the wrong formulas that must be noticed.
FORMULAS = {
    "Relu": "max(0, x)",
    "Tanh": "the hyperbolic tangent",
    "Sigmoid": "1/(1 + e^-x)",
    "Affine": "alpha*x + beta",
    "LeakyRelu": "x, and alpha*x below zero",
    "ThresholdedRelu": "x from alpha on, and 0 below",
    "ScaledTanh": "alpha times the hyperbolic tangent of beta*x",
    "HardSigmoid": "alpha*x + beta, held between 0 and 1",
    "Elu": "x, and alpha*(e^x - 1) below zero",
    "Softsign": "x/(1 + |x|)",
    "Softplus": "log(1 + e^x)",
}
_FUNCTIONS = tuple(
    row
    for name, formula in FORMULAS.items()
    for row in statements(
        f"functions.{name.lower()}",
        f"{name} of x is {formula}.",
        "activation functions",
        when=uses(name),
        against=" ".join(f"{name.lower()}-is-{id_}" for id_, _, _ in WRONG_FORMULAS[name]),
    )
)

_OPTIONAL = statements(
    "functions.optional",
    "All functions but Relu, Tanh and Sigmoid are optional.",
    "activation functions",
    why_not="permits a refusal, as --allow-refused does; what is computed is another statement's",
)

ROWS = (*_RNN, *_GRU, *_LSTM, *_TRANSPOSES, *_FUNCTIONS, *_OPTIONAL)
