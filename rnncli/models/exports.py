"""What an exporter did to a model: sizes that it froze, states, shapes that it declares wrongly.

Shapes are inferred at two sizes of each free dimension of the inputs, and from these alone: what is
declared free must follow them, and what is declared fixed must not.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.errors import InvalidRequest
from rnncli.models.model import (
    attribute_value,
    captured_names,
    declared_shape,
    describe,
    display_name,
    nodes_that_make,
    operator_name,
    rooted,
)
from rnncli.models.node_listing import UnevaluatedNode
from rnncli.models.skeleton import facts_of, inferred, shapes_in
from rnncli.models.streams import CONTINUED, DataFlow, order_of
from rnncli.operators.checking import shape_problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from onnx import NodeProto

    from rnncli.models.model import Model, Site
    from rnncli.models.skeleton import Shapes
    from rnncli.numerics import Array

    # A size at both sizes of the free dimensions; None where it is not known.
    Pair = tuple[int, int]
    Pairs = tuple[Pair | None, ...]


UNIT = 24
"""The sizes of inference are multiples of it, which most strides and groups divide.

They are small because inference writes down each element of what may be a shape, such as all of a
batch in a row.
"""
LARGEST = 1 << 14
"""The largest constant that is taken for a size or a step."""
PLAIN = re.compile(r"[\w.:-]+")
"""Symbols that are not formulas of others, as torch.export's `2*s77 + 1` is."""
SIZES = (1, 2, 3, 4, 5, 8, 16, 32)
"""Sizes that are tried of every free dimension, where one may be frozen."""
MOST_INFERRED = 5_000
"""Limit on the nodes whose shapes are inferred to find the size that a dimension is frozen to."""
# Operators that compute each position along an axis that they keep from that position alone.
POINTWISE = frozenset(
    (
        *("Add", "Cast", "Clip", "Div", "Elu", "Gemm", "HardSigmoid", "Identity", "LeakyRelu"),
        *("MatMul", "Mul", "Neg", "Relu", "Sigmoid", "Squeeze", "Sub", "Tanh", "Transpose"),
        "Unsqueeze",
    )
)
TAKING = frozenset(("Gather", "Split", "SplitToSequence"))
"""Operators that take positions of their axis."""
# Exporter and what it did -> the public report of it.
REPORTS = {
    ("torch.export", "time"): "pytorch/pytorch#191855",
    ("torch.export", "reset"): "pytorch/pytorch#189225",
    ("tf2onnx", "states"): "onnx/tensorflow-onnx#1152",
}
# Exporters of frameworks whose GRU has two biases of a gate only if it resets after the product.
TWO_BIASES = frozenset(("tf2onnx", "keras2onnx", "OnnxMLTools"))


class ExportFaults(NamedTuple):
    """What an exporter did to a model that its author will not have meant."""

    sentences: tuple[str, ...]
    unevaluated: tuple[UnevaluatedNode, ...]  # recurrent nodes that break their specification


def export_faults(model: Model) -> ExportFaults:
    """Find what an exporter did to a model; the model is not run."""
    export = Export(model)
    found = [*export.unrolled(), *export.states(), *export.resets()]
    found += [*export.placed(), *export.unread()]
    found += [*export.frozen()] or [*export.misdeclared()]
    return ExportFaults(tuple(found), tuple(export.misshapen()))


def contradicted(model: Model, outputs: Mapping[str, Array]) -> Iterator[str]:
    """Yield in sentences the outputs of a run whose fixed sizes are not the declared ones."""
    for value in model.proto.graph.output:
        declared, shape = declared_shape(value), outputs[value.name].shape
        pairs = list(zip(declared or (), shape, strict=False))
        fits = all(isinstance(own, str) or own == size for own, size in pairs)
        if declared is not None and not (fits and len(declared) == len(shape)):
            yield f"{value.name}: is declared {describe(value)}, but is {list(shape)}"


class Export:
    """A model's values, with their sizes at two sizes of each free dimension of its inputs."""

    def __init__(self, model: Model, freed: tuple[str, int] | None = None) -> None:
        """Infer all shapes; `freed` is an input and an axis of it that is taken to be free."""
        self._model, self._flow = model, DataFlow(model)
        self._nodes = [*enumerate(model.proto.graph.node)]
        self._free: dict[str, Pair] = {}  # the sizes of each symbol
        self._places: dict[Pair, str] = {}  # the first axis that has them, in words
        self._told: dict[Pair, int] = {}  # those of dimensions that are frozen, and to what
        numbers = count(UNIT, UNIT)
        shapes: dict[str, list[Pair | str]] = {}
        for value in model.inputs:
            shape = shapes.setdefault(value.name, [])
            for axis, size in enumerate(declared_shape(value) or ()):
                place = f"axis {axis} of {value.name}"
                symbol = place if size == "" or (value.name, axis) == freed else size
                if isinstance(symbol, int):
                    shape.append((symbol, symbol))
                elif size == symbol and not PLAIN.fullmatch(symbol):
                    shape.append(symbol)
                else:
                    if symbol not in self._free:
                        pair = self._free[symbol] = next(numbers), next(numbers)
                        self._places[pair] = f"{size}, {place}" if size else place
                    shape.append(self._free[symbol])
            if declared_shape(value) is None:
                del shapes[value.name]
        self._inputs = shapes
        self._misfit = ""  # what inference says of sizes that do not fit together
        try:
            self._shapes = self._inferred({}, strict=bool(self._free))
        except InvalidRequest as error:
            self._misfit, self._shapes = str(error), self._inferred({})

    def _inferred(self, fixed: Mapping[Pair, int], *, strict: bool = False) -> dict[str, Pairs]:
        """Return all sizes, with some free ones fixed; errors are those of `inferred`."""

        def at(k: int) -> Shapes:
            sizes = {
                name: [e if isinstance(e, str) else fixed.get(e, e[k]) for e in shape]
                for name, shape in self._inputs.items()
            }
            return shapes_in(inferred(self._model, sizes, trusting=False, strict=strict).proto)

        if not (self._free or self._flow.recurrent):
            return {}  # nothing that these tell could be wrong
        first = at(0)
        second = at(1) if self._free else first
        return {
            name: tuple(
                (a, b) if isinstance(a, int) and isinstance(b, int) else None
                for a, b in zip(shape, second[name], strict=True)
            )
            for name, shape in first.items()
            if len(shape) == len(second.get(name, ()))
        }

    def _by(self, what: str) -> str:
        """Return the exporter, with the report of what it did, as the end of a sentence."""
        proto = self._model.proto
        is_dynamo = any("torch.export" in each.key for each in proto.graph.metadata_props)
        report = REPORTS.get(("torch.export" if is_dynamo else proto.producer_name, what))
        version = proto.producer_version.split(maxsplit=1)[0] if proto.producer_version else ""
        return f" ({proto.producer_name} {version}; {report})" if report else ""

    def frozen(self) -> Iterator[str]:
        """Yield the free axes of inputs at one size of which alone the model fits together."""
        known = all(p in self._places or p[0] == p[1] for *_, p in self._wrong(self._shapes))
        if known and not self._misfit:
            return
        constants = facts_of(inferred(self._model, {})).constants.values()
        numbers = {
            *map(int, re.findall(r"=(\d+)", self._misfit)),
            *(int(n) for each in constants if each.dtype.kind in "iu" for n in each.ravel()),
            *(size for tensor in self._flow.stored.values() for size in tensor.dims),
        }
        sizes = [*SIZES, *sorted(number for number in numbers if 0 < number < LARGEST)]
        most = MOST_INFERRED // max(1, len(self._nodes) * len(self._free))
        for pair in [each for each in self._places if each not in self._told]:
            fitting = {size for size in sizes[:most] if self._fits({pair: size})}
            others = fitting - {1}  # at which much is broadcast
            if len(others or fitting) == 1 and not self._fits({pair: max(fitting) + 1}):
                self._told[pair] = max(fitting)
                only = " and ".join(map(str, sorted(fitting)))
                yield (
                    f"{self._places[pair]}, is declared free, but all shapes fit at {only} alone:"
                    f" frozen when the model was exported{self._by('time')}"
                )

    def _fits(self, fixed: Mapping[Pair, int]) -> bool:
        """Whether nothing contradicts anything with some free sizes fixed."""
        try:
            shapes = self._inferred(fixed, strict=True)
        except InvalidRequest:
            return False
        batches = (batch for _, _, batch in self._batches(shapes))
        return all(len({*filter(None, each.values())}) < 2 for each in batches) and all(
            pair == (fixed.get(wanted),) * 2 for *_, wanted, pair in self._wrong(shapes)
        )

    def _batches(
        self, shapes: Mapping[str, Pairs]
    ) -> Iterator[tuple[Site, Mapping[str, str], Mapping[str, Pair | None]]]:
        """Yield recurrent nodes, their inputs by role, and the batches of X and initial states."""
        for site, row, roles in self._flow.recurrent:
            found = {}
            for role in ("X", *CONTINUED):
                shape, order = shapes.get(roles.get(role, ""), ()), order_of(site, row, role)
                if len(shape) == len(order) and "batch_size" in order:
                    found[role] = shape[order.index("batch_size")]
            yield site, roles, found

    def _wrong(
        self, shapes: Mapping[str, Pairs]
    ) -> Iterator[tuple[str, int, int | str, Pair, Pair]]:
        """Yield the output, the axis, the declared and the computed size of each contradiction."""
        for value in self._model.proto.graph.output:
            declared, shape = declared_shape(value) or (), shapes.get(value.name, ())
            if len(declared) != len(shape):
                continue
            for axis, (own, pair) in enumerate(zip(declared, shape, strict=True)):
                wanted = (own, own) if isinstance(own, int) else self._free.get(own)
                if wanted and pair and wanted != pair:
                    yield value.name, axis, own, wanted, pair

    def misdeclared(self) -> Iterator[str]:
        """Yield the axes of outputs whose size is not the declared one."""
        for name, axis, own, wanted, pair in self._wrong(self._shapes):
            told = f"{name}: its axis {axis} is declared {own}, but"
            if {wanted, pair} & self._told.keys():
                continue
            if pair in self._places:
                by = self._by("time") if isinstance(own, int) else ""
                yield f"{told} is as long as {self._places[pair]}, which is free{by}"
            elif pair[0] == pair[1]:
                nodes = nodes_that_make(self._nodes, [name])
                losing = (  # the size, which an input has and no output
                    (index, node)
                    for index, node in reversed(nodes)
                    if any(wanted in self._shapes.get(each, ()) for each in node.input)
                    and not any(wanted in self._shapes.get(each, ()) for each in node.output)
                )
                index, node = next(losing, nodes[-1])
                said = f"node '{display_name(node, index)}' ({operator_name(node)})"
                yield f"{told} is {pair[0]} at any {own}, as {said} makes it"
            else:
                yield f"{told} has another size"

    def states(self) -> Iterator[str]:
        """Yield the recurrent nodes whose initial states have one batch, or numbers."""
        for site, roles, batches in self._batches(self._shapes):
            batch = batches.get("X")
            fixed: dict[str, list[str]] = defaultdict(list)  # where it is from, with the size
            for role in CONTINUED:
                name, size = roles.get(role, ""), batches.get(role)
                if batch in self._places and size and size[0] == size[1]:
                    constant = name in self._flow.constants
                    what = "constant, of" if constant else "computed for"
                    what = f"the input {name}, of" if name in self._flow.inputs else what
                    fixed[f"{what} batch_size {size[0]}"].append(role)
                    self._told[batch] = size[0]
            for what, named in fixed.items():
                be = "are" if len(named) > 1 else "is"
                yield f"{site.name}: {' and '.join(named)} {be} {what}, although X has any"

            values = {role: self._flow.constant(roles.get(role, "")) for role in CONTINUED}
            if found := [role for role, v in values.items() if v is not None and v.any()]:
                be = "are constants" if len(found) > 1 else "is a constant"
                yield (
                    f"{site.name}: {' and '.join(found)} {be} other than 0: learned, or a state"
                    f" that was frozen when the model was exported{self._by('states')}"
                )

    def misshapen(self) -> Iterator[UnevaluatedNode]:
        """Yield the recurrent nodes whose inputs do not fit together at any size."""
        for site, row, _ in self._flow.recurrent:
            shapes = {}
            for each, name in zip(row.inputs, site.node.input, strict=False):
                shape = self._shapes.get(name)
                if shape is not None and None not in shape:
                    shapes[each.name] = tuple(
                        pair[0] if pair[0] == pair[1] else self._told.get(pair, 1)
                        for pair in filter(None, shape)
                    )
            attributes = {each.name: attribute_value(each) for each in site.node.attribute}
            if found := [*shape_problems(row, attributes, shapes)]:
                path = rooted(self._model, (*site.path, site.name))
                yield UnevaluatedNode(site.name, operator_name(site.node), path, "; ".join(found))

    def resets(self) -> Iterator[str]:
        """Yield GRU nodes that reset before the product, unlike the framework they are from."""
        producer = self._model.proto.producer_name
        for site, row, roles in self._flow.recurrent:
            attributes = {each.name: each.i for each in site.node.attribute}
            if row.type != "GRU" or attributes.get("linear_before_reset"):
                continue
            biases = self._flow.constant(roles["B"]) if "B" in roles else None
            H = attributes.get("hidden_size", 0)
            fits = biases is not None and H > 0 and biases.size % (6 * H) == 0
            has_two = fits and biases is not None and biases.reshape(-1, 6, H)[:, 5].any()
            if producer == "pytorch" or (producer in TWO_BIASES and has_two):
                framework = "PyTorch's GRU" if producer == "pytorch" else "a GRU with two biases"
                yield (
                    f"{site.name}: linear_before_reset is 0, but {framework} resets after the"
                    f" product, as 1 does{self._by('reset')}"
                )

    def unread(self) -> Iterator[str]:
        """Yield the inputs that nothing reads."""
        ends = {value.name for value in self._model.proto.graph.output}
        for value in self._model.inputs:
            if value.name not in self._readers.keys() | ends:
                yield f"{value.name}: no node reads this input"

    def unrolled(self) -> Iterator[str]:
        """Yield the axes of inputs whose steps are read one by one, as many as were traced."""
        # How often weights are read, each time after another.
        weights = (name for name, tensor in self._flow.stored.items() if len(tensor.dims) > 1)
        readers = (each for name in weights if len(each := self._readers.get(name, [])) > 1)
        repeats = {
            len(each) for each in readers if self._flow.needs(*each[-1].output) & {*each[0].output}
        }
        for value in self._model.inputs:
            for axis, size in enumerate(declared_shape(value) or ()):
                place = f"axis {axis} of {value.name}"
                export, symbol = self, str(size) or place
                if isinstance(size, int):  # of steps, if weights are read as often
                    if size < 3 or repeats.isdisjoint((size - 1, size)):
                        continue
                    export, symbol = Export(self._model, (value.name, axis)), place
                pair = export._free.get(symbol)
                read = export._positions(value.name, pair) if pair else None
                if not read or len(read) < 2 or read != {*range(len(read))}:
                    continue
                if size == len(read):
                    yield (
                        f"{value.name}: its axis of time, {axis}, is frozen to {size} steps, each"
                        " with nodes of its own: the recurrence was unrolled"
                    )
                elif pair in self._places.keys() - self._told.keys():
                    self._told[pair] = len(read)
                    yield (
                        f"{self._places[pair]}, is declared free, but only its first {len(read)}"
                        " steps are read: frozen when the recurrence was unrolled"
                    )

    def placed(self) -> Iterator[str]:
        """Yield the nodes that read a free axis at one place, counted from its start and beyond."""
        for index, node in self._nodes:
            if node.op_type != "Gather" or node.domain or len(node.input) < 2:
                continue
            shape, place = self._shapes.get(node.input[0], ()), self._flow.constant(node.input[1])
            axis = next((each.i for each in node.attribute if each.name == "axis"), 0)
            pair = shape[axis] if -len(shape) <= axis < len(shape) else None
            whole = self._places.get(pair) if pair and pair not in self._told else None
            if whole and place is not None and place.size == 1 and place.item() > 0:
                yield (
                    f"node '{display_name(node, index)}' (Gather): reads step {place.item()} of"
                    f" {whole}, however many there are"
                )

    @cached_property
    def _readers(self) -> dict[str, list[NodeProto]]:
        """The nodes that read each value, outputs of the model read by none."""
        found: dict[str, list[NodeProto]] = defaultdict(list)
        for node in self._model.proto.graph.node:
            for name in {*node.input, *captured_names(node)}:
                found[name].append(node)
        return found

    def _positions(self, name: str, pair: Pair) -> set[int] | None:
        """Return the positions that are read of the axis of a value that has a size.

        None if nodes read it whole, or in a way that is not known here.
        """
        read: set[int] = set()
        left = [name]
        ends = {value.name for value in self._model.proto.graph.output}
        while left:
            name = left.pop()
            shape = self._shapes.get(name, ())
            if name in ends or shape.count(pair) != 1:
                return None
            axis = shape.index(pair)
            for node in self._readers.get(name, ()):
                found = self._taken(node, axis, len(shape))
                if node.op_type == "Shape":
                    continue
                if found is not None:
                    read |= found
                elif node.op_type in POINTWISE and not node.domain:
                    left += node.output
                else:
                    return None
        return read

    def _taken(self, node: NodeProto, axis: int, rank: int) -> set[int] | None:
        """Return the positions of an axis that a node takes out, if they are constants."""
        attributes: dict[str, Any] = {each.name: each.i for each in node.attribute}
        own = attributes.get("axis", 0) % rank
        if node.domain or (node.op_type in TAKING and own != axis):
            return None
        if node.op_type == "Split":  # into as many as it has outputs, of one step each
            return {*range(len(node.output))}
        numbers = [self._flow.constant(each) for each in node.input[1:] if each]
        if node.op_type == "SplitToSequence" and not numbers:
            taken = [reader for name in node.output for reader in self._readers.get(name, ())]
            if any(reader.op_type != "SequenceAt" for reader in taken):
                return None
            places = [self._flow.constant(name) for each in taken for name in each.input[1:]]
        elif node.op_type == "Gather":
            places = numbers
        elif node.op_type == "Slice" and len(numbers) > 2:
            known = [[] if each is None else each.ravel().tolist() for each in numbers]
            starts, ends, axes, steps = (*known, [1])[:4]
            is_one = len(starts) == len(ends) == len(axes) == 1 and steps == [1]
            if not is_one or axes[0] % rank != axis or not 0 <= starts[0] < ends[0] < LARGEST:
                return None
            places = [np.arange(starts[0], ends[0])]
        else:
            return None
        if any(each is None or (each < 0).any() for each in places):
            return None
        return {int(number) for each in places if each is not None for number in each.ravel()}
