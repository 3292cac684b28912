"""Layers beside linear recurrences, alone and in exports, give what ONNX Runtime gives."""

import numpy as np
import onnxruntime
import pytest
from support.real_models import DATA
from support.tables import every

from rnncli.errors import InvalidRequest, Unsupported
from rnncli.models.generated_inputs import InputRecipe
from rnncli.models.loading import load_model
from rnncli.models.sessions import evaluate_model

CONTRIB = {"domain": "com.microsoft"}
TYPES = {np.float32: 1e-5, np.float16: 4e-3}  # with their tolerances


@every("dtype", TYPES)
def test_norms(agrees, normal, dtype):
    """Along the last axis or from another one on, of a sum, and of each head with a gate."""

    def some(*shape):
        return normal(*shape).astype(dtype)

    near = {"tolerance": TYPES[dtype]}
    agrees("SimplifiedLayerNormalization", 17, some(2, 3, 8), some(8), **near)
    both = some(2, 3, 8), some(3, 8)
    agrees("SimplifiedLayerNormalization", 17, *both, axis=1, epsilon=0.5, stash_type=1, **near)
    for bias in ((), (some(8),)):
        inputs = some(2, 3, 8), some(2, 3, 8), some(8), *bias
        agrees("SkipSimplifiedLayerNormalization", 17, *inputs, epsilon=1e-3, **near, **CONTRIB)
    for activation in ("silu", "swish", "sigmoid"):
        inputs = some(2, 3, 12), some(4), some(2, 3, 12) * 4
        agrees("GatedRMSNorm", 17, *inputs, activation=activation, **near, **CONTRIB)


def test_the_sum_is_an_output(evaluate_one, normal):
    """The fourth output of a norm of a sum is the sum; the mean of squares has no name there."""
    x, skip, bias = normal(2, 3, 8), normal(2, 3, 8), normal(8)
    inputs = {"x": x, "skip": skip, "gamma": np.ones(8, np.float32), "bias": bias}
    node = "y, , inverse, total = com.microsoft.SkipSimplifiedLayerNormalization"
    made = evaluate_one(node, inputs, ("y", "inverse", "total"))

    np.testing.assert_allclose(made["total"], x + skip + bias, rtol=1e-6)
    np.testing.assert_allclose(made["y"], made["total"] * made["inverse"], rtol=1e-6)
    with pytest.raises(Unsupported, match="output 'mean' cannot be computed"):
        evaluate_one(node.replace("y, ,", "y, mean,"), inputs, ("y", "mean"))


@every("dtype", TYPES)
def test_gates(agrees, normal, dtype):
    """With and without a beta; the logarithm of the decay stays exact far from 0."""
    near = {"tolerance": TYPES[dtype]}
    a, b = (20 * normal(2, 5, 3).astype(dtype) for _ in range(2))
    agrees("LinearAttentionGate", 17, a, normal(3), -np.exp(normal(3)), **near, **CONTRIB)
    inputs = a, normal(3), normal(3), b
    agrees("LinearAttentionGate", 17, *inputs, outputs=2, **near, **CONTRIB)


ROTATIONS = {
    "side by side": ((2, 5, 24), {}),
    "heads apart": ((2, 3, 5, 8), {}),
    "some values of each": ((2, 5, 36), {"num_heads": 3, "rotary_embedding_dim": 8}),
    "neighbours": ((2, 5, 24), {"interleaved": 1}),
}


@every("name", ROTATIONS)
def test_rotations(agrees, normal, name):
    """By positions of each token, that of the first, or three of each in sections."""
    shape, attributes = ROTATIONS[name]
    angles = normal(9, 4)
    caches = np.cos(angles), np.sin(angles)
    draw = np.random.default_rng(4)
    for positions in (draw.integers(0, 9, (2, 5)), np.array([3])):
        agrees("RotaryEmbedding", 17, normal(*shape), positions, *caches, **attributes, **CONTRIB)
    for layout in (0, 1):
        inputs = normal(*shape), draw.integers(0, 9, (3, 2, 5)), *caches
        more = {"mrope_section": [2, 1, 1], "num_heads": 3, "mrope_layout": layout}
        agrees("MRotaryEmbedding", 17, *inputs, **attributes | more, **CONTRIB)


ATTENDING = {
    "plain": {},
    "scale": {"scale": 0.7},
    "softcap": {"softcap": 0.5},
    "window": {"local_window_size": 2},
    "smooth": {"smooth_softmax": 1},
    "both ways": {"causal": 0},
    "rotary": {"do_rotary": 1},
    "neighbours": {"do_rotary": 1, "rotary_interleaved": 1},
}


def attention(normal, *, new, past, lengths, room=0, packed=False):
    """Inputs of an attention of four heads that share two, of width 16."""
    batch = len(lengths)
    q, k, v = normal(batch, new, 64), normal(batch, new, 32), normal(batch, new, 32)
    caches = [normal(batch, 2, past + room, 16) for _ in range(2)]
    whole = np.array(new + past, np.int32)
    angles = normal(16, 8)
    rows = (np.concatenate([q, k, v], axis=-1), None, None) if packed else (q, k, v)
    seqlens = np.array(lengths, np.int32) - 1
    return (*rows, *caches, seqlens, whole, np.cos(angles), np.sin(angles))


@every("name", ATTENDING)
def test_attention(agrees, normal, name):
    """Of a prompt, of one token after others, packed, and with room left in the cache."""
    for form in (
        {"new": 5, "past": 0, "lengths": [5, 5]},
        {"new": 1, "past": 6, "lengths": [7, 7]},
        {"new": 3, "past": 4, "lengths": [7]},
        {"new": 1, "past": 6, "lengths": [7, 7], "packed": True},
    ):
        inputs = attention(normal, **form)
        if not ATTENDING[name].get("do_rotary"):
            inputs = inputs[:7]
        counts = {"num_heads": 4, "kv_num_heads": 2, "outputs": 3}
        agrees("GroupQueryAttention", 17, *inputs, **counts, **ATTENDING[name], **CONTRIB)


def test_attention_of_sequences_of_unequal_length(agrees, normal):
    """One token more of each; positions, biases and sinks are those given."""
    counts = {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1, "outputs": 3}
    inputs = attention(normal, new=1, past=6, lengths=[7, 4])
    agrees("GroupQueryAttention", 17, *inputs, **counts, **CONTRIB)
    positions = np.array([[9], [2]])
    more = positions, normal(2, 4, 1, 7), normal(4)
    agrees("GroupQueryAttention", 17, *inputs, *more, **counts, **CONTRIB)


@every(
    "fault",
    [
        (InvalidRequest, {"seqlens_k": [9, 6]}, r"total_sequence_length is 7, seqlens_k \+ 1 is"),
        (InvalidRequest, {"past_key": (2, 2, 3, 16)}, "3 tokens, of which seqlens_k continues 6"),
        (InvalidRequest, {"past_key": (2, 2, 6, 1)}, r"a cache must be \[2, 2, 6, 16\], got"),
        (Unsupported, {"qk_output": 1}, "qk_output 1 is not supported"),
        (Unsupported, {"k_quant_type": "PER_TENSOR"}, "k_quant_type PER_TENSOR is not supported"),
    ],
)
def test_attention_that_is_refused(evaluate, normal, fault):
    """What does not fit, and what is not evaluated."""
    kind, change, sentence = fault
    inputs = [*attention(normal, new=1, past=6, lengths=[7, 7])]
    if "seqlens_k" in change:
        inputs[5] = np.array(change.pop("seqlens_k"), np.int32)
    if "past_key" in change:
        inputs[3] = np.zeros(change.pop("past_key"), np.float32)
    with pytest.raises(kind, match=sentence):
        evaluate(
            "GroupQueryAttention", 17, *inputs, num_heads=4, kv_num_heads=2, **change, **CONTRIB
        )


@every(
    "fault",
    [
        ("<more = 1> (x, g, x)", "Unrecognized attribute: more for operator GatedRMSNorm"),
        ("<epsilon = 1> (x, g, x)", "attribute epsilon must be of type FLOAT"),
        ("(x, g)", "GatedRMSNorm has 3 to 3 inputs, got 2"),
        ('(x, g, "")', "gate is required"),
        ('<activation = "relu"> (x, g, x)', "activation must be silu, swish or sigmoid, got relu"),
        ("(x, g, g)", r"gate must be \[2, 4\] as X is, got \[4\]"),
    ],
)
def test_nodes_that_are_not_valid(evaluate_one, fault):
    """Attributes that the operator lacks, or of another type; inputs that are missing."""
    node, sentence = fault
    inputs = {"x": np.ones((2, 4), np.float32), "g": np.ones(4, np.float32)}
    with pytest.raises(InvalidRequest, match=sentence):
        evaluate_one(f"y = com.microsoft.GatedRMSNorm {node}", inputs)


@pytest.fixture
def evaluate_one(parse):
    """Evaluate a node: `evaluate_one(text, inputs, outputs)`; without "(", it takes all inputs."""

    def run(node, inputs, outputs=("y",)):
        declared = ", ".join(f"float{[*x.shape]} {name}" for name, x in inputs.items())
        made = ", ".join(f"float[n] {name}" for name in outputs)
        node = node if "(" in node else f"{node} ({', '.join(inputs)})"
        model = parse(f"g ({declared}) => ({made}) {{ {node} }}", more=', "com.microsoft": 1')
        return evaluate_model(model, inputs)

    return run


EXPORTS = {
    "qwen3_5": {"sequence_length": 5, "past_sequence_length": 3, "kv_cache_dim": 16},
    "lfm2": {"sequence_length": 5, "past_sequence_length": 3, "kv_cache_dim": 16},
    "qwen3_5_linear": {"sequence_length": 5, "past_sequence_length": 0},
}


@every("steps", [1, 5])
@every("name", EXPORTS)
def test_exports(name, steps):
    """Whole models that onnxruntime-genai writes, as prompts go on and as tokens follow."""
    path = DATA / "genai" / f"{name}.onnx"
    model = load_model(path)
    sizes = EXPORTS[name] | {"sequence_length": steps, "batch_size": 1}
    sizes["total_sequence_length"] = steps + sizes["past_sequence_length"]
    known = {symbol for value in model.inputs for symbol in symbols(value)}
    recipe = InputRecipe(model, dims={k: v for k, v in sizes.items() if k in known})
    inputs = recipe.make({})
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    wanted = dict(zip(names, session.run(names, inputs), strict=True))
    got = evaluate_model(model, inputs)

    assert all(np.abs(values).max() > 1e-3 for values in wanted.values())
    for output, values in wanted.items():
        np.testing.assert_allclose(got[output], values, rtol=1e-3, atol=1e-4, err_msg=output)


def symbols(value):
    """The names of the free sizes of an input."""
    return {dim.dim_param for dim in value.type.tensor_type.shape.dim} - {""}
