"""Whether the last steps of a stream are used: a time axis that is declared free may be frozen.

A recurrence that an exporter unrolled runs at more steps than it was traced with, and drops those
beyond. Strides drop a remainder as well, so the model itself is asked at several times the steps:
what no output depends on is a constant few steps there, and grows with the stream if it is frozen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.judging.comparing.verdict import Verdict
from rnncli.numerics import dtype_of
from rnncli.verifying.node_call import same_tensors
from rnncli.verifying.relations.judging import UnansweredError
from rnncli.verifying.relations.stream_call import ModelCall, apart, other_numbers

if TYPE_CHECKING:
    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array
    from rnncli.verifying.relations.judging import Asker
    from rnncli.verifying.relations.stream_call import StreamCall, StreamedModel

# The multiples of its steps at which a model is asked, the first at which it runs.
MULTIPLES = (4, 2)


def ask_last_step(call: StreamCall, ask: Asker, symbol: str) -> bool:
    """Ask for other numbers in the last step of the inputs of one time axis.

    Returns:
        Whether an output depends on any step, so that something was asked.

    Raises:
        UnansweredError: the last step changes no output of what is judged, or the model is frozen.
    """
    source = call.source
    first = _Steps(source, symbol, call.first.inputs)
    if not first.changes(0):
        return False
    calls = first.call(first.count), first.call(first.count - 1)
    own, other = ask.in_turn(calls)
    if same_tensors(own, other) and _are_apart(*calls):
        raise UnansweredError(
            Verdict.DIFFERS,
            f"steps not used: other numbers in the last step of {first.listed} change no output,"
            " and should",
        )
    for size in (multiple * first.count for multiple in MULTIPLES):
        sizes = {**source.sizes, symbol: size}
        if source.problem(sizes) is not None:
            continue
        longer = _Steps(source, symbol, source.inputs(sizes, 0))
        if longer.changes(0) and not longer.changes(size // 2):
            raise UnansweredError(Verdict.DIFFERS, longer.frozen(symbol))
        break
    return True


class _Steps:
    """The inputs of a call that have steps of one time axis; lengths of sequences are all steps."""

    def __init__(self, source: StreamedModel, symbol: str, inputs: Tensors) -> None:
        self._source = source
        axes = {n: each.axis for n, each in source.streams.time.items() if each.size == symbol}
        self._axes = {name: axis for name, axis in axes.items() if name in inputs}
        self.count = max(inputs[name].shape[axis] for name, axis in self._axes.items())
        full = {name: np.full_like(inputs[name], self.count) for name in source.lengths}
        self._inputs = {**inputs, **full}
        self._made: dict[int, Tensors] = {}

    @property
    def listed(self) -> str:
        """The names of the inputs."""
        return ", ".join(self._axes)

    def call(self, begin: int) -> ModelCall:
        """Return the call with other numbers in the steps from one on."""
        changed = {
            name: _changed(self._inputs[name], axis, begin) for name, axis in self._axes.items()
        }
        return ModelCall("", self._source, {**self._inputs, **changed})

    def _own(self, begin: int) -> Tensors:
        if begin not in self._made:
            self._made[begin] = self.call(begin).exact
        return self._made[begin]

    def changes(self, begin: int) -> bool:
        """Whether other numbers in the steps from one on change an output in float64."""
        return not same_tensors(self._own(self.count), self._own(begin))

    def frozen(self, symbol: str) -> str:
        """Say from which step on none is used, which is in the first half."""
        used, unused = 0, self.count // 2
        while unused - used > 1:
            middle = (used + unused) // 2
            used, unused = (middle, unused) if self.changes(middle) else (used, middle)
        said = f"time frozen: steps of {self.listed} beyond the first {unused} change no output"
        fewer = self._source.inputs({**self._source.sizes, symbol: self.count // 2}, 0)
        for name, values in self._source.answer(fewer).items():
            if (unused, unused) in zip(
                values.shape, self._own(self.count)[name].shape, strict=False
            ):
                said += f"; {name} has no more than {unused} steps"
        return said


def _are_apart(one: ModelCall, other: ModelCall) -> bool:
    """Whether two calls have outputs that no rounding excuses to be the same."""
    return any(
        apart(values, other.exact[name], one.allowed[name] + other.allowed[name]).any()
        for name, values in one.exact.items()
    )


def _changed(values: Array, axis: int, begin: int) -> Array:
    """Return a tensor with other numbers in the steps from one on; whole numbers trade places."""
    other = other_numbers(values) if dtype_of(values).is_float else np.flip(values, axis)
    is_kept = np.arange(values.shape[axis]) < begin
    shape = [-1 if each == axis else 1 for each in range(values.ndim)]
    return np.ascontiguousarray(np.where(is_kept.reshape(shape), values, other), values.dtype)
