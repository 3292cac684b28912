"""Sequences walked wrongly: initial states, lengths, padding, directions, last states, layout."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rnncli.mutants.mutant import Change
from rnncli.mutants.parts import (
    ALL,
    GATED,
    LSTM,
    arrays,
    each_direction,
    family,
    initial_states,
    results,
    row,
)
from rnncli.mutants.reasons import (
    NO_BIAS,
    NO_FORWARD,
    NO_INITIAL,
    NO_INITIAL_C,
    NO_INITIAL_H,
    NO_PEEPHOLES,
    NO_RECURRENT_PRODUCT,
    NO_REVERSE,
    NO_STEP,
    NO_Y,
    NO_ZERO_LENGTH,
    NOT_RAGGED,
    ONE_DIRECTION,
    ONE_SEQUENCE,
    ONE_STEP,
    lengths_of,
)
from rnncli.recurrence.recurrence import Direction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.mutants.mutant import Mutant, Run
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence, Result

States: TypeAlias = "tuple[Array, ...]"
Outputs: TypeAlias = "tuple[Array, States]"

FROM_THE_START = "Wrong from the first step on; without initial states everything is right."
SECOND = "Only the second direction is wrong."
PADDED = "Only steps past a sequence's length are wrong."
SHORT = "Only sequences that are shorter than others are wrong."


# Initial states


def _of_first_direction(values: Array) -> Array:
    return np.broadcast_to(values[:1], values.shape)


def _second_zeroed(values: Array) -> Array:
    return np.concatenate([values[:1], np.zeros_like(values[1:])])


def _of_first_sequence(state: Array) -> Array:
    return np.broadcast_to(state[:, :1], state.shape)


def _states_swapped(recurrence: Recurrence) -> Recurrence:
    return replace(recurrence, initial=recurrence.initial[::-1])


def _initial() -> Iterator[Mutant]:
    def nothing(_: Array) -> None:
        return None

    for name, which, cells, reason in (
        ("h", (0,), ALL, NO_INITIAL_H),
        ("c", (1,), LSTM, NO_INITIAL_C),
    ):
        yield row(
            f"initial-{name}-ignored",
            cells,
            f"initial_{name} is not read: zero is taken.",
            FROM_THE_START,
            initial_states(nothing, which),
            reason,
        )
        yield row(
            f"initial-{name}-of-first-sequence",
            cells,
            f"Every sequence starts from the initial_{name} of the first.",
            FROM_THE_START,
            initial_states(_of_first_sequence, which),
            reason,
            ONE_SEQUENCE,
        )
    yield row(
        "initial-states-ignored",
        LSTM,
        "Neither initial_h nor initial_c is read.",
        FROM_THE_START,
        initial_states(nothing),
        NO_INITIAL,
    )
    yield row(
        "initial-states-swapped",
        LSTM,
        "initial_h and initial_c are taken for each other.",
        FROM_THE_START,
        _states_swapped,
        NO_INITIAL,
    )
    for id_, sentence, function in (
        ("of-first-direction", "Both directions start as the first does.", _of_first_direction),
        ("directions-swapped", "Each direction starts as the other should.", np.flipud),
        ("of-second-direction-ignored", "The second direction starts at zero.", _second_zeroed),
    ):
        yield row(
            f"initial-states-{id_}",
            ALL,
            sentence,
            "With two directions, values are wrong from the first step on.",
            initial_states(function),
            ONE_DIRECTION,
            NO_INITIAL,
        )


# Lengths


def _lengths(
    function: Callable[[Array, int], Array],
) -> Callable[[Recurrence], Recurrence]:
    """Return the change (lengths, T) -> lengths, where lengths are given."""

    def change(recurrence: Recurrence) -> Recurrence:
        if recurrence.lengths is None or not recurrence.lengths.size:
            return recurrence
        lengths = function(recurrence.lengths, len(recurrence.X))
        return replace(recurrence, lengths=np.asarray(lengths, np.int64))

    return change


LENGTHS: tuple[tuple[str, str, Callable[[Array, int], Array]], ...] = (
    ("ignored", "sequence_lens is not read.", np.full_like),
    ("one-less", "Each sequence ends a step early.", lambda given, _: np.maximum(given - 1, 0)),
    ("one-more", "Each sequence ends a step late.", lambda given, T: np.minimum(given + 1, T)),
    (
        "largest",
        "Every sequence runs as long as the longest of the batch.",
        lambda given, _: np.full_like(given, given.max()),
    ),
    (
        "smallest",
        "Every sequence ends with the shortest of the batch.",
        lambda given, _: np.full_like(given, given.min()),
    ),
    (
        "of-first-sequence",
        "Every sequence has the length of the first.",
        lambda given, _: np.full_like(given, given[0]),
    ),
    (
        "reversed",
        "The lengths are given to the sequences last first.",
        lambda given, _: given[::-1],
    ),
)
ZEROS: tuple[tuple[str, str, Callable[[Array, int], Array]], ...] = (
    (
        "zero-is-full",
        "A length of 0 is taken for none given.",
        lambda given, T: np.where(given == 0, T, given),
    ),
    ("zero-is-one", "A length of 0 runs one step.", lambda given, T: given.clip(min(1, T))),
)


def _keeps_initial_flipped(recurrence: Recurrence) -> Recurrence:
    return replace(recurrence, keep_initial=not recurrence.keep_initial)


def _last_step_missing(recurrence: Recurrence) -> Recurrence:
    return replace(recurrence, lengths=np.maximum(lengths_of(recurrence) - 1, 0))


def _ragged() -> Iterator[Mutant]:
    for id_, sentence, function in LENGTHS:
        yield row(f"lengths-{id_}", ALL, sentence, SHORT, _lengths(function), NOT_RAGGED)
    for id_, sentence, function in ZEROS:
        reasons = (NOT_RAGGED, NO_ZERO_LENGTH)
        effect = "Only sequences of length 0 are wrong."
        yield row(f"lengths-{id_}", ALL, sentence, effect, _lengths(function), *reasons)
    yield row(
        "lengths-zero-last-state",
        ALL,
        "The last state of a sequence of length 0 is zero where it should be the initial one, or"
        " the other way round.",
        "Only Y_h and Y_c of sequences of length 0 are wrong.",
        _keeps_initial_flipped,
        NO_ZERO_LENGTH,
        NO_INITIAL,
    )
    yield row(
        "last-step-missing",
        ALL,
        "The loop ends a step early, whatever the length.",
        "Y is zero at the last step, Y_h is the state before it.",
        _last_step_missing,
        NO_STEP,
    )
    yield row(
        "last-states-run-on",
        ALL,
        "Y ends at the length, Y_h and Y_c are those after T steps.",
        "Y is right; the last states of short sequences are wrong.",
        Change(result=_last_run_on),
        NOT_RAGGED,
    )


def _without_lengths(recurrence: Recurrence) -> Recurrence:
    return replace(recurrence, lengths=None)


def _last_run_on(run: Run, recurrence: Recurrence) -> Result:
    return replace(run(recurrence), last=run(_without_lengths(recurrence)).last)


# Padding


def _live(recurrence: Recurrence) -> Array:
    """Return where steps are valid, to be broadcast with Y [T, D, N, H]."""
    T = len(recurrence.X)
    return (np.arange(T)[:, None] < lengths_of(recurrence))[:, None, :, None]


def _padding(values: Callable[[tuple[Array, ...]], Array]) -> Change:
    """Return the change that leaves something in the padding of Y."""
    return results(lambda r, Y, last: (np.where(_live(r), Y, values(last)).astype(Y.dtype), last))


def _last_step_repeated(last: States) -> Array:
    return last[0]


def _garbage(last: States) -> Array:
    return np.full_like(last[0], np.nan)


def _computed(run: Run, recurrence: Recurrence) -> Result:
    """Write what a kernel that runs on gets in the padding."""
    right, on = run(recurrence), run(_without_lengths(recurrence))
    if right.Y is None or on.Y is None:
        return right
    return replace(right, Y=np.where(_live(recurrence), right.Y, on.Y))


def _rolled(values: Array, shifts: Array) -> Array:
    """Move each sequence of [T, N, K] later by its own shift, around the end."""
    T = len(values)
    if not T:
        return values
    index = (np.arange(T)[:, None] - shifts) % T
    return np.asarray(np.take_along_axis(values, index[:, :, None], axis=0))


def _padding_of(recurrence: Recurrence) -> Array:
    return len(recurrence.X) - lengths_of(recurrence)


def _reverse_only(
    change: Callable[[Recurrence], Recurrence],
) -> Callable[[Recurrence], Recurrence]:
    return lambda r: change(r) if r.directions[0] is Direction.REVERSE else r


def _reads_flipped(recurrence: Recurrence) -> Recurrence:
    """Reverse all T steps, so that padding is read first and the first steps never."""
    return replace(recurrence, X=_rolled(recurrence.X, -_padding_of(recurrence)))


def _writes_flipped(recurrence: Recurrence, Y: Array, last: States) -> Outputs:
    """Flip all T steps of Y back, though only the valid ones were reversed."""
    Y = Y.copy()
    for d, direction in enumerate(recurrence.directions):
        if direction is Direction.REVERSE:
            Y[:, d] = _rolled(Y[:, d], _padding_of(recurrence))
    return Y, last


def _starts_in_padding(run: Run, recurrence: Recurrence) -> Result:
    """Let the reverse direction walk through the padding, then hide that."""
    reverse = _reverse_only(_without_lengths)
    walked = each_direction(reverse).result(run, recurrence)
    if walked.Y is None:
        return walked
    zero = walked.Y.dtype.type(0)
    return replace(walked, Y=np.where(_live(recurrence), walked.Y, zero))


def _paddings() -> Iterator[Mutant]:
    for id_, sentence, change in (
        ("repeats-last-state", "Padding of Y holds the last state.", _padding(_last_step_repeated)),
        ("not-written", "Padding of Y is never written: NaN here.", _padding(_garbage)),
        ("computed", "Padding of Y holds what running on gives.", Change(result=_computed)),
    ):
        yield row(f"padding-{id_}", ALL, sentence, PADDED, change, NOT_RAGGED, NO_Y)
    for id_, sentence, change, reasons in (
        (
            "read-reversed",
            "Reverse flips all T steps of X, so that padding comes first.",
            each_direction(_reverse_only(_reads_flipped)),
            (),
        ),
        (
            "written-reversed",
            "Reverse flips all T steps of Y back, so that padding comes first.",
            results(_writes_flipped),
            (NO_Y,),
        ),
        (
            "walked-in-reverse",
            "Reverse starts at T-1, not at the sequence's own last step.",
            Change(result=_starts_in_padding),
            (),
        ),
    ):
        effect = "Short sequences of a reverse direction are wrong."
        yield row(f"padding-{id_}", ALL, sentence, effect, change, NOT_RAGGED, NO_REVERSE, *reasons)


# Directions


def _walk(*, forward: Direction, reverse: Direction) -> Callable[[Recurrence], Recurrence]:
    walked = {Direction.FORWARD: forward, Direction.REVERSE: reverse}
    return lambda r: replace(r, directions=tuple(walked[each] for each in r.directions))


def _first_activations(recurrence: Recurrence) -> Recurrence:
    first = recurrence.activations[0]
    return replace(recurrence, activations=(first,) * len(recurrence.directions))


def _interleaved_activations(recurrence: Recurrence) -> Recurrence:
    """Read f, f, g, g ... where f, g ..., f, g ... is written."""
    D = len(recurrence.directions)
    flat = [each for row in recurrence.activations for each in row]
    return replace(recurrence, activations=tuple(tuple(flat[d::D]) for d in range(D)))


def _directions_interleaved(values: Array) -> Array:
    """Read the buffer of [D, rows, K] as one of [rows, D, K]."""
    D, G, H, K = values.shape
    return values.reshape(G * H, D, K).swapaxes(0, 1).reshape(D, G, H, K)


def _swapped_directions(recurrence: Recurrence, Y: Array, last: States) -> Outputs:
    del recurrence
    return Y[:, ::-1], tuple(state[::-1] for state in last)


def _second_missing(recurrence: Recurrence, Y: Array, last: States) -> Outputs:
    del recurrence
    return _second_zeroed(Y.swapaxes(0, 1)).swapaxes(0, 1), tuple(map(_second_zeroed, last))


def _left_reversed(recurrence: Recurrence, Y: Array, last: States) -> Outputs:
    """Leave the valid steps of a reverse direction in the order they were computed in."""
    Y = Y.copy()
    for d, direction in enumerate(recurrence.directions):
        if direction is Direction.REVERSE:
            Y[:, d] = _rolled(Y[::-1, d], -_padding_of(recurrence))
    return Y, last


def _beside_units(recurrence: Recurrence, Y: Array, last: States) -> Outputs:
    """Write [T, N, D, H], as PyTorch returns it, to the buffer of [T, D, N, H]."""
    del recurrence
    return Y.swapaxes(1, 2).reshape(Y.shape), last


def _walks() -> Iterator[Mutant]:
    F, R = Direction.FORWARD, Direction.REVERSE
    yield row(
        "reverse-runs-forward",
        ALL,
        "The reverse direction is computed as forward.",
        "Forward is right, reverse is wrong unless T is 1.",
        _walk(forward=F, reverse=F),
        NO_REVERSE,
        ONE_STEP,
    )
    yield row(
        "forward-runs-reverse",
        ALL,
        "The forward direction is computed as reverse.",
        "Reverse is right, forward is wrong unless T is 1.",
        _walk(forward=R, reverse=R),
        NO_FORWARD,
        ONE_STEP,
    )
    yield row(
        "directions-walked-the-other-way",
        ALL,
        "Forward walks backwards and reverse forwards.",
        "Everything is wrong unless T is 1.",
        _walk(forward=R, reverse=F),
        ONE_STEP,
    )


def _sharing() -> Iterator[Mutant]:
    for part, names, cells, reasons in (
        ("w", ("W",), ALL, ()),
        ("r", ("R",), ALL, (NO_RECURRENT_PRODUCT,)),
        ("biases", ("Wb", "Rb"), ALL, (NO_BIAS,)),
        ("peepholes", ("P",), LSTM, (NO_PEEPHOLES,)),
        ("weights-and-biases", ("W", "R", "Wb", "Rb", "P"), ALL, ()),
    ):
        spelled = {"w": "W", "r": "R"}.get(part, part.replace("-", " "))
        yield row(
            f"second-direction-reuses-{part}",
            cells,
            f"The second direction is computed with the first's {spelled}.",
            SECOND,
            arrays(names, _of_first_direction),
            ONE_DIRECTION,
            *reasons,
        )
    yield row(
        "second-direction-reuses-activations",
        ALL,
        "The second direction applies the first's activations.",
        SECOND,
        _first_activations,
        ONE_DIRECTION,
    )
    yield row(
        "activations-by-letter",
        GATED,
        "The list of activations is read f, f, g, g instead of f, g, f, g.",
        "With two directions, only lists of one function are right.",
        _interleaved_activations,
        ONE_DIRECTION,
    )
    for id_, sentence, misread in (
        (
            "weights-of-directions-swapped",
            "Each direction is computed with the other's W, R, B and P.",
            arrays(("W", "R", "Wb", "Rb", "P"), np.flipud),
        ),
        (
            "weights-of-directions-interleaved",
            "W and R are read row by row of both directions.",
            arrays(("W", "R"), _directions_interleaved),
        ),
    ):
        yield row(id_, ALL, sentence, "Both directions are wrong.", misread, ONE_DIRECTION)


def _placing() -> Iterator[Mutant]:
    for id_, sentence, effect, function, reasons in (
        (
            "outputs-of-directions-swapped",
            "The outputs of the directions are written to each other's place.",
            "Both directions are wrong, and each is right in the other's place.",
            _swapped_directions,
            (),
        ),
        (
            "second-direction-missing",
            "The second direction is never computed: zeros.",
            SECOND,
            _second_missing,
            (),
        ),
        (
            "y-directions-beside-units",
            "Y is written as [T, N, D, H] instead of [T, D, N, H].",
            "Values of Y are right and in the wrong places.",
            _beside_units,
            (ONE_SEQUENCE, NO_Y),
        ),
    ):
        yield row(id_, ALL, sentence, effect, results(function), ONE_DIRECTION, *reasons)
    yield row(
        "reverse-y-in-order-of-computation",
        ALL,
        "Y of a reverse direction is not put back into the order of X.",
        "Y of reverse is right and in the wrong places.",
        results(_left_reversed),
        NO_REVERSE,
        ONE_STEP,
        NO_Y,
    )


# Last states


def _at(Y: Array, steps: Array, start: Array) -> Array:
    """Return Y[steps] of each direction and sequence [D, N, H]; before the start, that."""
    index = np.broadcast_to(np.maximum(steps, 0), Y.shape[1:3])[None, :, :, None]
    found = np.take_along_axis(Y, index, axis=0)[0]
    return np.asarray(np.where((steps >= 0)[..., None], found, start))


def _start(recurrence: Recurrence, which: int, like: Array) -> Array:
    """Return an initial state [D, N, H], given or not."""
    given = recurrence.initial[which]
    return np.zeros_like(like) if given is None else given.astype(like.dtype)


def _h_at(steps: Callable[[Recurrence], Array]) -> Change:
    """Return the change that takes Y_h of every sequence that has steps from Y, at some steps."""

    def function(recurrence: Recurrence, Y: Array, last: States) -> Outputs:
        if not len(Y):
            return Y, last
        found = _at(Y, steps(recurrence), _start(recurrence, 0, last[0]))
        has_steps = (lengths_of(recurrence) > 0)[:, None]
        return Y, (np.where(has_steps, found, last[0]), *last[1:])

    return results(function)


def _end_of_x(recurrence: Recurrence) -> Array:
    """Y_h = Y[T-1], whichever the direction and the length."""
    D, N = len(recurrence.directions), recurrence.X.shape[1]
    return np.full((D, N), len(recurrence.X) - 1)


def _end_forward_only(recurrence: Recurrence) -> Array:
    """Y_h = Y[T-1] forward and Y[0] in reverse."""
    ends = [len(recurrence.X) - 1 if d is Direction.FORWARD else 0 for d in recurrence.directions]
    return np.broadcast_to(np.array(ends)[:, None], (len(ends), recurrence.X.shape[1]))


def _end_of_sequence(recurrence: Recurrence) -> Array:
    """Y_h = Y[length - 1] also in reverse."""
    return np.broadcast_to(
        lengths_of(recurrence) - 1, (len(recurrence.directions), recurrence.X.shape[1])
    )


def _step_before(recurrence: Recurrence) -> Array:
    """Return the last step but one of each direction; -1 where there is none."""
    lengths = lengths_of(recurrence)
    reverse = np.where(lengths > 1, 1, -1)
    steps = [lengths - 2 if d is Direction.FORWARD else reverse for d in recurrence.directions]
    return np.asarray(np.maximum(steps, -1))


def _first_last(state: Array) -> Array:
    return np.broadcast_to(state[:1], state.shape).copy()


def _changed_last(
    function: Callable[[tuple[Array, ...]], tuple[Array, ...]],
) -> Change:
    return results(lambda _, Y, last: (Y, function(last)))


def _initial_instead(which: int) -> Change:
    """Return the change that returns an initial state as the last one."""

    def function(recurrence: Recurrence, Y: Array, last: States) -> Outputs:
        state = _start(recurrence, which, last[which])
        return Y, (*last[:which], state, *last[which + 1 :])

    return results(function)


def _y_one_late(recurrence: Recurrence, Y: Array, last: States) -> Outputs:
    """Y[t] is the state before step t."""
    initial = _start(recurrence, 0, last[0])
    late = np.empty_like(Y)
    for t in range(len(Y)):
        late[t] = _at(Y, _steps_before(recurrence, t), initial)
    return np.where(_live(recurrence), late, Y.dtype.type(0)), last


def _steps_before(recurrence: Recurrence, t: int) -> Array:
    """Return the step before step t of each direction and sequence [D, N]; -1 for none."""
    lengths = lengths_of(recurrence)
    later = np.where(t + 1 < lengths, t + 1, -1)
    forward = np.full_like(lengths, t - 1)
    return np.array([forward if d is Direction.FORWARD else later for d in recurrence.directions])


def _last() -> Iterator[Mutant]:
    effect = "Y is right, Y_h is not."
    for id_, sentence, steps, reasons in (
        ("at-t-minus-1", "Y_h is Y[T-1], whichever the direction.", _end_of_x, ()),
        (
            "at-end-of-x",
            "Y_h is Y[T-1], or Y[0] in reverse, whatever the length.",
            _end_forward_only,
            (NOT_RAGGED,),
        ),
        (
            "at-end-of-sequence",
            "Y_h of reverse is Y at the sequence's last step, where reverse starts.",
            _end_of_sequence,
            (NO_REVERSE,),
        ),
        ("one-step-early", "Y_h is the state before the last step.", _step_before, ()),
    ):
        yield row(f"last-h-{id_}", ALL, sentence, effect, _h_at(steps), *reasons)
    for id_, sentence, function in (
        (
            "directions-swapped",
            "Y_h and Y_c of each direction are the other's.",
            lambda last: tuple(state[::-1] for state in last),
        ),
        (
            "of-first-direction",
            "Y_h and Y_c of the second direction are the first's.",
            lambda last: tuple(map(_first_last, last)),
        ),
    ):
        change = _changed_last(function)
        yield row(f"last-states-{id_}", ALL, sentence, effect, change, ONE_DIRECTION)
    for k, name, cells in ((0, "h", ALL), (1, "c", LSTM)):
        sentence = f"Y_{name} is initial_{name}: the state is not written back."
        wrong = f"Y is right, Y_{name} is not."
        yield row(f"last-{name}-is-initial", cells, sentence, wrong, _initial_instead(k))
    for id_, sentence, function in (
        ("last-c-is-last-h", "Y_c is Y_h.", lambda last: (last[0], last[0])),
        ("last-h-is-last-c", "Y_h is Y_c.", lambda last: (last[1], last[1])),
        (
            "last-states-swapped",
            "Y_h and Y_c are written to each other's place.",
            lambda last: last[::-1],
        ),
    ):
        wrong = "Y is right, the last states are not."
        yield row(id_, LSTM, sentence, wrong, _changed_last(function))
    yield row(
        "y-one-step-late",
        ALL,
        "Y[t] is the state before step t, the initial one included.",
        "Every value of Y is that of its neighbour; the last states are right.",
        results(_y_one_late),
        NO_STEP,
        NO_Y,
    )


# Layout


def _x_as_other(recurrence: Recurrence) -> Recurrence:
    """Read the buffer of [N, T, I] as one of [T, N, I]."""
    X = recurrence.X
    return replace(recurrence, X=X.swapaxes(0, 1).reshape(X.shape))


def _initial_as_other(state: Array) -> Array:
    """Read the buffer of [N, D, H] as one of [D, N, H]."""
    return state.swapaxes(0, 1).reshape(state.shape)


def _y_as_other(recurrence: Recurrence, Y: Array, last: States) -> Outputs:
    """Write [T, D, N, H] to the buffer of [N, T, D, H]."""
    del recurrence
    T, D, N, H = Y.shape
    return Y.reshape(N, T, D, H).transpose(1, 2, 0, 3), last


def _last_as_other(recurrence: Recurrence, Y: Array, last: States) -> Outputs:
    """Write [D, N, H] to the buffer of [N, D, H]."""
    del recurrence
    _, D, N, H = Y.shape
    return Y, tuple(state.reshape(N, D, H).swapaxes(0, 1) for state in last)


def _layouts() -> Iterator[Mutant]:
    half = "Values are right and in the wrong places, or inputs are mixed; with N = 1 all is right."
    yield row(
        "layout-of-x-ignored",
        ALL,
        "The batch-major buffer of X is read as a time-major one.",
        half,
        _x_as_other,
        ONE_SEQUENCE,
        ONE_STEP,
    )
    yield row(
        "layout-of-initial-states-ignored",
        ALL,
        "The batch-major buffers of initial_h and initial_c are read as direction-major ones.",
        half,
        initial_states(_initial_as_other),
        ONE_DIRECTION,
        ONE_SEQUENCE,
        NO_INITIAL,
    )
    yield row(
        "layout-of-y-ignored",
        ALL,
        "Y is written time-major to a batch-major buffer.",
        half,
        results(_y_as_other),
        NO_Y,
        ONE_SEQUENCE,
    )
    yield row(
        "layout-of-last-states-ignored",
        ALL,
        "Y_h and Y_c are written direction-major to batch-major buffers.",
        half,
        results(_last_as_other),
        ONE_DIRECTION,
        ONE_SEQUENCE,
    )
    yield row(
        "layout-ignored",
        ALL,
        "All batch-major buffers, of inputs and outputs, are taken for time-major ones.",
        half,
        Change(recurrence=_all_as_other, result=_all_written_as_other),
        ONE_SEQUENCE,
    )


def _all_as_other(recurrence: Recurrence) -> Recurrence:
    return initial_states(_initial_as_other)(_x_as_other(recurrence))


def _all_written_as_other(run: Run, recurrence: Recurrence) -> Result:
    def both(r: Recurrence, Y: Array, last: States) -> Outputs:
        return _last_as_other(r, *_y_as_other(r, Y, last))

    return results(both).result(run, recurrence)


ROWS = (
    *family("initial states", _initial()),
    *family("lengths", _ragged()),
    *family("padding", _paddings()),
    *family("directions", (*_walks(), *_sharing(), *_placing())),
    *family("last states", _last()),
    *family("layout", _layouts()),
)
