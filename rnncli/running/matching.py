"""Outputs of another program under the names, shapes and types of a model's own."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from rnncli.errors import RnncliWarning
from rnncli.judging.comparing.likeness import in_order, order_of
from rnncli.numerics import dtype_of, round_to

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array


def matched(theirs: Mapping[str, Array], ours: Mapping[str, Array], source: str) -> Tensors:
    """Return another program's outputs by the model's names; warn of what is not as it was.

    An output of a name that the model lacks is taken for the only one that has its shape, or has it
    in other words, see `order_of`, if no other output of that program is. Only axes of size 1 may
    lack or be more: in another order of axes it stays as it is, and is wrong as under the model's
    name. Real numbers take the model's type.
    """

    def told(sentence: str) -> None:
        warnings.warn(f"{source}: {sentence}", RnncliWarning, stacklevel=3)

    found = {name: values for name, values in theirs.items() if name in ours}
    left = {name: values for name, values in theirs.items() if name not in ours}
    for is_strict in (True, False):
        fits = {
            (name, own): order
            for name, values in left.items()
            for own, wanted in ours.items()
            if own not in found
            and (order := order_of(values.shape, wanted.shape)) is not None
            and not (is_strict and order)
        }
        for (name, own), order in fits.items():
            if sum(name == one or own == other for one, other in fits) == 1:
                values, shape = left.pop(name), ours[own].shape
                is_moved = order and order != (*range(values.ndim),)
                found[own] = values if is_moved else in_order(values, order, shape)
                sizes = f"'{name}' {list(values.shape)} is compared with '{own}' {list(shape)}"
                told(f"{sizes}: no other output has its sizes")
    for name, values in found.items():
        dtype = dtype_of(ours[name])
        if dtype.is_float and values.dtype.kind == "f" and values.dtype != dtype.numpy:
            found[name] = round_to(values, dtype)
            told(f"'{name}' is of type {values.dtype}, compared in the model's, {dtype}")
    return {**found, **left}
