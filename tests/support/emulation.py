"""Sound implementations of many kinds, emulated: what they may do, the tolerances must accept.

They walk with the package's own lanes and cells (tested elsewhere against independent ones) but
compute otherwise: every sum, gate and state stored in the tensors' dtype, sums in float32 or in the
dtype and in several orders, activations by the formulas that runtimes use.
"""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from rnncli.backends.reference import evaluate
from rnncli.numerics import DTYPES, NumPyArithmetic, round_to


def zeros(values, matrix):
    """The sums before the first term, of values [..., N, K] and a matrix [..., K, H] of a gate."""
    return np.zeros((*matrix.shape[:-2], values.shape[-2], matrix.shape[-1]), values.dtype)


def terms(values, matrix):
    """Yield what each k adds to the sums."""
    for k in range(values.shape[-1]):
        yield values[..., k, None] * matrix[..., k, None, :]


def term_by_term(values, matrix):
    """Add one product after another."""
    return sum(terms(values, matrix), start=zeros(values, matrix))


def backwards(values, matrix):
    """Add from the last term to the first."""
    return term_by_term(values[..., ::-1], matrix[..., ::-1, :])


def in_pairs(values, matrix):
    """Add neighbours, then their sums, as vector units do."""
    left = list(terms(values, matrix)) or [zeros(values, matrix)]
    while len(left) > 1:
        odd = left[-1:] if len(left) % 2 else []
        left = [a + b for a, b in zip(left[::2], left[1::2], strict=False)] + odd
    return left[0]


def by_blas(values, matrix):
    """Leave the order to the library."""
    return np.matmul(values, matrix) if values.dtype.kind == "f" else term_by_term(values, matrix)


class Plain(NumPyArithmetic):
    """The reference's formulas."""


class Textbook(NumPyArithmetic):
    """1/(1 + e^-x), log(1 + e^x), e^x - 1 and the blend with z once."""

    @staticmethod
    def sigmoid(x):
        """Overflow to infinity gives 0, as it should."""
        return 1 / (1 + np.exp(-x))

    @staticmethod
    def softplus(x):
        """Kept from overflowing."""
        return np.where(x > 15, x, np.log(1 + np.exp(np.minimum(x, 15))))

    @staticmethod
    def expm1(x):
        """Cancels near zero."""
        return np.exp(x) - 1

    @staticmethod
    def blend(z, h, H):
        """Use z once: h + z (.) (H - h)."""
        return h + z * (H - h)


class ByTanh(NumPyArithmetic):
    """The sigmoid as a tanh: no relative accuracy in its negative tail."""

    @staticmethod
    def sigmoid(x):
        """0.5 tanh(x/2) + 0.5."""
        return np.tanh(x * x.dtype.type(0.5)) * x.dtype.type(0.5) + x.dtype.type(0.5)


@cache
def in_float32(arithmetic):
    """Evaluate functions of float16 and bfloat16 in float32, and store the result."""

    class Stored(arithmetic):
        pass

    for name in ("tanh", "sigmoid", "softplus", "expm1"):
        inner = getattr(arithmetic, name)
        setattr(
            Stored,
            name,
            staticmethod(
                lambda x, inner=inner: (
                    inner(x)
                    if x.dtype.itemsize > 2
                    else inner(x.astype(np.float32)).astype(x.dtype)
                )
            ),
        )
    return Stored()


@dataclass
class Implementation:
    """A way to compute; also an engine of the package's reference.

    Attributes:
        stores: gates and states are stored in the dtype, else only in the working precision.
        sums: how sums of products are formed.
        arithmetic: which formulas activations use.
        accumulator: dtype of sums; None means the tensors' own.
        factor_bits: factors of products are rounded to so many bits; 0 means not at all.
    """

    stores: bool = True
    sums: object = term_by_term
    arithmetic: type = Plain
    accumulator: str | None = "float32"
    factor_bits: int = 0
    dtype: object = None

    @property
    def math(self):
        """Its formulas."""
        return in_float32(self.arithmetic)

    def run(self, recurrence):
        """Evaluate a recurrence."""
        own = recurrence.dtype.numpy
        wide = np.promote_types(own, np.float32)
        engine = replace(self, dtype=own if self.stores else wide)
        return evaluate(recurrence, engine)

    def widen(self, values):
        """Store in its dtype."""
        return values.astype(self.dtype, copy=False)

    def matrix(self, weights):
        """Return the transposed weights."""
        return weights.swapaxes(2, 3)

    def multiply(self, values, matrix):
        """Sum in the accumulator, then store."""
        if self.accumulator is None:
            accumulator = self.dtype
        else:
            accumulator = np.promote_types(DTYPES[self.accumulator].numpy, self.dtype)
        x, W = values.astype(accumulator), matrix.astype(accumulator)
        if self.factor_bits:
            x, W = shortened(x, self.factor_bits), shortened(W, self.factor_bits)
        return self.sums(x, W).astype(self.dtype)

    def round(self, values, dtype):
        """Round what is not stored yet."""
        return round_to(np.asarray(values), dtype)


def shortened(values, bits):
    """Round to so many significant bits, to nearest."""
    significand, exponent = np.frexp(values)
    return np.ldexp(np.rint(np.ldexp(significand, bits)), exponent - bits).astype(values.dtype)


# Judged by the standard profile.
WIDE = {
    "term-by-term": Implementation(),
    "backwards": Implementation(sums=backwards, arithmetic=Textbook),
    "in-pairs": Implementation(sums=in_pairs, arithmetic=ByTanh),
    "blas": Implementation(sums=by_blas, stores=False),
}
# Judged by the profile of that name.
NARROW = {
    "dtype-accumulator": Implementation(accumulator=None),
    "tf32": Implementation(factor_bits=11),
}
