"""Biased kernels, beside the sound ones: their errors lean one way, and no element shows it.

    PYTHONPATH=tests python -m support.biased_kernels PACK...

prints how far the errors of every sound and every biased kernel lean over each pack: by dtype the
direction, the mean in tolerances, z, what is beyond functions, calls, and whether it is said.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from support.emulation import Implementation, Plain, terms, zeros
from support.sound_variants import SOUND, VARIANTS, cases_of

from rnncli.judging.comparing.bias import MOST_DEVIATIONS, biases_of
from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.judgement import SessionCalls, judge_session
from rnncli.numerics import dtype_of, round_to
from rnncli.packs.pack import open_pack
from rnncli.packs.vector import Attempt, Status


def precision(values):
    """The significant bits of numbers of their dtype."""
    return dtype_of(values).precision


def to_bits(direction):
    """The function that rounds to so many significant bits in a direction, an integer's."""

    def rounded(values, bits):
        significand, exponent = np.frexp(np.asarray(values, np.float64))
        return np.ldexp(direction(np.ldexp(significand, bits)), exponent - bits)

    return rounded


toward_zero, down, up = map(to_bits, (np.trunc, np.floor, np.ceil))
away = to_bits(lambda x: np.copysign(np.ceil(np.abs(x)), x))
half_up = to_bits(lambda x: np.floor(x + 0.5))


@dataclass
class States(Implementation):
    """New states are rounded once more, to fewer bits than their dtype has."""

    direction: object = toward_zero
    fewer: int = 1
    which: tuple = (0, 1)

    def run(self, recurrence):
        """Evaluate with a cell that rounds."""
        right = recurrence.cell.step

        def step(p, x, states):
            return tuple(
                self.direction(state, precision(state) - self.fewer).astype(state.dtype)
                if k in self.which
                else state
                for k, state in enumerate(right(p, x, states))
            )

        return super().run(replace(recurrence, cell=replace(recurrence.cell, step=step)))


@dataclass
class Scaled(Implementation):
    """Some tensors are too large by a factor, but for those of float64."""

    factor: float = 1.0
    names: tuple = ("W", "R")

    def run(self, recurrence):
        """Evaluate with other numbers."""
        if recurrence.dtype.name == "float64":
            return super().run(recurrence)
        changed = {
            name: (getattr(recurrence, name).astype(np.float64) * self.factor).astype(
                getattr(recurrence, name).dtype
            )
            for name in self.names
        }
        return super().run(replace(recurrence, **changed))


@dataclass
class Results(Implementation):
    """All is float32, and 16 bits are left of the results in a direction."""

    stores: bool = False
    direction: object = toward_zero

    def round(self, values, dtype):
        """Round to nearest if the dtype has room for it all."""
        if dtype.precision < precision(values):
            values = self.direction(values, dtype.precision)
        return round_to(np.asarray(values), dtype)


def sums(direction):
    """Every product enters its sum unrounded, and the sum is rounded in a direction."""

    def summed(values, matrix):
        total = zeros(values, matrix).astype(np.float64)
        for product in terms(values.astype(np.float64), matrix.astype(np.float64)):
            total = direction(total + product, precision(values))
        return total.astype(values.dtype)

    return Implementation(sums=summed)


def functions(moved, names=("tanh", "sigmoid", "softplus", "expm1")):
    """Functions that are moved: from the value in float64 and the nearest of the dtype."""

    def wrapped(function):
        def changed(x):
            wide = function(x.astype(np.float64))
            right = wide.astype(x.dtype)
            return np.where(np.isfinite(right), moved(wide, right), right).astype(x.dtype)

        return staticmethod(changed)

    methods = {name: wrapped(getattr(Plain, name)) for name in names}
    return Implementation(arithmetic=type("Moved", (Plain,), methods))


def ulps(units, outward=0):
    """So many units in the last place up; or away from zero."""

    def moved(_, right):
        unit = np.abs(right - np.nextafter(right, right.dtype.type(0)))
        return right + units * unit * (np.sign(right) if outward else 1)

    return moved


def rounding(direction, fewer=0):
    """The value, rounded in a direction instead of to nearest, to fewer bits."""
    return lambda wide, right: direction(wide, precision(right) - fewer)


BIASED = {
    "states truncated by 1 bit": States(),
    "states truncated by 2 bits": States(fewer=2),
    "states rounded down by 1 bit": States(direction=down),
    "states rounded up by 1 bit": States(direction=up),
    "states rounded half up by 1 bit": States(direction=half_up),
    "H alone truncated by 1 bit": States(which=(0,)),
    "sums rounded toward zero": sums(toward_zero),
    "sums rounded down": sums(down),
    "sums rounded up": sums(up),
    "weights * (1 + 3e-7)": Scaled(factor=1 + 3e-7),
    "weights * (1 + 6e-7)": Scaled(factor=1 + 6e-7),
    "weights * (1 - 3e-7)": Scaled(factor=1 - 3e-7),
    "R * (1 + 6e-7)": Scaled(factor=1 + 6e-7, names=("R",)),
    "W * (1 - 6e-7)": Scaled(factor=1 - 6e-7, names=("W",)),
    "functions 1 ulp too large": functions(ulps(1)),
    "functions 1 ulp too small": functions(ulps(-1)),
    "functions 1 ulp too far from zero": functions(ulps(1, outward=1)),
    "functions 1 ulp too near zero": functions(ulps(-1, outward=1)),
    "functions truncated": functions(rounding(toward_zero)),
    "functions rounded down": functions(rounding(down)),
    "functions rounded up": functions(rounding(up)),
    "functions truncated by 1 bit": functions(rounding(toward_zero, fewer=1)),
    "tanh 1 ulp too far from zero": functions(ulps(1, outward=1), ("tanh",)),
    "tanh truncated": functions(rounding(toward_zero), ("tanh",)),
    "16-bit results truncated": Results(),
    "16-bit results rounded down": Results(direction=down),
    "16-bit results rounded away from zero": Results(direction=away),
}
# Passes every case, and has twice the error that the standard profile grants to functions.
COARSE = "functions off by 2 units"


def biased(name):
    """The function from a vector to the outputs of a biased kernel."""
    kernel = BIASED[name]
    return lambda vector: vector.node.outputs_of(kernel.run(vector.recurrence))


def leans(function, vectors):
    """Return how the errors of a kernel lean, and how many cases it fails."""
    means, failing = [], 0
    for vector in vectors:
        with np.errstate(all="ignore"):
            attempts = [Attempt(Status.RAN, function(call)) for call in vector.calls]
        verdict = judge_session(
            SessionCalls(vector, range(len(attempts)), attempts), PACK_RULE
        ).verdict
        failing += verdict.fails
        means += [(vector.record.dtype, mean) for mean in verdict.mean_errors or ()]
    return [*biases_of(means)], failing


def main(packs):
    """Print a row for each kernel, pack and dtype."""
    granted = [name for name in SOUND if name != COARSE]
    kernels = {name: VARIANTS[name] for name in granted} | {name: biased(name) for name in BIASED}
    for pack in packs:
        vectors = [v for v in open_pack(Path(pack)).vectors() if v.record.expect == "result"]
        for name, function in kernels.items():
            found, failing = leans(function, cases_of(name, vectors) if name in SOUND else vectors)
            for dtype in dict.fromkeys(bias.dtype for bias in found):
                own = [bias for bias in found if bias.dtype == dtype]
                most = max(own, key=lambda bias: (bias.excess, abs(bias.z)))
                said = most.excess > MOST_DEVIATIONS
                kind = "biased" if name in BIASED else "sound"
                row = (kind, pack, name, dtype, most.toward, f"{most.mean:.4f}", f"{most.z:.1f}")
                rest = (f"{most.excess:.1f}", f"{most.calls}/{most.of}", "said" if said else "")
                sys.stdout.write("\t".join(map(str, (*row, *rest, failing))) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])
