"""What an exporter did to a model: sizes that it froze, and shapes that it declares wrongly.

Shapes are inferred at two sizes of each free dimension of the inputs, and from these alone: what is
declared free must follow them, and what is declared fixed must not.
"""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING

from rnncli.models.model import declared_shape, display_name, nodes_that_make, operator_name
from rnncli.models.skeleton import inferred, shapes_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.models.model import Model

    # A size at both sizes of the free dimensions; None where it is not known.
    Pair = tuple[int, int]
    Pairs = tuple[Pair | None, ...]


UNIT = 5040
"""The sizes of inference are multiples of it, which most strides and groups divide."""
PLAIN = re.compile(r"[\w.:-]*")
"""Symbols that are not formulas of others, as torch.export's `2*s77 + 1` is."""


def export_faults(model: Model) -> Iterator[str]:
    """Yield in sentences what of a model contradicts what it declares."""
    shapes = {value.name: declared_shape(value) or () for value in model.inputs}
    if all(PLAIN.fullmatch(each) for s in shapes.values() for each in s if isinstance(each, str)):
        yield from FreeSizes(model).misdeclared()


class FreeSizes:
    """The sizes of a model's values at two sizes of each free dimension of its inputs."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._of: dict[str, Pair] = {}  # those of each symbol
        self._places: dict[Pair, str] = {}  # the first axis that has it, in words
        numbers = count(UNIT, UNIT)
        shapes: dict[str, list[Pair]] = {}
        for value in model.inputs:
            for axis, size in enumerate(declared_shape(value) or ()):
                place = f"axis {axis} of {value.name}"
                if not isinstance(size, int) and (size or place) not in self._of:
                    pair = self._of[size or place] = next(numbers), next(numbers)
                    self._places[pair] = f"{size}, {place}" if size else place
                pair = (size, size) if isinstance(size, int) else self._of[size or place]
                shapes.setdefault(value.name, []).append(pair)
        first, second = (
            shapes_in(inferred(model, sizes, trusting=False).proto)
            for sizes in (
                {name: [pair[k] for pair in s] for name, s in shapes.items()} for k in (0, 1)
            )
        )
        self.shapes: dict[str, Pairs] = {
            name: tuple(
                (a, b) if isinstance(a, int) and isinstance(b, int) else None
                for a, b in zip(shape, second[name], strict=True)
            )
            for name, shape in first.items()
            if len(shape) == len(second.get(name, ()))
        }

    def misdeclared(self) -> Iterator[str]:
        """Yield the axes of outputs whose size is not the declared one."""
        for value in self._model.proto.graph.output:
            declared, shape = declared_shape(value) or (), self.shapes.get(value.name, ())
            if len(declared) != len(shape):
                continue
            for axis, (own, pair) in enumerate(zip(declared, shape, strict=True)):
                wanted = (own, own) if isinstance(own, int) else self._of.get(own)
                if wanted is None or pair is None or wanted == pair:
                    continue
                told = f"{value.name}: its axis {axis} is declared {own}, but"
                if pair in self._places:
                    yield f"{told} is as long as {self._places[pair]}, which is free"
                elif pair[0] == pair[1]:
                    node = self._freezing(value.name, wanted)
                    yield f"{told} is {pair[0]} at any {own}, as {node} makes it"
                else:
                    yield f"{told} has another size"

    def _freezing(self, name: str, wanted: Pair) -> str:
        """Return the last node before a value that loses a size, in words."""
        nodes = nodes_that_make([*enumerate(self._model.proto.graph.node)], [name])
        losing = (
            (index, node)
            for index, node in reversed(nodes)
            if any(wanted in self.shapes.get(each, ()) for each in node.input)
            and not any(wanted in self.shapes.get(each, ()) for each in node.output)
        )
        index, node = next(losing, nodes[-1])
        return f"node '{display_name(node, index)}' ({operator_name(node)})"
