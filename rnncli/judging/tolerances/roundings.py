"""Rounding errors of sums of products and of stored values, and their variances.

Variances are in units of lambda squared: their roots are tolerances. A sum is an array [3, ...]:
its values, the sums of its squared terms, and the moduli of the parts that an implementation may
round separately. Adding these arrays adds the sums.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rnncli.numerics import Array
    from rnncli.numerics.profiles import Rounding


def product(x: Array, weights: Array) -> Array:
    """Return the sums of x [D, T, N, K] times weights [G, D, H, K], [3, G, D, T, N, H]."""
    D, T, N, K = x.shape
    G, _, H, _ = weights.shape
    rows, columns = x.reshape(D, T * N, K), weights.swapaxes(2, 3)
    sums = np.empty((3, G, D, T * N, H))
    np.matmul(rows, columns, out=sums[0])
    np.matmul(rows * rows, columns * columns, out=sums[1])
    np.abs(sums[0], out=sums[2])
    return sums.reshape(3, G, D, T, N, H)


def single(term: Array) -> Array:
    """Return one term as a sum, [3, ...]."""
    sums = np.empty((3, *term.shape))
    sums[0] = term
    np.multiply(term, term, out=sums[1])
    np.abs(term, out=sums[2])
    return sums


def scaled(sums: Array, by: Array) -> Array:
    """Return sums [3, ...] with every term multiplied by [...]; the product rounds as well."""
    found: Array = sums * single(by)
    found[2] += np.abs(found[0])
    return found


def spread(sums: Array, terms: int, rounding: Rounding) -> Array:
    """Return lambda standard deviations of the rounding errors of sums of so many terms.

    With terms in random order, a running sum is about as large as the root of the sum of squares,
    or a part of the whole, and every addition rounds it. The factor 2 leaves room for products that
    round, blocks and unlucky orders. An implementation may also store each part in the dtype, and
    round factors before it multiplies them.
    """
    root: Array = np.sqrt(sums[1])
    adding = rounding.accumulator * math.sqrt(terms / 3)
    root *= rounding.deviations * (2 * adding + math.sqrt(2) * rounding.factor)
    root += rounding.deviations * adding * np.abs(sums[0])
    root += rounding.deviations * math.sqrt(0.5) * rounding.unit * sums[2]
    root += rounding.deviations * math.sqrt(terms) * rounding.floor
    return root


def through(variances: Array, matrices: Array) -> Array:
    """Return variances [D, T, N, K] times matrices of squares [G, D, H, K], [G, D, T, N, H]."""
    D, T, N, K = variances.shape
    found = variances.reshape(D, T * N, K) @ matrices.swapaxes(2, 3)
    return np.asarray(found).reshape(len(matrices), D, T, N, matrices.shape[2])


def stored(size: Array, rounding: Rounding) -> Array:
    """Return the variance of values rounded to the dtype once for each of their parts."""
    deviation = rounding.deviations / math.sqrt(3)
    errors = (deviation * rounding.unit) * size + deviation * rounding.floor
    return np.asarray(errors * errors)


def systematic(bound: Array, rounding: Rounding) -> Array:
    """Return the variance that stands for a systematic error: a third of its bound, squared."""
    third = bound * (rounding.deviations / 3)
    return np.asarray(third * third)
