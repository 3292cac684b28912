"""Inputs written on the command line: a file's path, or numbers as JSON has them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.errors import InvalidRequest, shortened
from rnncli.files.formats import read_tensor
from rnncli.numerics import round_to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.numerics import Array, DType


def given_tensor(name: str, text: str, dtype: DType | None) -> Array:
    """Return an input that is given as ``8000``, ``true``, ``[[1, 2.5], [3, 4]]`` or as a file.

    Args:
        name: the input's name.
        text: what the user wrote for it; a number stands for a scalar.
        dtype: the input's element type, which numbers take; None if it has none.

    Raises:
        InvalidRequest: the list is no rectangle, or the type cannot hold a number of it; and as
            `read_tensor`.
    """
    place = f"-i {name}={shortened(text)}"
    try:
        written = json.loads(text)
    except (ValueError, RecursionError) as error:
        if text.startswith("["):
            raise InvalidRequest(f"{place}: not a list: {error}") from error
        return read_tensor(text)
    if not isinstance(written, int | float | list):
        return read_tensor(text)
    if dtype is None or dtype.numpy.kind in "Oc":
        raise InvalidRequest(f"{place}: the input is not of real numbers; give a file")
    try:
        shape = np.shape(written)
    except ValueError as error:
        raise InvalidRequest(f"{place}: rows of different lengths") from error
    values = [_element(place, each, dtype) for each in _elements(written)]
    return np.array(values, dtype.numpy).reshape(shape)


def _elements(written: Any) -> Iterator[Any]:
    """Yield the elements of nested lists."""
    if not isinstance(written, list):
        yield written
        return
    for each in written:
        yield from _elements(each)


def _element(place: str, written: Any, dtype: DType) -> Any:
    """Return an element in a type, rounded once if that is a floating-point one.

    Raises:
        InvalidRequest: the type cannot hold it.
    """
    is_bool = dtype.name == "bool"
    if isinstance(written, bool) is is_bool and isinstance(written, int | float):
        try:
            if dtype.is_float:
                exact = np.float64(written)
                made = round_to(exact.reshape(1), dtype)[0]
                if np.isfinite(made) or not np.isfinite(exact):
                    return made
            elif (made := np.array([written], object).astype(dtype.numpy)[0]) == written:
                return made
        except (OverflowError, ValueError, TypeError):
            pass
    raise InvalidRequest(f"{place}: {json.dumps(written)} is not of type {dtype}")
