"""Sound implementations: no suite may fail one, unless the profile of a case says so by its name.

    PYTHONPATH=tests python -m support.sound_variants PACK...

prints every variant, its largest error in tolerances over the packs, and the cases that fail it.
They differ in how sums are ordered and kept, in the formulas of tanh and sigmoid, in the GRU's
blend, and in what is stored in the tensors' dtype. Two more are the kernels of `kernels`, which
were written from the specification alone.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from kernels.score import is_asked
from kernels.switch_table import KERNELS
from support.emulation import (
    ByTanh,
    Implementation,
    Plain,
    Textbook,
    backwards,
    by_blas,
    in_pairs,
    terms,
    zeros,
)

from rnncli.judging.comparing.rule import Rule
from rnncli.judging.judgement import judge
from rnncli.numerics import DTYPES
from rnncli.packs.pack import open_pack
from rnncli.packs.vector import Attempt, Status

# Profiles whose cases ask for more than every sound implementation gives.
NAMED = frozenset({"relative"})
# tanh(x) = x p(x^2)/q(x^2) for |x| up to 7.9, highest power first, as Eigen and ONNX Runtime have.
TANH_BOUND = 7.90531110763549805
TANH_P = (
    *(-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08),
    *(1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03),
)
TANH_Q = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)
# sigmoid(x) = x p(x^2)/q(x^2) + 1/2 for |x| up to 18, likewise.
SIGMOID_BOUND = 18.0
SIGMOID_P = (
    *(4.37031012579801e-11, 1.15627324459942e-07, 6.08574864600143e-05),
    *(8.51377133304701e-03, 2.48287947061529e-01),
)
SIGMOID_Q = (
    *(6.10247389755681e-13, 5.76102136993427e-09, 6.29106785017040e-06),
    *(1.70198817374094e-03, 1.16817656904453e-01, 9.93151921023180e-01),
)


def kahan(values, matrix):
    """Carry what the last sum lost into the next term."""
    total = lost = zeros(values, matrix)
    for product in terms(values, matrix):
        term = product - lost
        new = total + term
        lost = np.where(np.isfinite(new), (new - total) - term, 0)
        total = new
    return total


def fused_multiply_add(values, matrix):
    """Every product enters its sum unrounded: that of two float32 is exact in float64."""
    total = zeros(values, matrix)
    for product in terms(values.astype(np.float64), matrix.astype(np.float64)):
        total = (total + product).astype(values.dtype)
    return total


def lanes(count):
    """Keep so many sums, each of every so manieth term, and add them up last."""

    def summed(values, matrix):
        total = np.stack([zeros(values, matrix)] * count)
        for k, product in enumerate(terms(values, matrix)):
            total[k % count] += product
        return total.sum(0, dtype=values.dtype)

    return summed


def blocks(length):
    """Sum up blocks of so many terms, then the blocks."""

    def summed(values, matrix):
        total = zeros(values, matrix)
        for start in range(0, values.shape[-1], length):
            part = slice(start, start + length)
            total = total + in_pairs(values[..., part], matrix[..., part, :])
        return total

    return summed


class Fused(Implementation):
    """Wb + Rb is rounded once and stored, before it is added."""

    def run(self, recurrence):
        """Evaluate with one bias, where the cell lets them be one."""
        Wb, Rb = recurrence.Wb, recurrence.Rb
        if Wb is None or Rb is None or recurrence.options.linear_before_reset:
            return super().run(recurrence)
        return super().run(replace(recurrence, Wb=(Wb + Rb).astype(Wb.dtype), Rb=None))


def _rational(x, bound, p, q):
    x = np.minimum(np.maximum(x, -bound), bound).astype(x.dtype)
    square = x * x
    top = bottom = np.zeros_like(x)
    for a in p:
        top = top * square + x.dtype.type(a)
    for b in q:
        bottom = bottom * square + x.dtype.type(b)
    return x * top / bottom


class RationalTanh(Plain):
    """A quotient of polynomials, as vector code has it; what is wider than float32 is not."""

    @staticmethod
    def tanh(x):
        """7e-8 off at most."""
        return np.tanh(x) if x.dtype.itemsize > 4 else _rational(x, TANH_BOUND, TANH_P, TANH_Q)


class RationalSigmoid(Plain):
    """Another such quotient."""

    @staticmethod
    def sigmoid(x):
        """1/2 + x p/q."""
        if x.dtype.itemsize > 4:
            return Plain.sigmoid(x)
        found = _rational(x, SIGMOID_BOUND, SIGMOID_P, SIGMOID_Q)
        return np.minimum(np.maximum(found + x.dtype.type(0.5), 0), 1)


class BothRational(RationalTanh, RationalSigmoid):
    """Both of them."""


class SigmoidOfRationalTanh(RationalTanh):
    """The sigmoid by that tanh."""

    @staticmethod
    def sigmoid(x):
        """0.5 tanh(x/2) + 0.5."""
        half = x.dtype.type(0.5)
        return RationalTanh.tanh(x * half) * half + half


class TwoBranches(Plain):
    """The sigmoid as e^x/(1 + e^x) below zero, and as 1/(1 + e^-x) above."""

    @staticmethod
    def sigmoid(x):
        """Never overflows."""
        e = np.exp(-np.abs(x))
        return np.where(x < 0, e, x.dtype.type(1)) / (1 + e)


class TanhByExp(Plain):
    """Loses relative accuracy near zero, where 1 - e^-2x cancels."""

    @staticmethod
    def tanh(x):
        """(1 - e^-2|x|)/(1 + e^-2|x|)."""
        e = np.exp(-2 * np.abs(x))
        return np.copysign((1 - e) / (1 + e), x)


class TanhBySigmoid(Plain):
    """2 sigmoid(2x) - 1."""

    @staticmethod
    def tanh(x):
        """Cancels near zero."""
        return 2 * Plain.sigmoid(2 * x) - x.dtype.type(1)


class TanhByExpm1(Plain):
    """Accurate everywhere."""

    @staticmethod
    def tanh(x):
        """-expm1(-2|x|)/(2 + expm1(-2|x|))."""
        e = np.expm1(-2 * np.abs(x))
        return np.copysign(-e / (2 + e), x)


def off_by(units):
    """Functions that are so many units in the last place off, by a hash of their argument.

    Its parity would not do: a sum is even more often than odd, and they would be too large on the
    whole.
    A power of two lies between wide units and narrow ones: the narrow ones count.
    """

    def wrapped(function):
        def moved(x):
            right = function(x.astype(np.float64)).astype(x.dtype)
            unit = np.abs(right - np.nextafter(right, 0, dtype=x.dtype)) * x.dtype.type(units)
            bits = x.view(f"u{x.dtype.itemsize}").astype(np.uint64)
            up = (bits * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(63) == 0
            return np.where(np.isfinite(right), right + np.where(up, unit, -unit), right)

        return staticmethod(moved)

    names = ("tanh", "sigmoid", "softplus", "expm1")
    return type("OffBy", (Plain,), {name: wrapped(getattr(Plain, name)) for name in names})


class BlendOnce(Plain):
    """z appears once."""

    @staticmethod
    def blend(z, h, H):
        """Use h + z (.) (H - h)."""
        return h + z * (H - h)


class BlendFromState(Plain):
    """1 - z appears once."""

    @staticmethod
    def blend(z, h, H):
        """Use H + (1 - z) (.) (h - H)."""
        return H + (1 - z) * (h - H)


@dataclass
class StoredStates(Implementation):
    """Gates and the cell state stay wide; of H, what enters the next step was stored."""

    stored: object = None

    def multiply(self, values, matrix):
        """Round the states that enter the product; inputs are of that type anyway."""
        return super().multiply(values.astype(self.stored).astype(values.dtype), matrix)

    def run(self, recurrence):
        """Evaluate, knowing what states are stored in."""
        return Implementation.run(replace(self, stored=recurrence.dtype.numpy), recurrence)


@dataclass
class InFloat16(Implementation):
    """Inputs, weights, gates and states are float16, and outputs what they were asked for."""

    def run(self, recurrence):
        """Evaluate in float16."""

        def narrow(values):
            return None if values is None else values.astype(np.float16)

        fields = {
            name: narrow(getattr(recurrence, name)) for name in ("X", "W", "R", "Wb", "Rb", "P")
        }
        initial = tuple(map(narrow, recurrence.initial))
        dtype = DTYPES["float16"]
        return super().run(replace(recurrence, dtype=dtype, initial=initial, **fields))


# Sound by profile `float16-inside` alone.
NARROW = "float16 inside"
# Sound by profile `four-ulp` alone.
COARSE = "functions off by 4 units"

EMULATED = {
    "term by term": Implementation(),
    "backwards, textbook functions": Implementation(sums=backwards, arithmetic=Textbook),
    "in pairs, sigmoid by tanh": Implementation(sums=in_pairs, arithmetic=ByTanh),
    "by BLAS, only outputs stored": Implementation(sums=by_blas, stores=False),
    "by BLAS": Implementation(sums=by_blas),
    "one bias": Fused(),
    "one bias, by BLAS": Fused(sums=by_blas),
    "sums in float64": Implementation(accumulator="float64"),
    "sums and all else in float64": Implementation(
        sums=by_blas, accumulator="float64", stores=False
    ),
    "fused multiply-add": Implementation(sums=fused_multiply_add),
    "Kahan": Implementation(sums=kahan),
    "four partial sums": Implementation(sums=lanes(4)),
    "eight partial sums": Implementation(sums=lanes(8)),
    "sixteen partial sums, one bias": Fused(sums=lanes(16)),
    "blocks of 4": Implementation(sums=blocks(4)),
    "blocks of 16": Implementation(sums=blocks(16)),
    "textbook functions": Implementation(arithmetic=Textbook),
    "sigmoid by tanh": Implementation(arithmetic=ByTanh),
    "rational tanh": Implementation(arithmetic=RationalTanh),
    "rational sigmoid": Implementation(arithmetic=RationalSigmoid),
    "both rational, four partial sums": Implementation(sums=lanes(4), arithmetic=BothRational),
    "sigmoid by rational tanh": Implementation(arithmetic=SigmoidOfRationalTanh),
    "sigmoid in two branches": Implementation(arithmetic=TwoBranches),
    "tanh by exp": Implementation(arithmetic=TanhByExp),
    "tanh by sigmoid": Implementation(arithmetic=TanhBySigmoid),
    "tanh by expm1": Implementation(arithmetic=TanhByExpm1),
    "functions off by 1 unit": Implementation(arithmetic=off_by(1)),
    "functions off by 2 units": Implementation(arithmetic=off_by(2)),
    COARSE: Implementation(arithmetic=off_by(4)),
    NARROW: InFloat16(),
    "blend with z once": Implementation(arithmetic=BlendOnce),
    "blend from the state": Implementation(arithmetic=BlendFromState),
    "states alone are stored": StoredStates(stores=False),
    "states alone are stored, eight partial sums": StoredStates(stores=False, sums=lanes(8)),
}


def _emulated(implementation):
    return lambda vector: vector.node.outputs_of(implementation.run(vector.recurrence))


def _kernel(session):
    return lambda vector: session(
        vector.record.operator, vector.attributes, vector.inputs, vector.record.outputs
    )


# Name -> vector -> outputs; each kernel is one session.
VARIANTS = {
    **{name: _emulated(implementation) for name, implementation in EMULATED.items()},
    **{f"kernel of {name}": _kernel(kernel()) for name, kernel in KERNELS.items()},
}
SOUND = [name for name in VARIANTS if name not in (COARSE, NARROW)]


def judged(variant, vector, profile=""):
    """Return the verdict on a variant's outputs of a vector, by its pack or by another profile."""
    with np.errstate(all="ignore"):
        outputs = VARIANTS[variant](vector)
    return judge(vector, Attempt(Status.RAN, outputs), Rule(profile=profile))


def cases_of(variant, vectors):
    """Return the vectors that a variant can answer; the kernels know ONNX's operators alone."""
    valid = [vector for vector in vectors if vector.record.expect == "result"]
    if variant in EMULATED:
        return valid
    return [v for v in valid if is_asked(v.record) and not v.record.quantise]


def alarms(variant, vectors):
    """Return the ids of the cases that fail a variant, but for those of the profiles NAMED."""
    granted = [v for v in cases_of(variant, vectors) if v.record.profile not in NAMED]
    return [vector.id for vector in granted if judged(variant, vector).fails]


def main(arguments=None):
    """Print a row for each variant."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("packs", nargs="+", type=Path)
    vectors = [v for pack in parser.parse_args(arguments).packs for v in open_pack(pack).vectors()]
    for name in VARIANTS:
        cases = cases_of(name, vectors)
        found = [(case, judged(name, case)) for case in cases]
        named = [case.id for case, one in found if one.fails and case.record.profile in NAMED]
        wrong = [case.id for case, one in found if one.fails and case.id not in named]
        margin = max(one.margin or 0 for case, one in found if case.id not in named)
        row = (name, len(cases), f"{margin:.2f}", f"{len(named)} by name", *wrong)
        sys.stdout.write("\t".join(map(str, row)) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
