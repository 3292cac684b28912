"""The relations: transformations of a call, their conditions and the bugs they find.

A relation runs transformed calls and maps their outputs back to the shape of the original outputs.
The two must agree, so no expected output is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.numerics import dtype_of
from rnncli.numerics.randomness import seed_key, uniform
from rnncli.operators.operator import GROUPS
from rnncli.packs.vector import held_inputs
from rnncli.recurrence.lanes import in_order
from rnncli.recurrence.recurrence import Direction
from rnncli.verifying.node_call import (
    D,
    H,
    I,
    N,
    NodeCall,
    T,
    along,
    functions_problem,
    inverse,
    joined,
    of_directions,
    picked,
    picked_outputs,
    scattered,
)
from rnncli.verifying.relations.judging import BIT, TOLERANCE, Applicability, Relation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array
    from rnncli.operators import Operator
    from rnncli.verifying.relations.judging import Asker, JudgedCall

    # Maps a call to the outputs that must equal the call's own: a `NodeCall`, or in other tables
    # another, with an `Asker` and, of some relations, an amount.
    Transformation: TypeAlias = Callable[..., Tensors]

# What is added: first more than the tiles, vectors and blocks of usual kernels; then, in a relation
# that has the amount in its name, more than two blocks of 64, or one of 128 or 256. Neither is a
# multiple of any. Work grows with the square of units alone.
STEPS, SEQUENCES, UNITS, INPUTS = (19, 259), (37, 261), (37, 149), (37, 293)
# Initial states, and the outputs that hold their final values.
STATES = {"initial_h": "Y_h", "initial_c": "Y_c"}
ELSEWHERE = {"inputs": "initializers", "initializers": "inputs"}
TURNED = {"forward": "reverse", "reverse": "forward", "bidirectional": "bidirectional"}


def _lacks(call: NodeCall, symbol: str) -> str:
    lacks = not (call.row.cell.projects or call.row.has(symbol))
    return f"{call.operator} has no {symbol}" * lacks


def _several(symbol: str) -> Applicability:
    def reason(call: NodeCall) -> str:
        size = call.size(symbol)
        return _lacks(call, symbol) or ("" if size > 1 else f"{symbol} is {size}")

    return Applicability(f"{symbol} is 2 or more", reason)


def _some(symbol: str) -> Applicability:
    return Applicability(
        f"{symbol} is 1 or more",
        lambda call: _lacks(call, symbol) or ("" if call.size(symbol) else f"{symbol} is 0"),
    )


def _some_of_finite(symbol: str) -> Applicability:
    """Return the condition of what multiplies inputs by additional zeros."""

    def reason(call: NodeCall) -> str:
        floats = (v for v in call.inputs.values() if dtype_of(v).is_float)
        is_endless = any(np.isinf(v.astype(np.float64)).any() for v in floats)
        return _some(symbol).reason(call) or "0 times infinity is NaN" * is_endless

    return Applicability(f"{_some(symbol).when}, and no input is infinite", reason)


def _linear(operator: Operator) -> bool:
    return not operator.cell.projects


ALWAYS = Applicability("always", lambda _: "")
RAGGED = Applicability(
    "a sequence is shorter than seq_length",
    lambda call: "" if (call.lengths < call.steps).any() else "no sequence has padding",
)
RELATIONS: dict[str, Relation] = {}
"""Every relation of nodes by its name, in the order of this file."""
STREAM_RELATIONS: dict[str, Relation] = {}
"""Every relation of streams by its name: those that are of nodes as well, and of `streaming`."""
BOTH = (RELATIONS, STREAM_RELATIONS)


def relation(
    summary: str,
    finds: str,
    applies: Applicability = ALWAYS,
    equality: str = TOLERANCE,
    *,
    quantised: bool = True,
    repeats: bool = False,
    sequences: bool = False,
    carries: bool = False,
    concerns: Callable[[Operator], bool] = lambda _: True,
    name: str = "",
    amounts: Sequence[int] = (),
    tables: Iterable[dict[str, Relation]] = (RELATIONS,),
) -> Callable[[Transformation], Transformation]:
    """Return a decorator that makes a function a relation, of its name by default.

    One that takes an amount becomes a relation for each: the summary names it as `{}`, and so does
    the name, but for the first.
    """

    def added(answer: Transformation) -> Transformation:
        first = name or answer.__name__.removeprefix("_").replace("_", "-")
        settings: dict[str, Any] = {
            "quantised": quantised,
            "repeats": repeats,
            "sequences": sequences,
            "carries": carries,
            "concerns": concerns,
        }
        for k, amount in enumerate(amounts or (0,)):
            known, words = f"{first}-{amount}" if k else first, summary.format(amount)
            asked = partial(answer, amount=amount) if amounts else answer
            row = Relation(known, words, finds, applies, asked, equality, **settings)
            for table in tables:
                table[known] = row
        return answer

    return added


@relation(
    "the same calls after the same and others, in one session",
    "a reset that is missing, states and buffers kept between calls, uninitialised memory",
    equality=BIT,
    tables=BOTH,
)
def _again(call: JudgedCall, ask: Asker) -> Tensors:
    return ask.after(call, call.repeated())


@relation(
    "other numbers in the padding of X",
    "padding that takes part in the computation, lengths off by one",
    RAGGED,
    BIT,
    quantised=False,
)
def _padding(call: NodeCall, ask: Asker) -> Tensors:
    X, key = call.canonical("X"), seed_key(0, call.id, "padding")
    return ask(_with_padding(call, uniform([key], X.shape, -8.0, 8.0)[0].astype(X.dtype)))


@relation(
    "NaN in the padding of X",
    "padding that is multiplied by zero instead of left out",
    RAGGED,
    BIT,
    quantised=False,
)
def _nan_padding(call: NodeCall, ask: Asker) -> Tensors:
    return ask(_with_padding(call, np.full_like(call.canonical("X"), np.nan)))


def _with_padding(call: NodeCall, padding: Array) -> NodeCall:
    return call.with_canonical("X", np.where(call.valid[..., None], call.canonical("X"), padding))


@relation(
    "{} more steps of padding after all sequences, with sequence lengths",
    "steps counted from the end of X, chunks of time, lengths ignored",
    Applicability(
        "the operator has sequence lengths",
        lambda call: "" if call.named("lengths") else f"{call.operator} has no sequence lengths",
    ),
    amounts=STEPS,
)
def _longer(call: NodeCall, ask: Asker, amount: int) -> Tensors:
    X = call.canonical("X")
    more = np.concatenate([X, np.full((amount, *X.shape[1:]), 3, X.dtype)])
    found = ask(call.with_canonical("X", more).with_input("lengths", call.lengths))
    of_steps = {name: values for name, values in found.items() if name == call.tensor("Y").name}
    return {**found, **picked_outputs(call, of_steps, T, range(call.sizes[T]))}


@relation(
    "each sequence alone, cut to its length",
    "lengths: states taken past the end, a reverse that starts in the padding, sorting",
    RAGGED,
    quantised=False,
)
def _cut(call: NodeCall, ask: Asker) -> Tensors:
    every, parts = call.tensor("Y").name, []
    for n, length in enumerate(call.lengths):
        # Length 0 keeps one step of padding.
        found = ask(picked(picked(call, N, [n]), T, range(max(int(length), 1))))
        if every in found:
            values = found[every]
            widths = [
                (0, call.sizes[T] - size if dim.symbol == T else 0)
                for size, dim in zip(values.shape, call.dims(every), strict=True)
            ]
            found = {**found, every: np.pad(values, widths)}
        parts.append(found)
    return call.joined(parts)


@relation(
    "each sequence of the batch alone, including its padding",
    "batch tiles and their remainders, sequences mixed up, paths for a batch of 1",
    Applicability(
        "there are 2 or more sequences, and the batch is free",
        lambda call: "" if call.sequences > 1 else "the batch is 1, or fixed",
    ),
    quantised=False,
    sequences=True,
    tables=BOTH,
)
def _singles(call: JudgedCall, ask: Asker) -> Tensors:
    found: Tensors = call.joined([ask(call.of_sequences([n])) for n in range(call.sequences)])
    return found


@relation(
    "the batch in two parts",
    "batch tiles and their remainders, states of another row",
    _several(N),
    quantised=False,
    sequences=True,
)
def _tiles(call: NodeCall, ask: Asker) -> Tensors:
    return call.joined([ask(call.of_sequences(some)) for some in _off_the_middle(call.sequences)])


def _off_the_middle(size: int) -> tuple[range, range]:
    at = max(1, (2 * size) // 5)
    return range(at), range(at, size)


@relation(
    "the sequences in another order",
    "sorting by length that is not undone, the first row's length or state taken for all",
    _several(N),
    sequences=True,
)
def _sequences_permuted(call: NodeCall, ask: Asker) -> Tensors:
    return _permuted(call, ask, N, "sequences")


def _permuted(call: NodeCall, ask: Asker, symbol: str, name: str) -> Tensors:
    order = call.deranged(call.size(symbol), name)
    other = picked(call, symbol, order)
    return picked_outputs(other, ask(other), symbol, inverse(order))


@relation(
    "a batch with {} more sequences, which are shuffled copies",
    "batch tiles, workers and their remainders beyond a small case's own size",
    _some(N),
    sequences=True,
    amounts=SEQUENCES,
)
def _sequences_repeated(call: NodeCall, ask: Asker, amount: int) -> Tensors:
    return _repeated(call, ask, N, amount)


def _repeated(call: NodeCall, ask: Asker, symbol: str, amount: int) -> Tensors:
    count = call.size(symbol)
    copies = np.arange(amount + count) % count
    order = call.shuffled(len(copies), "copies")
    other = picked(call, symbol, copies[order])
    found = ask(other)
    # The last copy of each: the first ones are the most likely to be right.
    places = inverse(order)
    last = [max(places[copies == n]) for n in range(count)]
    return picked_outputs(other, found, symbol, last)


@relation(
    "the units in another order: W, R, B, P, states and outputs",
    "vector bodies and tails, blocks, packed weights from a wrong row",
    _several(H),
    quantised=False,
)
def _units_permuted(call: NodeCall, ask: Asker) -> Tensors:
    return _permuted(call, ask, H, "units")


@relation(
    "{} additional units of weight zero among the others",
    "vector tails, blocks and widths beyond a small case's own size",
    _some_of_finite(H),
    quantised=False,
    amounts=UNITS,
)
def _units_added(call: NodeCall, ask: Asker, amount: int) -> Tensors:
    wide, places = _widened(call, H, amount)
    return picked_outputs(call, ask(wide), H, places)


def _widened(call: NodeCall, symbol: str, amount: int) -> tuple[NodeCall, Array]:
    """Return a call with more positions of a size, and the places of its own, the last included.

    They are in order, and what is between them is zero.
    """
    size = call.sizes[symbol] + amount
    others = call.shuffled(size - 1, f"more {symbol}")[: call.sizes[symbol] - 1]
    places = np.append(np.sort(others), size - 1)
    return scattered(call, symbol, size, places), places


@relation(
    "the inputs of each step in another order: X and W",
    "reduction blocks and their remainders",
    _several(I),
)
def _inputs_permuted(call: NodeCall, ask: Asker) -> Tensors:
    return _permuted(call, ask, I, "inputs")


@relation(
    "{} additional inputs of weight zero among the others",
    "reduction blocks and their remainders beyond a small case's own size",
    _some(I),
    quantised=False,
    amounts=INPUTS,
)
def _inputs_added(call: NodeCall, ask: Asker, amount: int) -> Tensors:
    wide, places = _widened(call, I, amount)
    X = wide.canonical("X").copy()
    unread = np.setdiff1d(np.arange(X.shape[-1]), places)
    X[..., unread] = np.asarray(0.5 + unread % 3, X.dtype)
    return ask(wide.with_canonical("X", X))


@dataclass(frozen=True, eq=False)
class NodeParts:
    """A node's call, made on successive parts of its steps.

    A sequence without a step in a later part gets one there that is not counted, since the result
    of length 0 is contested. Forward states are carried from the first part to the last, reverse
    ones from the last to the first, so a bidirectional node is called twice on all parts but one.
    """

    call: NodeCall
    parts: Sequence[range]

    def streamed(self, run: Callable[[NodeCall], Tensors]) -> Tensors:
        """Return the outputs of the whole, given what runs a call."""
        rows, lengths = self.call.row.outputs, self.call.lengths
        conditions = {row.condition: True for row in rows if row.condition}
        call = self.call.with_changes(
            outputs=tuple(row.name for row in rows),
            attributes={**self.call.attributes, **conditions},
        )
        backward = np.array([each is Direction.REVERSE for each in call.node.directions])

        # A call of each part, its lengths those that are left.
        calls = []
        for steps in self.parts:
            part = picked(call, T, steps)
            if part.get("lengths") is not None:
                left = np.clip(lengths - steps.start, min(steps.start, 1), len(steps))
                part = part.with_input("lengths", left)
            calls.append(part)

        # Each begins where another ended.
        made: dict[int, Tensors] = {}
        places = range(len(calls))
        to_the_first = places[::-1] if backward.any() else places[:1]
        for k in (*to_the_first, *(() if backward.all() else places[1:])):
            part, steps = calls[k], self.parts[k]
            if k + 1 in made:
                part = _carried(part, made[k + 1], backward, lengths > steps.stop)
            if k - 1 in made:
                part = _carried(part, made[k - 1], ~backward, lengths > steps.start)
            made[k] = run(part)

        # Y is joined; a sequence ends in the last part with a step of it, reversed in the first.
        known = call.valid | (np.arange(call.steps) < self.parts[0].stop)[:, None]
        merged = {}
        for name in self.call.outputs:
            values, *others = (call.node.canonical(name, made[k][name]) for k in places)
            if name == call.tensor("Y").name:
                whole = np.concatenate([values, *others])
                values = np.where(_in_rows(known[:, None], whole), whole, np.zeros_like(whole))
            else:
                for steps, later in zip(self.parts[1:], others, strict=True):
                    ends_later = ~backward[:, None] & (lengths > steps.start)
                    values = np.where(_in_rows(ends_later, values), later, values)
            merged[name] = call.node.in_layout(name, values)
        return merged


def _in_rows(of_sequences: Array, values: Array) -> Array:
    """Return what is known of sequences, the last axis, for an array's rows: all heads of each."""
    axis = of_sequences.ndim - 1
    heads = values.shape[axis] // max(of_sequences.shape[axis], 1)
    rows = np.repeat(of_sequences, heads, axis)
    return rows.reshape(*rows.shape, *[1] * (values.ndim - rows.ndim))


def _carried(call: NodeCall, outputs: Tensors, directions: Array, live: Array) -> NodeCall:
    """Return a call that starts, in some directions and sequences, from the end of another.

    Args:
        call: the call to continue with.
        outputs: outputs of the other part.
        directions: the directions that take them, [D].
        live: the sequences whose states are taken, [N].
    """
    taken = directions[:, None] & live
    for initial, final in STATES.items():
        row = call.named(final)
        if row is None:
            continue
        end = call.node.canonical(row.name, outputs[row.name])
        begin = call.canonical(initial) if call.get(initial) is not None else np.zeros_like(end)
        call = call.with_canonical(initial, np.where(_in_rows(taken, end), end, begin))
    return call


@relation(
    "T in two calls, with states carried: forward from the first steps to the last, reverse"
    " from the last to the first",
    "initial states ignored or in the wrong place, chunks of time, last states, step counters",
    _several(T),
    quantised=False,
    carries=True,
)
def _split(call: NodeCall, ask: Asker) -> Tensors:
    return ask(NodeParts(call, _off_the_middle(call.steps)))


def _reversible(call: NodeCall) -> str:
    if call.steps < 2:
        return "seq_length is 1"
    if not call.row.attribute_for("direction"):
        return f"{call.operator} has no direction but forward"
    return functions_problem(call, range(call.size(D))[::-1], TURNED[call.node.values["direction"]])


@relation(
    "the steps of each sequence in reverse order, in the opposite direction",
    "a reverse that starts in the padding, directions exchanged",
    Applicability("seq_length is 2 or more; what alpha and beta mean is settled", _reversible),
)
def _reversed(call: NodeCall, ask: Asker) -> Tensors:
    swapped = range(call.size(D))[::-1]
    turned = of_directions(call, swapped, TURNED[call.node.values["direction"]])
    X = in_order(call.canonical("X"), call.lengths, Direction.REVERSE)
    found = picked_outputs(call, ask(turned.with_canonical("X", X)), D, swapped)
    name = call.tensor("Y").name
    if name not in found:
        return found
    Y = call.node.canonical(name, found[name])
    steps = in_order(Y.swapaxes(1, 2), call.lengths, Direction.REVERSE).swapaxes(1, 2)
    return {**found, name: call.node.in_layout(name, steps)}


def _bidirectional(call: NodeCall) -> str:
    if call.size(D) == 1:
        return "it has one direction"
    problems = (functions_problem(call, [d], k) for d, k in enumerate(("forward", "reverse")))
    return next(filter(None, problems), "")


@relation(
    "each direction of a bidirectional node alone",
    "weights, states or outputs of the other direction, one direction's scratch buffers",
    Applicability("bidirectional; what alpha and beta mean is settled", _bidirectional),
)
def _directions(call: NodeCall, ask: Asker) -> Tensors:
    kinds = ("forward", "reverse")
    return joined(call, [ask(of_directions(call, [d], kinds[d])) for d in range(2)], D)


def _both_outputs(call: NodeCall) -> str:
    if call.named("Y_h") is None:
        return f"{call.operator} has no Y_h"
    rows = [call.named(role) for role in ("Y", "Y_h")]
    if any(row is None or row.name not in call.outputs for row in rows):
        return "Y and Y_h are not both requested"
    return "" if call.lengths.all() else "a sequence has length 0"


@relation(
    "Y_h taken from Y at the last step of each sequence",
    "Y_h of the wrong step, rounding or clipping of one output only",
    Applicability("Y and Y_h are requested; no length is 0", _both_outputs),
    repeats=True,
)
def _last_state(call: NodeCall, ask: Asker) -> Tensors:
    found = ask(call)
    every, last = call.tensor("Y").name, call.tensor("Y_h").name
    Y = call.node.canonical(every, found[every])
    Y_h = np.empty_like(call.node.canonical(last, found[last]))
    for d, direction in enumerate(call.node.directions):
        ends = call.lengths - 1 if direction is Direction.FORWARD else np.zeros_like(call.lengths)
        Y_h[d] = Y[ends, d, np.arange(call.sizes[N])]
    return {last: call.node.in_layout(last, Y_h)}


def _separable(call: NodeCall) -> str:
    if len(call.outputs) < 2:
        return "only one output is requested"
    needs_all = any(not row.optional for row in call.row.outputs)
    return f"a node of {call.operator} has every output" * needs_all


@relation(
    "each output requested alone",
    "paths that leave out an output, outputs that share a buffer",
    Applicability("two or more outputs are requested, and a node may leave each out", _separable),
)
def _outputs(call: NodeCall, ask: Asker) -> Tensors:
    return {name: ask(call.with_changes(outputs=(name,)))[name] for name in call.outputs}


@relation(
    "the other layout: 1 instead of 0, or 0 instead of 1",
    "axes of X, Y or a state mixed up",
    Applicability(
        "the operator has the attribute `layout`",
        lambda call: (
            "" if call.row.attribute_for("layout") else f"{call.operator} has no other layout"
        ),
    ),
)
def _layout(call: NodeCall, ask: Asker) -> Tensors:
    layout = 1 - call.node.layout
    other = call.with_changes(attributes={**call.attributes, "layout": layout})
    inputs = {
        name: np.ascontiguousarray(other.node.in_layout(name, call.node.canonical(name, values)))
        for name, values in call.inputs.items()
    }
    found = ask(other.with_changes(inputs))
    return {
        name: call.node.in_layout(name, other.node.canonical(name, values))
        for name, values in found.items()
    }


@relation(
    "weights as initializers instead of inputs, or as inputs instead of initializers",
    "differences between packing at load time and at each call",
    Applicability(
        "the operator has weights",
        lambda call: (
            ""
            if held_inputs(call.row, "initializers", call.inputs)
            else f"{call.operator} has no weights"
        ),
    ),
)
def _weights(call: NodeCall, ask: Asker) -> Tensors:
    return ask(call.with_changes(weights=ELSEWHERE[call.weights]))


@relation(
    "several threads instead of one, or one instead of several",
    "races, scratch buffers shared by workers, remainders of a worker's share",
    Applicability("the implementation has a setting for threads", lambda _: ""),
    quantised=False,
)
def _threads(call: NodeCall, ask: Asker) -> Tensors:
    return ask.in_threads(call)


def _has(*symbols: str) -> Callable[[Operator], bool]:
    return lambda operator: any(map(operator.has, symbols))


@relation(
    "T calls of one step, with states carried",
    "chunks of time: their borders, what is left of the last, what goes from one to the next",
    _several(T),
    carries=True,
    concerns=_linear,
)
def _steps(call: NodeCall, ask: Asker) -> Tensors:
    return ask(NodeParts(call, [range(t, t + 1) for t in range(call.steps)]))


def _continuable(call: NodeCall) -> str:
    name = call.tensor("Y").name
    return _some(T).reason(call) or ("" if name in call.outputs else f"{name} is not requested")


@relation(
    "{} more steps after the last, which are copies",
    "chunks and blocks of time beyond a small case's own size, later steps that earlier ones see",
    Applicability("seq_length is 1 or more; the outputs of steps are requested", _continuable),
    concerns=_linear,
    amounts=STEPS,
)
def _continued(call: NodeCall, ask: Asker, amount: int) -> Tensors:
    name, steps = call.tensor("Y").name, np.arange(call.steps + amount) % call.steps
    found = ask(picked(call, T, steps))
    return picked_outputs(call, {name: found[name]}, T, range(call.steps))


def _alone(call: NodeCall, ask: Asker, symbol: str) -> Tensors:
    each = [ask(picked(call, symbol, [k])) for k in range(call.size(symbol))]
    return joined(call, each, symbol)


def _nan_apart(call: NodeCall, ask: Asker, symbol: str) -> Tensors:
    """Return the outputs of a part, with NaN in all others, and those of the others likewise."""
    halves, parts = _off_the_middle(call.size(symbol)), []
    row = call.named("value") or call.tensor("X")
    places = np.arange(call.inputs[row.name].size).reshape(call.inputs[row.name].shape)
    for some, others in (halves, halves[::-1]):
        values = call.inputs[row.name].copy()
        values.flat[along(call, row.name, places, symbol, others)] = np.nan
        found = ask(call.with_changes({row.name: values}))
        parts.append(picked_outputs(call, found, symbol, some))
    return joined(call, parts, symbol)


# Of what is computed alike and apart: the size, the relations' name, who is asked.
for _symbol, _name, _is_asked in (
    (N, "sequences", lambda row: _linear(row) and not row.cell.of_integers),  # which have no NaN
    (GROUPS, "heads", _has(GROUPS)),
    ("channels", "channels", _has("channels")),
):
    relation(
        f"NaN in some {_name}, then in the others",
        "NaN that is multiplied by zero instead of left out",
        _several(_symbol),
        concerns=_is_asked,
        name=f"nan-{_name}",
    )(partial(_nan_apart, symbol=_symbol))

for _symbol, _name, _one, _finds in (
    (
        *(GROUPS, "heads", "head of keys and values, with its queries,"),
        "queries, keys, rates or the state of another head, groups that are tiled",
    ),
    ("channels", "channels", "channel", "taps, the bias or the past of another channel"),
):
    relation(
        f"each {_one} alone",
        f"{_finds}, paths for one of them",
        _several(_symbol),
        concerns=_has(_symbol),
        name=_name,
    )(partial(_alone, symbol=_symbol))
    relation(
        f"the {_name} in another order",
        _finds,
        _several(_symbol),
        concerns=_has(_symbol),
        name=f"{_name}-permuted",
    )(partial(_permuted, symbol=_symbol, name=_name))
    relation(
        f"{{}} more {_name}, which are shuffled copies",
        "vector tails, blocks and workers beyond a small case's own size",
        _some(_symbol),
        concerns=_has(_symbol),
        name=f"{_name}-repeated",
        amounts=UNITS[:1],
    )(partial(_repeated, symbol=_symbol))

for _symbol, _name, _what in (
    ("value_size", "columns", "columns of values and states"),
    ("key_size", "rows", "rows of states, with keys, queries and decays"),
):
    relation(
        f"the {_what} in another order",
        "vector bodies and tails, blocks, states that are transposed, decays of another row",
        _several(_symbol),
        concerns=_has(_symbol),
        name=f"{_name}-permuted",
    )(partial(_permuted, symbol=_symbol, name=_name))


@relation(
    "past state, and values or inputs and bias, divided by 4",
    "bounds, additions of what should be multiplied, inputs that are left out",
    Applicability(
        "the convolution has no activation",
        lambda call: "silu is not linear" * call.recurrence.options.silu,
    ),
    concerns=_has(GROUPS, "channels"),
)
def _scaled(call: NodeCall, ask: Asker) -> Tensors:
    roles = ("value", "initial_c") if call.named("value") else ("X", "Wb", "initial_c")
    for role in roles:
        if (values := call.get(role)) is not None:
            call = call.with_input(role, values * values.dtype.type(0.25))
    with np.errstate(over="ignore"):
        return {name: values * values.dtype.type(4) for name, values in ask(call).items()}


def relations_of(operator: Operator) -> list[Relation]:
    """Return the relations that are asked of an operator, in order."""
    return [row for row in RELATIONS.values() if row.concerns(operator)]


def relation_named(name: str, table: Mapping[str, Relation] = RELATIONS) -> Relation:
    """Return a relation of a table by its name.

    Raises:
        InvalidRequest: there is none; suggests a similar name.
    """
    if name not in table:
        hint = did_you_mean(name, table) or f"; known: {', '.join(table)}"
        raise InvalidRequest(f"unknown relation '{name}'{hint}")
    return table[name]
