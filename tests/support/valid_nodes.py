"""One valid node of each operator, every input given, to be broken one rule at a time."""

import numpy as np

from rnncli.operators import OPERATORS
from rnncli.operators.operator import with_products
from rnncli.operators.packed_rows import packed_ends

# Of linear recurrences.
OF_HEADS = {
    "q_num_heads": 4,
    "kv_num_heads": 2,
    "key_size": 3,
    "value_size": 2,
    "channels": 2,
    "kernel_size": 3,
    "dilation": 2,
    "output_size": 3,
}
SIZES = {"seq_length": 4, "batch_size": 3, "input_size": 2, "hidden_size": 5}


def valid_node(operator, dtype=np.float32, direction="reverse", **sizes):
    """Return attributes and inputs of a node that breaks no rule: T 4, N 3, I 2, H 5, D 1.

    A cell has no direction. Every output is there. Other sizes are given by their names.
    """
    row = OPERATORS[operator]
    sizes = {**SIZES, **sizes, "num_directions": 2 if direction == "bidirectional" else 1}
    T, N = sizes["seq_length"], sizes["batch_size"]
    attributes = {
        **row.written("direction", direction),
        **row.written("hidden_size", sizes["hidden_size"]),
        **row.written("seq_length", T),
        **{output.condition: True for output in row.outputs if output.condition},
    }
    of_heads = {**OF_HEADS, "q_num_heads": 2, "kv_num_heads": 4} if row.packed else OF_HEADS
    sizes = with_products({**of_heads, "total_tokens": T * N, **sizes})
    attributes |= {n: size for n, size in OF_HEADS.items() if n in row.attributes}
    scales = {"float": 0.01, "floats": [0.01, 0.02, 0.03, 0.04]}
    attributes |= {
        each.name: scales[each.type]
        for each in row.attributes.values()
        if each.required and each.type in scales
    }
    inputs = {}
    generator = np.random.default_rng(0)
    demands = row.demands({n: each.default for n, each in row.attributes.items()})
    for tensor in row.inputs:
        if (row.dialect == "TFLite" or row.packed) and not demands.get(tensor.name, True):
            continue
        shape = tuple(dim.multiple * sizes[dim.symbol] for dim in tensor.shape())
        if tensor.role == "lengths":
            inputs[tensor.name] = np.resize(np.int32([T, 0, T // 2]), N)
        elif tensor.role == "offsets":
            inputs[tensor.name] = packed_ends(N + 1, T * N).astype(np.int32)
        elif tensor.types:
            integers = generator.integers(-100, 100, shape)
            inputs[tensor.name] = integers.astype(tensor.types[row.dtypes[0]])
        elif tensor.kind == "levels":
            inputs[tensor.name] = generator.integers(-100, 100, shape).astype(np.int8)
        elif tensor.role.endswith("_scale"):
            inputs[tensor.name] = generator.uniform(0.002, 0.008, shape).astype(np.float32)
        else:
            own = np.float32 if tensor.dtypes == ("float32",) else dtype
            inputs[tensor.name] = generator.normal(0, 0.5, shape).astype(own)
    return attributes, inputs


def named(operator, role):
    """Return the name that an operator has for an input or an attribute, by its role."""
    row = OPERATORS[operator]
    known = {tensor.role: tensor.name for tensor in row.inputs}
    known |= {each.role or each.name: each.name for each in row.attributes.values()}
    return known[role]
