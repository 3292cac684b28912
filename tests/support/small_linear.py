"""Small nodes of linear recurrences with every input, as calls."""

import json

from rnncli.cases.config.config import parse_config
from rnncli.verifying.node_call import NodeCall


def call_of(operator, sizes, **given):
    """Return a node, of which a config is given besides."""
    written = {"op": operator, "sizes": sizes, "inputs": {}, **given}
    case = parse_config(json.dumps(written), "small.yaml")
    return NodeCall.of_case(case, "inputs")


def attention(**sizes_and_others):
    """Return a LinearAttention of two groups of two heads; sizes, or other keys, may be given."""
    sizes = {
        "seq_length": 4,
        "batch_size": 3,
        "q_num_heads": 4,
        "kv_num_heads": 2,
        "key_size": 3,
        "value_size": 2,
    }
    inputs = {
        "past_state": "normal",
        "beta": {"uniform": [0.0, 1.0]},
        "decay": {"uniform": [-1.0, 0.0]},
        "key": {"uniform": [-0.7, 0.7]},
    }
    return _with("LinearAttention-27", sizes, inputs, sizes_and_others)


def convolution(**sizes_and_others):
    """Return a CausalConvWithState of four channels; sizes, or other keys, may be given."""
    sizes = {"seq_length": 4, "batch_size": 3, "channels": 4, "kernel_size": 3}
    inputs = {"bias": "normal", "past_state": "normal"}
    return _with("CausalConvWithState-27", sizes, inputs, sizes_and_others)


def _with(operator, sizes, inputs, given):
    own = {name: given.get(name, size) for name, size in sizes.items()}
    others = {name: value for name, value in given.items() if name not in sizes}
    return call_of(operator, own, **{"inputs": inputs, **others})
