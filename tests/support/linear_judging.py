"""Margins of kernels of linear recurrences: their errors in units of derived tolerances."""

import numpy as np

from rnncli.backends.reference import NumPyEngine, evaluate
from rnncli.judging.tolerances.derivation import derive
from rnncli.numerics import FLOAT64, conditioning_problem
from rnncli.numerics.profiles import PROFILES


def evaluated(found):
    """Return its result in float64, rounded once."""
    return evaluate(found, NumPyEngine(FLOAT64))


def parts(result):
    """Return every output of a result that there is; the first state is no output."""
    return [part for part in (result.Y, result.last[1]) if part is not None]


def margin(got, golden, tolerance):
    """Return the largest error in units of the tolerance."""
    worst = 0.0
    for one, wanted, allowed in zip(parts(got), parts(golden), parts(tolerance), strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.abs(one.astype(np.float64) - wanted.astype(np.float64))
            worst = max(worst, np.max(np.where(error == 0, 0.0, error / allowed), initial=0.0))
    return float(worst)


def judged(kernels, made, *profiles):
    """Return the margins of kernels by each profile on recurrences, [profiles, kernels, cases].

    Cases that are not fit to judge by, by any of the profiles, are left out.
    """
    margins = []
    for found in made:
        golden = evaluated(found)
        allowed = [derive(found, PROFILES[profile], golden) for profile in profiles]
        if any(any(map(conditioning_problem, parts(golden), parts(each))) for each in allowed):
            continue
        got = [kernel.run(found) for kernel in kernels]
        margins.append([[margin(one, golden, t) for one in got] for t in allowed])
    return np.moveaxis(np.array(margins), 0, -1)
