"""Outputs of another program under the names, shapes and types of a model's own."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from rnncli.errors import RnncliWarning, listed
from rnncli.judging.comparing.likeness import in_order, order_of
from rnncli.numerics import dtype_of, round_to

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array


def matched(theirs: Mapping[str, Array], ours: Mapping[str, Array], source: str) -> Tensors:
    """Return another program's outputs by the model's names and in its types; see `renamed`.

    Real numbers take the model's type, which is told, as is an output that the model has not.
    """
    found = renamed(divided(theirs, ours, source), ours, source)
    there = listed([f"{name} {list(values.shape)}" for name, values in ours.items()])
    for name in [name for name in found if name not in ours]:
        sentence = f"'{name}' {list(found[name].shape)} is not an output of the model, which has"
        warnings.warn(f"{source}: {sentence} {there}", RnncliWarning, stacklevel=2)
    for name in found.keys() & ours.keys():
        values, dtype = found[name], dtype_of(ours[name])
        if dtype.is_float and values.dtype.kind == "f" and values.dtype != dtype.numpy:
            found[name] = round_to(values, dtype)
            sentence = f"'{name}' is of type {values.dtype}, compared in the model's, {dtype}"
            warnings.warn(f"{source}: {sentence}", RnncliWarning, stacklevel=2)
    return found


def divided(
    theirs: Mapping[str, Array], ours: Mapping[str, Array], source: str
) -> dict[str, Array]:
    """Return outputs with the states of all layers, as PyTorch has them, as those of each layer.

    Outputs Y_h_l0 and Y_h_l1 are what h or h_n has one after the other; the letter decides if
    other states have the same sizes.
    """
    found = dict(theirs)
    layers: dict[str, list[str]] = {}
    for own in ours:
        state, _, layer = own.rpartition("_l")
        if state and layer.isdigit() and own not in theirs:
            layers.setdefault(state, []).append(own)
    for state, names in layers.items():
        shapes = [ours[own].shape for own in names]
        stacked = (sum(shape[0] for shape in shapes), *shapes[0][1:])
        fits = [name for name in found if name not in ours and found[name].shape == stacked]
        letter = state.rpartition("_")[2][:1].casefold()
        fits = [name for name in fits if len(layers) == 1 or name[:1].casefold() == letter]
        if len(fits) == 1 and len(names) > 1:
            values = found.pop(fits[0])
            ends = np.cumsum([shape[0] for shape in shapes])[:-1]
            found |= zip(names, np.split(values, ends), strict=True)
            sizes = f"'{fits[0]}' {list(stacked)} is compared with {listed(names)}"
            sentence = f"{sizes}: the states of the layers, one after the other"
            warnings.warn(f"{source}: {sentence}", RnncliWarning, stacklevel=3)
    return found


def renamed(
    theirs: Mapping[str, Array], ours: Mapping[str, Array], source: str
) -> dict[str, Array]:
    """Return outputs under the names of others; warn of what is not as it was.

    An output of another name is taken for the only one that has its last part, as Y of gru/Y, or
    whose name it ends with, as 148 of output_148, or else its shape, or has that in other words,
    see `order_of`, if no other output is; those that are left are taken in order, if as many are
    left of ours, of the same shapes. Only axes of size 1 may lack or be more: in another order of
    axes it stays as it is, and is wrong as under the right name.
    """
    found = {name: values for name, values in theirs.items() if name in ours}
    left = {name: values for name, values in theirs.items() if name not in ours}
    for is_same_name, is_same_shape in ((True, False), (False, True), (False, False)):
        fits = {
            (name, own): order
            for name, values in left.items()
            for own, wanted in ours.items()
            if own not in found
            and (order := order_of(values.shape, wanted.shape)) is not None
            and (not is_same_name or _end_alike(name, own))
            and (not is_same_shape or not order)
        }
        for (name, own), order in fits.items():
            if sum(name == one or own == other for one, other in fits) == 1:
                values, shape = left.pop(name), ours[own].shape
                is_moved = order and order != (*range(values.ndim),)
                found[own] = values if is_moved else in_order(values, order, shape)
                sizes = f"'{name}' {list(values.shape)} is compared with '{own}' {list(shape)}"
                why = "their names end alike" if is_same_name else "no other output has its sizes"
                warnings.warn(f"{source}: {sizes}: {why}", RnncliWarning, stacklevel=3)
    pairs = [*zip(left, [own for own in ours if own not in found], strict=False)]
    if len(left) == len(ours.keys() - found) and all(
        left[name].shape == ours[own].shape for name, own in pairs
    ):
        for name, own in pairs:
            found[own] = left.pop(name)
            sentence = f"'{name}' is compared with '{own}': in their order, as sizes tell nothing"
            warnings.warn(f"{source}: {sentence}", RnncliWarning, stacklevel=3)
    return {**found, **left}


def _end_alike(name: str, own: str) -> bool:
    """Whether two names have one last part, or one of them ends with all of the other."""
    if name.rpartition("/")[2] == own.rpartition("/")[2]:
        return True
    short, long = sorted((name, own), key=len)
    return long.endswith(short) and long.removesuffix(short)[-1:] in {"_", "-", ".", ":"}
