"""Claims about operators that make much from little."""

import numpy as np
import pytest

from rnncli.limits.budget import OutOfMemory
from rnncli.models.memory import refuse_giant


def test_numbers_are_inputs_like_arrays():
    """A node may hand on NumPy's scalars."""
    refuse_giant("Range", [np.float32(0), np.float32(9), np.float32(1)])

    with pytest.raises(OutOfMemory):
        refuse_giant("Range", [np.float32(0), np.float32(1e12), np.float32(1)])
