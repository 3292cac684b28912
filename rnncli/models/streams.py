"""States, steps and batches of whole models: which inputs continue outputs of the call before.

A state is an input and an output of one type and shape. Names that are equal without words such as
`in`, `out`, `next`, `past` make a pair, or else the graph: the input's values, moved but not
computed with, are joined with others or are the initial state of a recurrent node, and end up in
the output. Axes of time and batch are those that recurrent nodes read as seq_length and batch_size,
or that are named so.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.errors import InvalidRequest, RnncliError, did_you_mean
from rnncli.models.model import bodies, captured_names, declared_shape, describe, subgraphs
from rnncli.models.node_listing import recurrent_sites
from rnncli.models.skeleton import inferred, shapes_in
from rnncli.models.tensor_values import tensor_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from onnx import NodeProto

    from rnncli.models.model import Model, Site
    from rnncli.models.skeleton import Shapes
    from rnncli.numerics import Array
    from rnncli.operators.operator import Operator, Tensor


# Words of names that say which end of a step a state is at.
ENDS = frozenset(
    (
        *("in", "out", "input", "output", "new", "next", "old", "prev", "previous"),
        *("past", "present", "init", "initial", "final", "last", "n"),
    )
)
TIMES = frozenset(
    (
        *("t", "s", "time", "seq", "sequence", "seqlen", "len", "length"),
        *("frame", "frames", "steps", "samples"),
    )
)
BATCHES = frozenset(["n", "b", "batch", "batchsize", "bs"])
# Symbols that exporters make up, as torch.export (s77, u0), tf2onnx (unk__1) and ONNX Runtime
# (unk_3, dim_3) do; they say nothing of what an axis is.
AUTOMATIC = re.compile(r"\b(?:s|u|unk|dim)_*\d+\b")
# Operators whose outputs hold values of their first input, unchanged; those that join inputs.
MOVING = frozenset(
    (
        *("Cast", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice"),
        *("Split", "Squeeze", "Transpose", "Unsqueeze"),
    )
)
JOINING = frozenset({"Concat"})
# Role of a recurrent node's input -> the roles of the outputs that continue it.
CONTINUED = {"initial_h": ("Y", "Y_h"), "initial_c": ("Y_c",)}
BOOL = 9  # TensorProto.BOOL: a mask passed through is not a state


class StatePair(NamedTuple):
    """An input that continues an output of the call before, and how that is known."""

    input: str
    output: str
    reason: str


class FreeAxis(NamedTuple):
    """An axis of time or of the batch, whose size is free."""

    axis: int  # counted from 0
    size: str  # the symbol that the model declares
    reason: str  # how it is known


class Streams(NamedTuple):
    """The states of a model, and the axes of its inputs; warnings are sentences.

    Those of `crossed` are about pairs that were found by names, and that the graph contradicts;
    `anew` are recurrent nodes of the graph that begin at each call, whatever the states are, and
    `forgetting` says of those that read a stream forward what they begin with.
    """

    pairs: tuple[StatePair, ...]
    time: Mapping[str, FreeAxis]
    batch: Mapping[str, FreeAxis]
    warnings: tuple[str, ...]
    crossed: tuple[str, ...] = ()
    anew: tuple[str, ...] = ()
    forgetting: tuple[str, ...] = ()

    def sizes_of(self, inputs: Mapping[str, Array]) -> dict[str, int]:
        """Return the sizes of the free axes that some inputs have, by symbol."""
        return {
            axis.size: inputs[name].shape[axis.axis]
            for axes in (self.time, self.batch)
            for name, axis in axes.items()
            if name in inputs and inputs[name].ndim > axis.axis
        }

    def without(self, inputs: Iterable[str]) -> Streams:
        """Return the same with the sizes of some inputs given: axes of those sizes are not free."""
        found = [each[name].size for name in inputs for each in self[1:3] if name in each]
        time, batch = (
            {name: axis for name, axis in each.items() if axis.size not in found}
            for each in (self.time, self.batch)
        )
        return self._replace(time=time, batch=batch)


def streams_of(model: Model, given: Mapping[str, str] | None = None) -> Streams:
    """Find the states of a model, and the axes of time and batch of its inputs.

    Args:
        model: the model; it is not run.
        given: pairs that the user names, input -> output, which replace those found.

    Raises:
        InvalidRequest: a given pair is not an input and an output of one type and shape.
    """
    graph = DataFlow(model)
    pairs = graph.given_pairs(given) if given else graph.pairs()
    states = {pair.input for pair in pairs}
    time = graph.axes("seq_length", TIMES, states)
    batch = graph.axes("batch_size", BATCHES, set())
    crossed = tuple(graph.crossed(pairs))
    forgetting = tuple(graph.forgetting({axis.size for axis in time.values()}, states))
    told = (*graph.warnings(pairs), *crossed, *forgetting)
    anew = tuple(graph.anew(states))
    return Streams(pairs, time, batch, told, () if given else crossed, anew, forgetting)


def supposed_axes(model: Model) -> tuple[Mapping[str, FreeAxis], Mapping[str, FreeAxis]]:
    """Return axes of time and batch of a model that has no states, names or nodes that tell them.

    Of several free sizes, one that every input and output has is the batch; the first of the
    others, or the only one, is time, of which nothing is asked that does not hold of a batch.
    """
    shapes = [declared_shape(each) or () for each in (*model.inputs, *model.proto.graph.output)]
    free = dict.fromkeys(each for shape in shapes for each in shape if isinstance(each, str))
    shared = [size for size in free if len(free) > 1 and all(size in shape for shape in shapes)][:1]
    batch, time = (
        {
            value.name: FreeAxis(shape.index(size), size, reason)
            for value, shape in zip(model.inputs, shapes, strict=False)
            for size in sizes
            if shape.count(size) == 1
        }
        for sizes, reason in (
            (shared, "every input and output has it"),
            ([size for size in free if size not in shared][:1], "no other size is free"),
        )
    )
    return time, batch


def alike(model: Model) -> Iterator[str]:
    """Yield the inputs and outputs of one type and shape, as `--state` takes them."""
    graph = DataFlow(model)
    for one in graph.inputs:
        yield from (f"{one}={other}" for other in graph.outputs_like(one))


class DataFlow:
    """The values of a model's graph: which reach which, and which depend on which."""

    def __init__(self, model: Model) -> None:
        self._source, self._model = model, inferred(model, {})
        self._graph = self._model.proto.graph
        self._shapes = shapes_in(self._model.proto)
        self.name = model.name
        self._folder = model.folder
        self.stored = {tensor.name: tensor for tensor in model.proto.graph.initializer} | {
            node.output[0]: attribute.t
            for node in model.proto.graph.node
            if node.op_type == "Constant" and node.output
            for attribute in node.attribute
            if attribute.name == "value"
        }
        self.inputs = {value.name: value for value in self._model.inputs}
        self.outputs = {value.name: value for value in self._graph.output}
        self.recurrent = [
            (site, row, _by_role(site.node.input, row.inputs))
            for site, row in recurrent_sites(self._model)
        ]

    def given_pairs(self, given: Mapping[str, str]) -> tuple[StatePair, ...]:
        """Return pairs named by the user.

        Raises:
            InvalidRequest: see `streams_of`.
        """
        for kind, names, known in (
            ("input", given.keys(), self.inputs),
            ("output", given.values(), self.outputs),
        ):
            for name in names:
                if name not in known:
                    hint = did_you_mean(name, known) or f"; it has {', '.join(known)}"
                    raise InvalidRequest(f"{self.name}: --state: no {kind} '{name}'{hint}")
        for begin, end in given.items():
            if not self._is_alike(begin, end):
                own = describe(self.inputs[begin]), describe(self.outputs[end])
                raise InvalidRequest(
                    f"{self.name}: --state {begin}={end}: the input is {own[0]}, the output"
                    f" {own[1]}"
                )
        return tuple(StatePair(begin, end, "by --state") for begin, end in given.items())

    def pairs(self) -> tuple[StatePair, ...]:
        """Return the pairs that names and the graph show, in the order of the inputs."""
        found: dict[str, StatePair] = {}
        stems = {name: _stem(name) for name in (*self.inputs, *self.outputs)}
        count = Counter(stems[name] for name in self.inputs)
        named: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for end in self.outputs:
            named[stems[end]].append(end)
        for begin in self.inputs:
            if not stems[begin] or count[stems[begin]] > 1:
                continue
            ends = [end for end in named[stems[begin]] if self._is_alike(begin, end)]
            if len(ends) == 1:
                reason = f"names and shapes agree: {' '.join(stems[begin])}"
                found[begin] = StatePair(begin, ends[0], reason)
        taken = {pair.output for pair in found.values()}
        for name in self.inputs:
            ends = [each for each in self._carried(name) if each not in taken]
            if name not in found and len(ends) == 1:
                found[name] = StatePair(name, ends[0], "the graph carries the one into the other")
                taken.add(ends[0])
        return tuple(found[name] for name in self.inputs if name in found)

    def _is_alike(self, begin: str, end: str) -> bool:
        """Whether an input and an output may have one type and shape."""
        one, other = self.inputs[begin], self.outputs[end]
        types = {one.type.tensor_type.elem_type, other.type.tensor_type.elem_type}
        first, last = self._shapes.get(begin), self._shapes.get(end)
        fits = last is None or (
            first is not None
            and len(first) == len(last)
            and all(isinstance(b, str) or a == b for a, b in zip(first, last, strict=True))
        )
        return fits and BOOL not in types and len(types - {0}) == 1

    def outputs_like(self, begin: str) -> Iterator[str]:
        """Yield the outputs that have the type and shape of an input."""
        return (end for end in self.outputs if self._is_alike(begin, end))

    def _carried(self, begin: str) -> list[str]:
        """Return the outputs like an input that its values reach beside others."""
        reached: dict[str, bool] = {}  # value -> whether others may be among them
        left = [(begin, False)]
        while left:
            name, is_joined = left.pop()
            if reached.get(name, False) or (name in reached and not is_joined):
                continue
            reached[name] = is_joined
            left += [(to, is_joined or joins) for to, joins in self._edges[name]]
        return [end for end in self.outputs if reached.get(end) and self._is_alike(begin, end)]

    @cached_property
    def _edges(self) -> Mapping[str, list[tuple[str, bool]]]:
        """Value -> the values that hold it or continue it, and whether others join it there."""
        edges: dict[str, list[tuple[str, bool]]] = defaultdict(list)
        for body in bodies(self._graph):
            for node in body.node:
                for begin, end, joins in _moves(node):
                    edges[begin].append((end, joins))
        for site, row, roles in self.recurrent:
            made = _by_role(site.node.output, row.outputs)
            for role, ends in CONTINUED.items():
                edges[roles.get(role, "")] += [(made[end], True) for end in ends if end in made]
        edges.pop("", None)
        return edges

    def axes(self, size: str, words: frozenset[str], but: set[str]) -> dict[str, FreeAxis]:
        """Return the axes of the inputs that are a size of recurrent nodes, or are named so."""
        found: dict[str, FreeAxis] = {}
        for name, value in self.inputs.items():
            if name in but:
                continue
            shape = declared_shape(value) or ()
            for site, where in self._sizes(size):
                is_free = isinstance(where, str) and where and shape.count(where) == 1
                if is_free and not (size == "batch_size" and site.name in self._of_fixed_batch):
                    found[name] = FreeAxis(shape.index(where), str(where), f"{size} of {site.name}")
                    break
            else:
                for axis, symbol in enumerate(shape):
                    if isinstance(symbol, str) and not words.isdisjoint(
                        _words(AUTOMATIC.sub("", symbol))
                    ):
                        found[name] = FreeAxis(axis, symbol, "its name")
                        break
        return found

    @cached_property
    def _of_fixed_batch(self) -> set[str]:
        """The recurrent nodes whose initial state has one batch size, whatever is said of X."""
        found = set()
        for site, row, roles in self.recurrent:
            order = order_of(site, row, "initial_h")
            shape = self._shapes.get(roles.get("initial_h", ""), ())
            if len(shape) == len(order) > 0 and isinstance(shape[order.index("batch_size")], int):
                found.add(site.name)
        return found

    def _sizes(self, size: str, shapes: Shapes | None = None) -> Iterator[tuple[Site, int | str]]:
        """Yield recurrent nodes with a size of theirs, as far as it is known."""
        for site, row, roles in self.recurrent:
            shape = (shapes or self._shapes).get(roles.get("X", ""), ())
            order = order_of(site, row, "X")
            if len(shape) == len(order) and size in order:
                yield site, shape[order.index(size)]

    def warnings(self, pairs: Sequence[StatePair]) -> Iterator[str]:
        """Yield in sentences whatever of states and axes makes streaming wrong or impossible."""
        # Without states, axes that have the fixed length of recurrent nodes.
        steps = {size: site.name for site, size in self._sizes("seq_length")}
        for name, value in {} if pairs else self.inputs.items():
            shape = declared_shape(value) or ()
            for axis, own in enumerate(shape):
                if not isinstance(own, int) or own < 2 or own not in steps or shape.count(own) > 1:
                    continue
                more = {name: [*shape[:axis], own + 1, *shape[axis + 1 :]]}
                shapes = shapes_in(inferred(self._source, more, trusting=False).proto)
                if own + 1 in (size for _, size in self._sizes("seq_length", shapes)):
                    yield (
                        f"{name}: its axis of time, {axis}, is frozen to {own} steps, the length"
                        f" of {steps[own]} when it was traced"
                    )

        # States that do not go on.
        read = {name for body in bodies(self._graph) for node in body.node for name in node.input}
        fed = self.inputs.keys() - {pair.input for pair in pairs}
        for begin, end, _ in pairs:
            needs = self.needs(end)
            if begin in read and begin not in needs:
                yield f"{end}: does not depend on the state {begin}, which it continues"
            elif begin in read and needs.isdisjoint(fed):
                yield f"{end}: depends on no input but states, so nothing new enters it"

    def crossed(self, pairs: Sequence[StatePair]) -> Iterator[str]:
        """Yield in sentences the states that the graph carries into outputs of other pairs."""
        for begin, end, _ in pairs:
            others = self._carried(begin)
            if others and end not in others:
                yield (
                    f"{begin}: is paired with {end}, but the graph carries it into"
                    f" {', '.join(others)}"
                )

    def anew(self, states: set[str]) -> Iterator[str]:
        """Yield the recurrent nodes, outside bodies, whose initial state depends on no state."""
        for site, row, roles in self.recurrent:
            begin = roles.get(_states_of(row)[0])
            if not (site.path or (begin and self.needs(begin) & states)):
                yield site.name

    def forgetting(self, times: set[str], states: set[str]) -> Iterator[str]:
        """Yield in sentences the nodes, if all are forward, that forget what was before a call.

        They read an axis of time and begin with constants, or with an input that no output
        continues, or with constants other than 0.
        """
        lengths = {site.name: size for site, size in self._sizes("seq_length")}
        sites = [each for each in self.recurrent if not each[0].path]
        directions = [
            attribute.s
            for site, _, _ in sites
            for attribute in site.node.attribute
            if attribute.name == "direction"
        ]
        if any(direction != b"forward" for direction in directions):
            return
        for site, row, roles in sites:
            begins = {role: self.constant(roles.get(role, "")) for role in _states_of(row)}
            is_frozen = any(v is not None and v.any() for v in begins.values())
            first = next(iter(begins.values()))
            if is_frozen or (first is not None and lengths.get(site.name) in times):
                yield f"not streamable: node '{site.name}' begins anew at each call"
            elif lengths.get(site.name) in times:
                for role in begins:
                    if (begin := self._origin(roles.get(role, ""))) in self.inputs.keys() - states:
                        yield (
                            f"not streamable: no output continues {begin}, the {role} of node"
                            f" '{site.name}'"
                        )

    def constant(self, name: str) -> Array | None:
        """Return numbers of a value that no input has a part in but by its shape; None otherwise.

        "" is an absent input, and stands for 0.
        """
        name = self._origin(name)
        if not name:
            return np.zeros(1)
        if name in self.stored:
            try:
                return tensor_values(self.stored[name], self._folder)
            except RnncliError:  # evaluation will report it
                return None
        node = self._makers.get(name)
        if node is None or node.op_type != "ConstantOfShape":
            return None
        values = [attribute.t for attribute in node.attribute]
        return tensor_values(values[0], None) if values else np.zeros(1)

    def _origin(self, name: str) -> str:
        """Return the value whose numbers a value has, moved but not computed with."""
        while (node := self._makers.get(name)) and node.op_type in MOVING | {"Tile"}:
            name = next(iter(node.input), "")
        return name

    @cached_property
    def _makers(self) -> Mapping[str, NodeProto]:
        """Value -> the node of the graph that makes it."""
        return {name: node for node in self._graph.node for name in node.output if name}

    @cached_property
    def _read_by(self) -> Mapping[str, set[str]]:
        """Value -> the values that the node that makes it reads."""
        reads = ((node, {*node.input, *captured_names(node)}) for node in self._graph.node)
        return {name: values for node, values in reads for name in node.output}

    @cached_property
    def constants(self) -> set[str]:
        """The names of the values that are stored, or made by Constant."""
        made = (n for b in bodies(self._graph) for n in b.node if n.op_type == "Constant")
        return self._model.initializers.union(*(node.output for node in made))

    def needs(self, *outputs: str) -> set[str]:
        """Return the values that some outputs depend on, with these."""
        needs, left = {*outputs}, [*outputs]
        while left:
            more = self._read_by.get(left.pop(), set()) - needs
            needs |= more
            left += more
        return needs


def _states_of(operator: Operator) -> list[str]:
    """Return the roles of the states with which a node of an operator begins."""
    return [row.role for row in operator.inputs if row.role in CONTINUED]


def order_of(site: Site, row: Operator, role: str) -> list[str]:
    """Return the axes of the input of a recurrent node with a role, by size; none without one."""
    variant = row.variant({each.name: each.i for each in site.node.attribute})
    of_role = (tensor.shape(variant) for tensor in row.inputs if tensor.role == role)
    return [dim.symbol for dim in next(of_role, ())]


def _by_role(names: Iterable[str], rows: Iterable[Tensor]) -> dict[str, str]:
    """Return the present tensors of a recurrent node by their roles."""
    return {row.role: name for row, name in zip(rows, names, strict=False) if name}


def _moves(node: NodeProto) -> Iterator[tuple[str, str, bool]]:
    """Yield the values that a node passes on, each with where, and whether it joins others."""
    if not node.domain and node.op_type in MOVING | JOINING:
        joins = node.op_type in JOINING
        for begin in node.input if joins else node.input[:1]:
            yield from ((begin, end, joins) for end in node.output)
    # What enters and leaves a body of If, Loop or Scan.
    entering, leaving = {"Loop": (2, 1)}.get(node.op_type, (0, 0))
    for _, body in subgraphs(node):
        for begin, inside in zip(node.input[entering:], body.input[entering:], strict=False):
            yield begin, inside.name, False
        for inside, end in zip(body.output[leaving:], node.output, strict=False):
            yield inside.name, end, False


def _words(name: str) -> list[str]:
    """Return the words of a name, in small letters: stateN -> state, n."""
    return [each.lower() for each in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", name)]


def _stem(name: str) -> tuple[str, ...]:
    """Return the words of a name without those that say the end of a step: h0, hn and h_in: h."""
    words = [re.sub(r"^([hc])[nx]$", r"\1", word) for word in _words(name)]
    kept = [word for word in words if word not in ENDS]
    return tuple(kept[:-1] if len(kept) > 1 and kept[-1] == "0" else kept)
