"""A suite that has one of everything a pack can hold, small enough for every test."""

from pathlib import Path

from rnncli.cases.suite.suite import parse_suite

TEXT = """\
suite: small
summary: One of everything a pack can hold.
seed: 11
golden: certified
notes:
  Gates: gates in the wrong order
  Clip: the input of h is not clipped
  Nan: NaN is swallowed
  Shape: a wrong shape is not refused
defaults:
  sizes: {seq_length: 3, batch_size: 3, input_size: 3, hidden_size: 5}
cases:
  gates:
    flags: [Gates]
    inputs: {B: uniform, sequence_lens: lengths}
    matrix:
      op: [RNN-7, GRU-14, LSTM-22]
      direction: [forward, bidirectional]
      weights: [inputs, initializers]
  clip:
    op: LSTM-14
    flags: [Clip]
    attributes: {clip: 0.4}
    inputs: {initial_c: {normal: [0, 2]}}
  half:
    op: GRU-22
    flags: [Gates]
    inputs: {W: {weights: 1.0}, R: {weights: 0.5}}
    matrix: {dtype: [float16, bfloat16, float64]}
  nan:
    op: RNN-14
    flags: [Nan]
    golden: float64
    inputs: {X: {special: [4, nan]}}
  shape:
    op: LSTM-14
    flags: [Shape]
    breaks: {shapes: {W: [1, 12, 3]}}
"""


def small_suite(text=TEXT):
    """The suite, or an altered text of it."""
    return parse_suite(text, "small.yaml", Path())
