"""Claims about costs, on sizes small enough to count by hand."""

import pytest

from rnncli.bench.workloads import cost_of
from rnncli.cases.config.config import parse_config
from rnncli.operators import evaluate

CONFIG = """\
op: {op}
sizes: {{seq_length: 3, batch_size: 2, input_size: 5, hidden_size: 7}}
attributes: {{direction: {direction}}}
inputs: {{X: normal, W: uniform, R: uniform, B: null, sequence_lens: {lengths}}}
"""


def cost(op, direction="forward", lengths="null"):
    """The cost of a small operator."""
    case = parse_config(CONFIG.format(op=op, direction=direction, lengths=lengths), "<small>")
    outputs = evaluate(case.operator, case.inputs, attributes=case.attributes)
    return case, cost_of(case, outputs)


@pytest.mark.parametrize(("op", "gates"), [("RNN-14", 1), ("GRU-14", 3), ("LSTM-14", 4)])
@pytest.mark.parametrize(("direction", "D"), [("forward", 1), ("bidirectional", 2)])
def test_every_product_is_counted_twice_a_multiplication_and_an_addition(op, gates, direction, D):
    """In each step of each sequence, for every gate of every unit."""
    _, found = cost(op, direction)

    assert found.flops == 2 * (3 * 2) * D * gates * 7 * (5 + 7)


def test_steps_past_the_end_of_a_sequence_cost_nothing():
    """Only the live ones are counted."""
    _, found = cost("RNN-14", lengths="[3, 1]")

    assert found.flops == 2 * 4 * 7 * (5 + 7)


def test_bytes_are_those_of_tensors_and_of_the_recurrent_weights_in_further_steps():
    """X, W, R, Y and Y_h once, R twice more, four bytes each."""
    _, found = cost("RNN-14")
    tensors = 3 * 2 * 5 + 7 * 5 + 7 * 7 + 3 * 2 * 7 + 2 * 7

    assert found.moved == 4 * (tensors + 2 * 7 * 7)
    assert found.held == 4 * (tensors + 3 * 2 * 7)
    assert found.given == 4 * (3 * 2 * 5 + 7 * 5 + 7 * 7)


def test_a_linear_attention_costs_what_reads_and_writes_its_state():
    """Products with each q, and two with k, of 3 steps of 2 sequences; the state moves twice."""
    text = """\
op: LinearAttention-27
sizes: {seq_length: 3, batch_size: 2, q_num_heads: 4, kv_num_heads: 2, key_size: 5, value_size: 7}
inputs: {past_state: normal}
"""
    case = parse_config(text, "<small>")
    outputs = evaluate(case.operator, case.inputs, attributes=case.attributes)
    found, tokens, state = cost_of(case, outputs), 3 * 2, 2 * 2 * 5 * 7

    assert found.flops == 2 * tokens * (4 + 2 * 2) * 5 * 7
    assert found.moved == 4 * (tokens * (4 * 5 + 2 * (5 + 7 + 1 + 1) + 4 * 7) + 2 * state)


def test_a_convolution_costs_its_taps():
    """A multiplication and an addition for each, of 3 steps of 2 sequences of 4 channels."""
    text = """\
op: CausalConvWithState-27
sizes: {seq_length: 3, batch_size: 2, channels: 4, kernel_size: 5}
"""
    case = parse_config(text, "<small>")
    outputs = evaluate(case.operator, case.inputs, attributes=case.attributes)

    assert cost_of(case, outputs).flops == 2 * (3 * 2) * 4 * 5
