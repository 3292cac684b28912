"""The blocked kernel: the cells' equations with the data movement of real kernels.

Weights are packed, all gates of a block of units together, and multiplied in blocks of terms.
Activations process whole vectors of units, then the tail. Sequences are sorted, the longest first,
and split into tiles, which workers share; inputs are projected one chunk of time at once. Every
method is one decision about data movement, so replacing it makes a bug.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from rnncli.backends.backend import Compute, working_dtype
from rnncli.backends.reference import activated
from rnncli.limits.deadline import check
from rnncli.numerics import NumPyArithmetic, round_to
from rnncli.recurrence.cells import Parameters, placed
from rnncli.recurrence.lanes import clear_unstarted, empty_outputs
from rnncli.recurrence.recurrence import Direction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rnncli.numerics import Array
    from rnncli.recurrence.activations import Activation
    from rnncli.recurrence.cells import Cell, CellOptions
    from rnncli.recurrence.recurrence import Recurrence, Result

Replacement: TypeAlias = "Callable[..., Any]"
States: TypeAlias = "tuple[Array, ...]"
MATH = NumPyArithmetic()
INPUTS, RECURRENT = "inputs", "recurrent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocking:
    """The block sizes of a kernel.

    Attributes:
        vector: number of units that an activation processes at once.
        block: number of units whose gates are packed together.
        reduction: number of terms of a sum that are multiplied at once.
        tile: number of sequences that are computed together.
        chunk: number of steps whose inputs are projected together.
        workers: number of workers that share the tiles.
    """

    vector: int = 8
    block: int = 16
    reduction: int = 16
    tile: int = 4
    chunk: int = 8
    workers: int = 2


@dataclass(frozen=True, slots=True, eq=False)
class BlockedLane:
    """One direction of a call, in the working dtype; T steps, N sequences, I inputs, H units.

    Attributes:
        d: index of the direction.
        reverse: whether it goes from the last valid step to the first.
        cell: the cell.
        X: inputs [T, N, I].
        W: input weights [G, H, I].
        R: recurrent weights [G, H, H].
        bias: the bias added to each gate's product [G, 1, H], or None.
        Rbh: the recurrent bias that a GRU resets [1, H], or None.
        P: peephole weights [3, 1, H], or None.
        initial: the initial states, each [N, H].
        lengths: valid steps [N].
        order: the sequences, longest first [N].
        activations: letter of the cell -> the activation and the bound of its argument.
        options: the lines of the cell's equations that hold.
        still: whether every multiplied state is zero, so that products with R are skipped.
        packs: packed weights by kind and gates, made on first use.
    """

    d: int
    reverse: bool
    cell: Cell
    X: Array
    W: Array
    R: Array
    bias: Array | None
    Rbh: Array | None
    P: Array | None
    initial: States
    lengths: Array
    order: Array
    activations: Mapping[str, tuple[Activation, float]]
    options: CellOptions
    still: bool = False
    packs: dict[tuple[str, int, int], Array] = field(default_factory=dict)

    @property
    def units(self) -> int:
        """H."""
        return int(self.R.shape[-1])

    def opting(self, **options: Any) -> BlockedLane:
        """Return a copy with some other options of its cell."""
        return replace(self, options=self.options._replace(**options))


class BatchTile(NamedTuple):
    """Sequences that are computed together.

    Attributes:
        lane: their direction.
        first: index of its first row among the sorted sequences.
        rows: the sequences [n], longest first.
        lengths: their valid steps [n].
    """

    lane: BlockedLane
    first: int
    rows: Array
    lengths: Array


class Span(NamedTuple):
    """A chunk of the steps of a tile.

    Attributes:
        tile: the tile.
        steps: the numbers of the steps, in processing order.
        times: the time index of each step for each row of X and Y [steps, n].
    """

    tile: BatchTile
    steps: Array
    times: Array


class Seam:
    """A right method of a kernel, as the function that replaces it may call it.

    Attributes:
        kernel: the kernel.
        blocking: its block sizes.
        kept: what it keeps between calls.
    """

    def __init__(self, kernel: BlockedKernel, method: str) -> None:
        self.kernel, self.blocking, self.kept = kernel, kernel.blocking, kernel.kept
        self._right = getattr(kernel, method)

    def __call__(self, *arguments: Any) -> Any:
        """Call the method."""
        return self._right(*arguments)


class BlockedKernel:
    """A kernel with the buffers that it keeps between calls.

    Args:
        blocking: its block sizes.
        changes: method -> function(right, *arguments) that replaces it, where `right` is its seam.
    """

    def __init__(
        self, blocking: Blocking | None = None, changes: Mapping[str, Replacement] | None = None
    ) -> None:
        self.blocking = blocking or Blocking()
        self.kept: dict[Any, Any] = {}
        for method, function in (changes or {}).items():
            setattr(self, method, partial(function, Seam(self, method)))

    def run(self, recurrence: Recurrence, compute: Compute = Compute.FLOAT64) -> Result:
        """Evaluate a recurrence; each output is rounded once to its dtype."""
        D, (T, N, _), H = len(recurrence.directions), recurrence.X.shape, recurrence.W.shape[-2]
        dtype = working_dtype(recurrence, compute)
        Y = self.cleared("Y", (T, D, N, H), dtype)
        last = tuple(self.cleared(k, (D, N, H), dtype) for k in range(recurrence.cell.states))
        with np.errstate(all="ignore"):
            for d in range(D):
                lane = self.small(self.prepared(recurrence, d, dtype))
                self.walk(lane, Y[:, d], tuple(state[d] for state in last))
            return self.returned(recurrence, Y, last)

    def returned(self, recurrence: Recurrence, Y: Array, last: States) -> Result:
        """Round the outputs Y [T, D, N, H] and the last states [D, N, H]."""
        places = empty_outputs(recurrence)
        if places.Y is not None:
            places.Y[...] = round_to(Y, recurrence.dtype)
        for place, state in zip(places.last, last, strict=True):
            place[...] = round_to(state, recurrence.dtype)
        clear_unstarted(recurrence, places.last)
        return places

    def cleared(self, name: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return a buffer of zeros, the same for every call of one shape."""
        buffer = self.kept.setdefault((name, shape, dtype), np.zeros(shape, dtype))
        buffer[...] = 0
        return np.asarray(buffer)

    # Preparation of a direction.

    def prepared(self, r: Recurrence, d: int, dtype: np.dtype[Any]) -> BlockedLane:
        """Return one direction of a recurrence, in the working dtype."""

        def widened(name: str, values: Array | None) -> Any:
            return self.given(name, d, None if values is None else values[d].astype(dtype))

        T, N, _ = r.X.shape
        H = r.W.shape[-2]
        lengths = np.full(N, T, np.int64) if r.lengths is None else r.lengths
        lengths = self.given("lengths", d, lengths)
        Wb, Rb = (
            widened(name, None if b is None else b[:, :, None])
            for name, b in (("Wb", r.Wb), ("Rb", r.Rb))
        )
        bias, Rbh = placed(Wb, Rb, r.options)
        initial = [widened(f"initial_{k}", state) for k, state in enumerate(r.initial)]
        letters = zip(r.cell.activations, r.activations[d], strict=True)
        return BlockedLane(
            d,
            r.directions[d] is Direction.REVERSE,
            r.cell,
            r.X.astype(dtype, copy=False),
            widened("W", r.W),
            widened("R", r.R),
            bias,
            Rbh,
            widened("P", None if r.P is None else r.P[:, :, None]),
            tuple(np.zeros((N, H), dtype) if state is None else state for state in initial),
            lengths,
            self.order(lengths),
            {letter: (function, r.bound(letter)) for letter, function in letters},
            r.options,
        )

    def given(self, name: str, d: int, values: Any) -> Any:
        """Return one input of a call for direction d."""
        del name, d
        return values

    def order(self, lengths: Array) -> Array:
        """Sort the sequences, the longest first."""
        return np.argsort(-lengths, kind="stable")

    def small(self, lane: BlockedLane) -> BlockedLane:
        """Mark a single step from zero states, whose products with R are skipped."""
        zero = not any(state.any() for state in lane.initial)
        still = zero and len(lane.X) == 1 and bool(np.isfinite(lane.R).all())
        return replace(lane, still=still)

    # Tiles of the batch.

    def walk(self, lane: BlockedLane, Y: Array, last: States) -> None:
        """Fill Y [T, N, H] and the last states [N, H] of one direction."""
        for worker in range(self.blocking.workers):
            for tile in self.share(self.tiles(lane), worker):
                self.tile(tile, Y, last)

    def tiles(self, lane: BlockedLane) -> list[BatchTile]:
        """Split the sorted sequences into tiles."""
        N, size = len(lane.order), self.blocking.tile
        places = [(first, lane.order[first : first + size]) for first in range(0, N, size)]
        return [BatchTile(lane, first, rows, lane.lengths[rows]) for first, rows in places]

    def share(self, tiles: Sequence[BatchTile], worker: int) -> Sequence[BatchTile]:
        """Return the tiles of a worker."""
        return tiles[worker :: self.blocking.workers]

    def tile(self, tile: BatchTile, Y: Array, last: States) -> None:
        """Compute all steps of a tile, chunk by chunk."""
        states = self.start(tile)
        for steps in self.chunks(tile):
            states = self.chunk(Span(tile, steps, self.times(tile, steps)), states, Y)
        self.finish(tile, states, last)

    def start(self, tile: BatchTile) -> States:
        """Return the first states of a tile [n, H]."""
        return tuple(state[tile.rows] for state in tile.lane.initial)

    def finish(self, tile: BatchTile, states: States, last: States) -> None:
        """Write the states after the last valid step to the rows of a tile."""
        for place, state in zip(last, states, strict=True):
            place[tile.rows] = state

    # Chunks of time.

    def chunks(self, tile: BatchTile) -> list[Array]:
        """Split the steps of a tile, in processing order, into chunks."""
        size, ends = self.blocking.chunk, int(tile.lengths.max(initial=0))
        return [np.arange(t, min(t + size, ends)) for t in range(0, ends, size)]

    def times(self, tile: BatchTile, steps: Array) -> Array:
        """Return the time index of each step for each row [steps, n]."""
        forward = np.broadcast_to(steps[:, None], (len(steps), len(tile.rows)))
        if not tile.lane.reverse:
            return forward
        return np.where(forward < tile.lengths, tile.lengths - 1 - forward, forward)

    def chunk(self, span: Span, states: States, Y: Array) -> States:
        """Compute the steps of a chunk; sequences that have ended keep their states."""
        lane, entry = span.tile.lane, states
        x = self.projected(lane, span.steps, self.gathered(span.tile, span.times))
        history = np.empty((len(span.steps), *states[0].shape), states[0].dtype)
        for k, t in enumerate(span.steps.tolist()):
            check()
            live = self.live(span.tile, t)[:, None]
            new = self.step(lane, x[:, k], states)
            states = tuple(np.where(live, *pair) for pair in zip(new, states, strict=True))
            history[k] = states[0]
        self.store(span, history, Y)
        return self.carried(span, entry, states)

    def live(self, tile: BatchTile, t: int) -> Array:
        """Return the mask of rows that compute step t [n]."""
        return tile.lengths > t

    def gathered(self, tile: BatchTile, times: Array) -> Array:
        """Return the inputs of some steps of a tile [steps, n, I]."""
        return tile.lane.X[times, tile.rows]

    def store(self, span: Span, history: Array, Y: Array) -> None:
        """Write H after each step of a chunk [steps, n, H] to Y, zero in padding."""
        live = span.steps[:, None] < span.tile.lengths
        Y[span.times, span.tile.rows] = np.where(live[..., None], history, 0)

    def carried(self, span: Span, entry: States, states: States) -> States:
        """Return the states that the next chunk starts from."""
        del span, entry
        return states

    # One step.

    def projected(self, lane: BlockedLane, steps: Array, X: Array) -> Array:
        """Return Xt*(W^T) and biases of every gate [G, steps, n, H] of inputs [steps, n, I]."""
        count, n, size = X.shape
        product = self.multiply(lane, INPUTS, X.reshape(count * n, size))
        x = product.reshape(len(product), count, n, lane.units)
        return x if lane.bias is None else x + self.bias(lane, steps)[:, None]

    def bias(self, lane: BlockedLane, steps: Array) -> Any:
        """Return the bias added to each gate's product in a chunk."""
        del steps
        return lane.bias

    def step(self, lane: BlockedLane, x: Array, states: States) -> States:
        """Advance states [n, H] by one step of x [G, n, H]."""
        return lane.cell.step(self.parameters(lane), x, states)

    def parameters(self, lane: BlockedLane) -> Parameters:
        """Return the parameters of the cell's equations."""
        functions = {letter: partial(self.activated, lane, letter) for letter in lane.activations}
        return Parameters(
            R=partial(self.multiply, lane, RECURRENT),
            f=functions["f"],
            g=functions.get("g", functions["f"]),
            h=functions.get("h", functions["f"]),
            blend=MATH.blend,
            P=lane.P,
            Rbh=0 if lane.Rbh is None else lane.Rbh,
            options=lane.options,
        )

    def activated(self, lane: BlockedLane, letter: str, x: Array) -> Array:
        """Apply an activation to whole vectors of units, then to the tail."""
        activation, bound = lane.activations[letter]
        body = self.body(x.shape[-1])
        if body in {0, x.shape[-1]}:
            return np.asarray(activated(MATH, activation, bound, x))
        parts = (x[..., :body], x[..., body:])
        return np.concatenate([activated(MATH, activation, bound, part) for part in parts], -1)

    def body(self, units: int) -> int:
        """Return the number of units in whole vectors."""
        return units - units % self.blocking.vector

    # Products.

    def multiply(
        self, lane: BlockedLane, kind: str, values: Array, gates: slice = slice(None)
    ) -> Array:
        """Return values [n, K] times the transposed weights of some gates, [gates, n, H]."""
        weights = (lane.W if kind == INPUTS else lane.R)[gates]
        if lane.still and kind == RECURRENT:
            return np.zeros((len(weights), len(values), lane.units), values.dtype)
        key = (kind, gates.start or 0, len(weights))
        if key not in lane.packs:
            lane.packs[key] = self.packed(kind, weights)
        partial_sums = self.operand(kind, values)[None] @ lane.packs[key]
        return self.unpacked(self.reduced(kind, partial_sums), len(weights), lane.units)

    def packed(self, kind: str, weights: Array) -> Array:
        """Pack weights [gates, H, K] as [blocks, reductions, terms, gates * units], 0 beyond."""
        del kind
        (gates, H, K), units, terms = weights.shape, self.blocking.block, self.blocking.reduction
        blocks, reductions = -(-H // units), -(-K // terms)
        room = np.zeros((gates, blocks * units, reductions * terms), weights.dtype)
        room[:, :H, :K] = weights
        apart = room.reshape(gates, blocks, units, reductions, terms)
        return apart.transpose(1, 3, 4, 0, 2).reshape(blocks, reductions, terms, gates * units)

    def operand(self, kind: str, values: Array) -> Array:
        """Pad values [n, K] with zeros to [reductions, n, terms]."""
        del kind
        (n, K), terms = values.shape, self.blocking.reduction
        room = np.zeros((n, -(-K // terms) * terms), values.dtype)
        room[:, :K] = values
        return room.reshape(n, room.shape[1] // terms, terms).swapaxes(0, 1)

    def reduced(self, kind: str, partial_sums: Array) -> Array:
        """Add the sums of all blocks of terms [blocks, reductions, n, gates * units]."""
        del kind
        return np.asarray(partial_sums.sum(axis=1))

    def unpacked(self, sums: Array, gates: int, H: int) -> Array:
        """Bring sums [blocks, n, gates * units] back to [gates, n, H]."""
        blocks, n, _ = sums.shape
        apart = sums.reshape(blocks, n, gates, self.blocking.block).transpose(2, 1, 0, 3)
        return apart.reshape(gates, n, blocks * self.blocking.block)[..., :H]
