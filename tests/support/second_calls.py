"""A suite whose cases have a second call, and runtimes that keep too much between two calls."""

import os
from dataclasses import replace

import numpy as np
from support.small_suite import small_suite

from rnncli.generating.production import make_vectors
from rnncli.operators import evaluate
from rnncli.packs.vector import Attempt, Status

TEXT = """\
suite: twice
summary: Cases with a second call.
seed: 11
defaults:
  sizes: {seq_length: 4, batch_size: 3, input_size: 2, hidden_size: 2}
  calls: 2
cases:
  fill:
    matrix: {op: [RNN-14, GRU-14]}
    inputs: {sequence_lens: lengths, B: uniform}
  given:
    op: LSTM-14
    weights: initializers
    inputs: {sequence_lens: [2, 4, 1], initial_h: uniform}
    attributes: {direction: bidirectional}
  clip:
    op: LSTM-14
    attributes: {clip: 0.2}
    inputs: {initial_c: {normal: [0, 2]}}
  single:
    op: GRU-14
    calls: 1
"""

# Of other sizes, which the models leave open.
SHAPES = """\
suite: shapes
summary: Cases whose later calls have more and fewer steps and sequences.
seed: 11
defaults:
  sizes: {seq_length: 3, batch_size: 2, input_size: 2, hidden_size: 2}
  open_sizes: true
  inputs: {sequence_lens: lengths}
  calls:
    - {sizes: {seq_length: 5, batch_size: 4}, inputs: {sequence_lens: rising}}
    - {sizes: {seq_length: 2, batch_size: 1}, inputs: {sequence_lens: [0]}}
cases:
  fed: {op: GRU-14, inputs: {initial_h: uniform}}
  held: {op: LSTM-14, weights: initializers, attributes: {direction: bidirectional}}
"""


def twice(text=TEXT):
    """Its vectors by id."""
    return {vector.id: vector for vector in make_vectors(small_suite(text).entries)}


def right(vector):
    """What must come out, computed."""
    record = vector.record
    return evaluate(
        record.operator,
        vector.inputs,
        attributes=vector.attributes,
        outputs=record.outputs,
        readings=record.readings,
    )


class Right:
    """A session that does as it should."""

    def __init__(self, settings=None, threads=1):
        self.kept = None

    def describe(self):
        """It has a version like everybody."""
        return {"version": "1"}

    def run(self, vector):
        """Evaluate in a session of its own."""
        return self.open(vector)(vector)

    def open(self, vector):
        """Begin a session that keeps its buffers, its first inputs, or nothing."""
        kept = {}
        return lambda asked: self.call(asked, kept)

    def call(self, vector, kept):
        """Evaluate."""
        return right(vector)


class Process:
    """A subject whose process keeps what a runtime keeps, until it is a new one."""

    name = "kept"

    def __init__(self, kernel=right):
        self.kernel, self.started, self.kept = kernel, 0, {}

    def session(self, vectors):
        """Answer in turn."""
        return [self.attempt(vector) for vector in vectors]

    def attempt(self, vector):
        """Answer by what is kept."""
        return self.answer(replace(vector, inputs=dict(vector.inputs)))

    def answer(self, vector):
        """Evaluate."""
        return Attempt(Status.RAN, self.kernel(vector))

    def renew(self):
        """Forget everything."""
        self.started, self.kept = self.started + 1, {}

    def alone(self, vector):
        """Answer in a new process."""
        self.renew()
        return self.attempt(vector)

    def describe(self):
        """Say nothing."""

    def close(self):
        """End nothing."""


class KeepsPadding(Right):
    """Leaves what the buffer of an output holds where a sequence has ended."""

    def call(self, vector, kept):
        """Write the live steps over what was there."""
        found = right(vector)
        live = np.arange(len(found["Y"]))[:, None] < vector.inputs["sequence_lens"]
        before = kept.setdefault("Y", np.zeros_like(found["Y"]))
        kept["Y"] = np.where(live[:, None, :, None], found["Y"], before)
        return {**found, "Y": kept["Y"]}


class KeepsLengths(Right):
    """Takes the lengths of the first call for those of every call."""

    def call(self, vector, kept):
        """Evaluate by the first lengths."""
        lengths = kept.setdefault("lengths", vector.inputs["sequence_lens"])
        vector.inputs["sequence_lens"] = lengths
        return right(vector)


class KeepsLongest(Right):
    """Runs as many steps as the longest sequence of the first call has, in every call."""

    def call(self, vector, kept):
        """Cut the lengths."""
        lengths = vector.inputs["sequence_lens"]
        longest = kept.setdefault("longest", lengths.max())
        vector.inputs["sequence_lens"] = np.minimum(lengths, longest)
        return right(vector)


class KeepsForTheProcess(KeepsLengths):
    """Keeps them for as long as the process lives."""

    def open(self, vector):
        """Go on with what is kept."""
        self.kept = self.kept or {}
        return lambda asked: self.call(asked, self.kept)


class KeepsWithoutSessions:
    """As that, and has no sessions."""

    def __init__(self, settings, threads):
        self.lengths = None

    def describe(self):
        """It has a version like everybody."""
        return {"version": "1"}

    def run(self, vector):
        """Evaluate by the first lengths of the process."""
        self.lengths = vector.inputs["sequence_lens"] if self.lengths is None else self.lengths
        vector.inputs["sequence_lens"] = self.lengths
        return right(vector)


class KeepsWeightsByShape(Right):
    """Takes the R of the first case of a shape for that of all of the process."""

    def __init__(self, settings=None, threads=1):
        self.weights = {}

    def open(self, vector):
        """Go on with what is kept."""
        return self.run

    def run(self, vector):
        """Evaluate by the first R of its shape."""
        R = vector.inputs["R"]
        vector.inputs["R"] = self.weights.setdefault(R.shape, R)
        return right(vector)


class RefusesAgain(Right):
    """Refuses every call of a session but its first."""

    def call(self, vector, kept):
        """Answer once."""
        if kept:
            raise ValueError("busy")
        kept["asked"] = True
        return right(vector)


class DiesAgain(Right):
    """Takes the process down at the second call of a session."""

    def call(self, vector, kept):
        """Answer once."""
        if kept:
            os.abort()
        kept["asked"] = True
        return right(vector)


class WrongAtSecond(Right):
    """Is wrong wherever the first length is 1, whenever it is asked."""

    def call(self, vector, kept):
        """Evaluate, wrongly or not."""
        found = right(vector)
        off = float(vector.inputs["sequence_lens"][0] == 1)
        return {name: values + values.dtype.type(off) for name, values in found.items()}


class DiesOfGRU(Right):
    """Takes the process down at a GRU."""

    def call(self, vector, kept):
        """Answer all else."""
        if vector.record.operator.startswith("GRU"):
            os.abort()
        return right(vector)
