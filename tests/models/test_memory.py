"""Claims about giant outputs and about the tally of live values."""

import numpy as np
import pytest

from rnncli.limits import Budget, Limits, OutOfMemory
from rnncli.models.sessions import evaluate_model
from rnncli.models.steps import MemoryTally, refuse_giant


def test_numbers_are_inputs_like_arrays():
    """A node may hand on NumPy's scalars."""
    refuse_giant("Range", [np.float32(0), np.float32(9), np.float32(1)])

    with pytest.raises(OutOfMemory):
        refuse_giant("Range", [np.float32(0), np.float32(1e12), np.float32(1)])


MIB = 1 << 20


def test_memory_counts_once_and_until_its_last_view_is_gone():
    """Views, members of sequences, and what was there before."""
    budget = Budget(100)
    given, made = np.zeros(64, np.uint8), np.zeros(40, np.uint8)
    tally = MemoryTally(budget, [given])

    tally.add([made, made[:3], given[:5], [np.zeros(10, np.uint8)]])
    assert budget.left == 50
    tally.drop(made)
    assert budget.left == 50
    tally.drop(made[:3])
    assert budget.left == 90
    tally.close()
    assert budget.left == 100


def test_a_model_may_be_given_a_limit(parse):
    """Of what its nodes make and still need; the inputs are the caller's own."""
    text = "g (float[N] x) => (float[N] y) {{ {} y = Neg (x8) }}"
    chain = " ".join(f"x{k + 1} = Neg (x{k})" for k in range(8)).replace("x0", "x")
    kept = f"{chain} z = Sum ({', '.join(f'x{k}' for k in range(1, 9))})"
    inputs = {"x": np.zeros(MIB, np.float32)}

    assert evaluate_model(parse(text.format(chain)), inputs, limits=Limits(max_memory=9 * MIB))
    with pytest.raises(OutOfMemory, match=r"node 'Neg_\d' \(Neg\): 12.0 MiB are alive"):
        evaluate_model(parse(text.format(kept)), inputs, limits=Limits(max_memory=9 * MIB))
