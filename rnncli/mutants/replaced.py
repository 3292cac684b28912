"""An arithmetic with some of its functions replaced."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from rnncli.backends.reference import NumPyEngine
from rnncli.mutants.mutant import Change
from rnncli.numerics import NumPyArithmetic

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from rnncli.recurrence.arithmetic import Value

Function: TypeAlias = "Callable[[Value], Value]"
RIGHT = NumPyArithmetic()


class ReplacedArithmetic(NumPyArithmetic):
    """NumPy's arithmetic with some functions replaced."""

    def __init__(self, **functions: Any) -> None:
        vars(self).update(functions)


class ReplacedFunctions(NumPyEngine):
    """Computes with a replaced arithmetic.

    Args:
        functions: by their names in the arithmetic.
        dtype: of the arithmetic.
    """

    def __init__(self, functions: dict[str, Any], dtype: np.dtype[Any]) -> None:
        super().__init__(dtype)
        self.math = ReplacedArithmetic(**functions)


def computing(**functions: Any) -> Change:
    """Return the change that computes with other functions."""
    return Change(engine=partial(ReplacedFunctions, functions))
