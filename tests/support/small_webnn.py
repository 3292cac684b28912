"""A suite of WebNN's operators with everything that a case of web-platform-tests can hold."""

from support.small_suite import small_suite

from rnncli.generating.production import make_vectors

TEXT = """\
suite: webnn-small
summary: WebNN's operators in small.
seed: 3
defaults: {sizes: {batch_size: 3, input_size: 2, hidden_size: 4}}
cases:
  plain:
    matrix: {op: [webnn.gru, webnn.lstm]}
    sizes: {seq_length: 2}
  full:
    matrix: {op: [webnn.gru, webnn.lstm], dtype: [float32, float16]}
    sizes: {seq_length: 2}
    weights: initializers
    attributes: {direction: both, returnSequence: true}
    inputs: {bias: uniform, recurrentBias: uniform, initialHiddenState: uniform}
  gru:
    op: webnn.gru
    sizes: {seq_length: 2}
    attributes: {resetAfter: false, layout: rzn, activations: [relu, tanh]}
  peepholes:
    op: webnn.lstm
    sizes: {seq_length: 2}
    attributes: {layout: ifgo, returnSequence: false}
    inputs: {peepholeWeight: uniform, initialCellState: uniform}
  part: {op: webnn.lstm, sizes: {seq_length: 2}, outputs: [outputCell]}
  twice: {op: webnn.lstm, sizes: {seq_length: 2}, calls: 2}
  cell:
    matrix: {op: [webnn.gruCell, webnn.lstmCell], dtype: [float32, float16]}
    sizes: {batch_size: 1}
    inputs: {bias: uniform}
"""


def small_webnn():
    """The suite."""
    return small_suite(TEXT)


def vectors():
    """Its vectors by id."""
    return {vector.id: vector for vector in make_vectors(small_webnn().entries)}
