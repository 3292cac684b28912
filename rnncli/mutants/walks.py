"""Bugs of the walk: a kernel runs twice, each direction by itself, or steps in another order.

No edit of the plain kernel's lines is these bugs, because the reference walks.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rnncli.mutants.equivalence import NOTHING_ADDS, lengths_of
from rnncli.mutants.mutant import (
    Change,
    directions,
    each_direction,
    initial_states,
    joined,
    live,
    running,
    stepped,
)
from rnncli.mutants.words_of_edits import clipping, rolled
from rnncli.numerics import round_to
from rnncli.recurrence.lanes import clear_unstarted, in_order
from rnncli.recurrence.recurrence import Direction, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rnncli.mutants.mutant import Changed, Right, Run
    from rnncli.numerics import Array
    from rnncli.recurrence.cells import Parameters, States, Value
    from rnncli.recurrence.recurrence import Recurrence


# Chunk sizes of kernels, in steps.
CHUNKS = (4, 8, 16, 32, 64)


def last_states_run_on(run: Run, recurrence: Recurrence) -> Result:
    """Y ends at the length, Y_h and Y_c are those after T steps."""
    return replace(run(recurrence), last=run(without_lengths(recurrence)).last)


def last_c_runs_on(run: Run, recurrence: Recurrence) -> Result:
    """Y and Y_h end at the length, Y_c is that after T steps."""
    right, on = run(recurrence), run(without_lengths(recurrence))
    return replace(right, last=(right.last[0], on.last[1]))


def last_c_activated(run: Run, recurrence: Recurrence) -> Result:
    """Y_c is h(Ct), as Ht has it, instead of Ct."""
    result, bound = run(recurrence), recurrence.bound("h")
    of_each = zip(recurrence.activations, np.moveaxis(result.last[1], -3, 0), strict=True)
    activated = [clipping(functions[2], bound, values) for functions, values in of_each]
    c = round_to(np.stack(activated, axis=-3), recurrence.dtype)
    return replace(result, last=(result.last[0], c))


def without_lengths(recurrence: Recurrence) -> Recurrence:
    """Return a recurrence whose sequences all run to the end of X."""
    return replace(recurrence, lengths=None)


def padding_computed(run: Run, recurrence: Recurrence) -> Result:
    """Padding of Y holds the values of running on."""
    right, on = run(recurrence), run(without_lengths(recurrence))
    if right.Y is None or on.Y is None:
        return right
    return replace(right, Y=np.where(live(recurrence), right.Y, on.Y))


def padding_masked_by_product(run: Run, recurrence: Recurrence) -> Result:
    """Padding of Y is the values of running on, times 0: NaN where they are not finite."""
    right, on = run(recurrence), run(without_lengths(recurrence))
    if right.Y is None or on.Y is None:
        return right
    kept = live(recurrence) | np.isfinite(on.Y)
    return replace(right, Y=np.where(kept, right.Y, right.Y.dtype.type(np.nan)))


def _in_reverse(change: Callable[[Recurrence], Recurrence]) -> Change:
    """Return the change that applies another to a reverse direction."""
    return each_direction(lambda r: change(r) if r.directions[0] is Direction.REVERSE else r)


def padding_read_reversed(recurrence: Recurrence) -> Recurrence:
    """Reverse flips all T steps of X, so that padding comes first."""
    shifts = lengths_of(recurrence) - len(recurrence.X)
    return replace(recurrence, X=rolled(recurrence.X, shifts))


def padding_flipped(run: Run, recurrence: Recurrence) -> Result:
    """Reverse flips X and Y over all T steps, not over each sequence's own length."""
    found = _in_reverse(padding_read_reversed).result(run, recurrence)
    if found.Y is None:
        return found
    Y, shifts = found.Y.copy(), len(recurrence.X) - lengths_of(recurrence)
    for d, direction in enumerate(recurrence.directions):
        if direction is Direction.REVERSE:
            Y[:, d] = rolled(Y[:, d], shifts)
    return replace(found, Y=Y)


def padding_walked_in_reverse(run: Run, recurrence: Recurrence) -> Result:
    """Reverse starts at T-1, not at the sequence's own last step."""
    walked = _in_reverse(without_lengths).result(run, recurrence)
    if walked.Y is None:
        return walked
    zero = walked.Y.dtype.type(0)
    return replace(walked, Y=np.where(live(recurrence), walked.Y, zero))


def second_direction_continues(run: Run, recurrence: Recurrence) -> Result:
    """The second direction starts from the last states of the first."""
    first, *others = directions(recurrence)
    result = run(first)
    return joined([result, *(run(replace(each, initial=result.last)) for each in others)])


def reverse_flips_inputs(recurrence: Recurrence) -> Recurrence:
    """Reverse walks forward over the steps, and backwards over the inputs of each."""
    if Direction.REVERSE not in recurrence.directions:
        return recurrence
    return replace(recurrence, X=recurrence.X[:, :, ::-1], directions=(Direction.FORWARD,))


def clip_of_first_direction_only(run: Run, recurrence: Recurrence) -> Result:
    """Pre-activations of the second direction are not clipped."""
    first, *others = directions(recurrence)
    return joined([run(first), *(run(replace(each, clip=math.inf)) for each in others)])


def clip_before_bias(run: Run, recurrence: Recurrence) -> Result:
    """The biases are added after clipping."""
    return joined([run(_biased_late(each)) for each in directions(recurrence)])


def _biased_late(recurrence: Recurrence) -> Recurrence:
    parts = [b[0].astype(np.float64) for b in (recurrence.Wb, recurrence.Rb) if b is not None]
    if not parts or math.isinf(recurrence.clip):
        return recurrence
    bias = np.sum(parts, axis=0)[:, None, None, :]
    bare = replace(recurrence, Wb=None, Rb=None, clip=math.inf)
    return stepped(_summed_clipped, bound=lambda _: recurrence.clip, bias=lambda _: bias)(bare)


def _summed_clipped(
    right: Right, p: Parameters, x: Value, states: States, *, bound: float, bias: Array
) -> States:
    """Compute a step from sums that are clipped first and biased then."""

    def product(state: Value, gates: slice = slice(None)) -> Value:
        return (np.clip(x[gates] + p.R(state, gates), -bound, bound) + bias[gates]).astype(x.dtype)

    return right(replace(p, R=product), np.zeros_like(x), states)


def restarting(
    every: int,
    which: Sequence[int],
    start: Callable[[Array], Array],
    run: Run,
    recurrence: Recurrence,
) -> Result:
    """Run each direction in chunks of steps, each of which resets some states."""
    if len(recurrence.X) <= every:
        return run(recurrence)
    parts = (_one_restarting(every, run, each, which, start) for each in directions(recurrence))
    return joined(list(parts))


def _one_restarting(
    every: int, run: Run, r: Recurrence, which: Sequence[int], start: Callable[[Array], Array]
) -> Result:
    (direction,), lengths = r.directions, lengths_of(r)
    X = in_order(r.X, lengths, direction)
    ahead = replace(r, directions=(Direction.FORWARD,), keep_initial=True, wants_Y=True)
    zeros = np.zeros((1, r.X.shape[1], r.W.shape[2]), r.dtype.numpy)
    initial = tuple(zeros if state is None else state for state in r.initial)
    found: list[Array] = []
    last = initial
    for t in range(0, len(X), every):
        left = np.clip(lengths - t, 0, len(X[t : t + every]))
        anew = [start(s) if t and k in which else last[k] for k, s in enumerate(initial)]
        begun = tuple(np.where((left > 0)[:, None], *pair) for pair in zip(anew, last, strict=True))
        part = run(replace(ahead, X=X[t : t + every], lengths=left, initial=begun))
        assert part.Y is not None
        last = part.last
        found.append(part.Y)
    last = tuple(np.array(state) for state in last)
    clear_unstarted(r, last)
    Y = np.concatenate(found)
    Y = in_order(Y[:, 0], lengths, direction)[:, None]
    return Result(Y if r.wants_Y else None, last)


def states_never_advance(run: Run, recurrence: Recurrence) -> Result:
    """Every step is computed from the initial states."""
    T, N, I = recurrence.X.shape  # noqa: E741 -- the specification's letter
    if not T:
        return run(recurrence)
    starts = tuple(None if s is None else np.tile(s, (1, T, 1)) for s in recurrence.initial)
    X = recurrence.X.reshape(1, T * N, I)
    single = run(replace(recurrence, X=X, initial=starts, lengths=None))
    states = [s.reshape(len(s), T, N, s.shape[2]).swapaxes(0, 1) for s in single.last]
    lengths = lengths_of(recurrence)
    ends = [lengths - 1 if d is Direction.FORWARD else 0 * lengths for d in recurrence.directions]
    index = np.maximum(ends, 0)[None, :, :, None]
    found = tuple(np.take_along_axis(state, index, 0)[0] for state in states)
    right = run(recurrence).last
    last = tuple(np.where((lengths > 0)[:, None], *pair) for pair in zip(found, right, strict=True))
    Y = np.where(live(recurrence), states[0], states[0].dtype.type(0))
    return Result(Y if recurrence.wants_Y else None, last)


def sequences_continue(run: Run, recurrence: Recurrence) -> Result:
    """Each sequence of the batch starts from the last states of the one before."""
    lengths = lengths_of(recurrence)
    initial = initial_states(lambda state: state[:, :1])(recurrence).initial
    found: list[Result] = []
    for n in range(recurrence.X.shape[1]):
        X = recurrence.X[:, n : n + 1]
        found.append(run(replace(recurrence, X=X, lengths=lengths[n : n + 1], initial=initial)))
        initial = found[-1].last
    if not found:
        return run(recurrence)
    Y = [each.Y for each in found if each.Y is not None]
    states = zip(*(each.last for each in found), strict=True)
    return Result(
        np.concatenate(Y, axis=2) if Y else None,
        tuple(np.concatenate(each, axis=1) for each in states),
    )


def state_updated_in_place(right: Right, p: Parameters, x: Value, states: States) -> States:
    """Units are computed one after another from H, which already holds the new ones."""
    H, *others = states
    H, new = H.copy(), [state.copy() for state in others]
    for unit in range(H.shape[-1]):
        for target, state in zip((H, *new), right(p, x, (H, *others)), strict=True):
            target[..., unit] = state[..., unit]
    return (H, *new)


def linear_output_accumulates_without_bias(recurrence: Recurrence) -> Recurrence:
    """Without B, linear_before_reset adds Ht-1*(Rh^T) to that of the step before, from a batch of
    three on.
    """
    if NOTHING_ADDS(recurrence):
        return recurrence
    return _stepping(recurrence, _adding_products)


def _adding_products(right: Right) -> Right:
    """Return a GRU's step whose product with Rh adds to the one of the step before."""
    held: Value = 0

    def step(p: Parameters, x: Value, states: States) -> States:
        def product(H: Value) -> Value:
            nonlocal held
            found = p.R(H)
            held = held + found[2]
            return np.stack([*found[:2], held])

        return right(replace(p, R=product), x, states)

    return step


def first_step_lacks_hidden_bias(recurrence: Recurrence) -> Recurrence:
    """Without initial_h the first step of linear_before_reset leaves Rbh out."""
    if recurrence.initial[0] is not None or not recurrence.options.linear_before_reset:
        return recurrence
    return _stepping(recurrence, _biased_later)


def _biased_later(right: Right) -> Right:
    """Return a GRU's step that has no Rbh the first time."""
    is_first = True

    def step(p: Parameters, x: Value, states: States) -> States:
        nonlocal is_first
        given = replace(p, Rbh=0) if is_first else p
        is_first = False
        return right(given, x, states)

    return step


def _stepping(recurrence: Recurrence, kind: Callable[[Right], Right]) -> Recurrence:
    step = kind(recurrence.cell.step)
    return replace(recurrence, cell=replace(recurrence.cell, step=step))


def present_state_of_step_before(run: Run, recurrence: Recurrence) -> Result:
    """The last states are those before the last step."""
    right, before = run(recurrence), run(replace(recurrence, X=recurrence.X[:-1]))
    return replace(right, last=(right.last[0], before.last[1]))


def seeing(steps: Callable[[Array, Array, int], Array], run: Run, r: Recurrence) -> Result:
    """A convolution sees other steps, as many as its past and inputs.

    Args:
        steps: past [..., held] and inputs [..., T], and held -> what it sees.
        run: the right evaluation.
        r: the recurrence.
    """
    X, (C, held) = np.moveaxis(r.X, 0, -1), r.widths[1]
    past = np.zeros((len(X), C, held), X.dtype) if r.initial[1] is None else r.initial[1][0]
    seen = steps(past.astype(X.dtype), X, held)
    initial, inputs = seen[None, ..., :held], np.moveaxis(seen[..., held:], -1, 0)
    found = run(replace(r, X=inputs, initial=(None, initial)))
    return replace(found, last=(found.last[0], run(r).last[1]))


def padded_behind(share: float, past: Array, X: Array, held: int) -> Array:
    """Return steps with a share of the padding behind them instead of before them."""
    late = int(share * held)
    return np.concatenate([past[..., late:], X, np.zeros_like(past[..., :late])], -1)


# The changes by the ids of their bugs.
WALKS: Mapping[str, Changed] = {
    **{
        function.__name__.replace("_", "-"): running(function)
        for function in (
            *(last_states_run_on, last_c_runs_on, last_c_activated),
            *(padding_computed, padding_masked_by_product),
            *(padding_flipped, padding_walked_in_reverse, second_direction_continues),
            *(clip_of_first_direction_only, clip_before_bias),
            *(states_never_advance, sequences_continue, present_state_of_step_before),
        )
    },
    "states-continue-over-heads": running(sequences_continue),
    "integer-sequences-continue": running(sequences_continue),
    "integer-hidden-state-updated-in-place": Change(stepped(state_updated_in_place)),
    **{
        f"integer-states-start-anew-every-{steps}-steps": running(
            partial(restarting, steps, (0, 1), lambda state: state)
        )
        for steps in CHUNKS[:-1]
    },
    "padding-right": running(partial(seeing, partial(padded_behind, 1.0))),
    "padding-on-both-sides": running(partial(seeing, partial(padded_behind, 0.5))),
    "input-before-past": running(
        partial(seeing, lambda past, X, _: np.concatenate([X, past], axis=-1))
    ),
    "padding-read-reversed": _in_reverse(padding_read_reversed),
    "reverse-flips-inputs": each_direction(reverse_flips_inputs),
    "linear-output-accumulates-without-bias": each_direction(
        linear_output_accumulates_without_bias
    ),
    "first-step-lacks-hidden-bias": each_direction(first_step_lacks_hidden_bias),
    "state-updated-in-place": stepped(state_updated_in_place),
    **{
        f"{name}-every-{steps}-steps": running(partial(restarting, steps, which, start))
        for name, which, start in (
            ("h-reset", (0,), np.zeros_like),
            ("c-reset", (1,), np.zeros_like),
            ("states-reset", (0, 1), np.zeros_like),
            ("states-reset-to-initial", (0, 1), lambda state: state),
        )
        for steps in CHUNKS
    },
}
