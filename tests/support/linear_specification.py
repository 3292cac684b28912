"""Linear recurrences once more, one number at a time, written from their texts only.

As in `scalar_specification`: nested lists, loops over batches, heads, tokens, rows and columns, and
no line shared with the package. The numbers are Python's floats or mpmath's with 60 digits.
"""

import itertools
import math
from types import SimpleNamespace

import mpmath
import numpy as np
from support.exact_rounding import correctly_rounded
from support.scalar_specification import single


def exp(x):
    """e^x in floats; infinite, as any kernel's, where math.exp raises."""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


FLOATS = SimpleNamespace(number=float, exp=exp, sqrt=math.sqrt, log1p=math.log1p)
DIGITS = SimpleNamespace(number=mpmath.mpf, exp=mpmath.exp, sqrt=mpmath.sqrt, log1p=mpmath.log1p)


def evaluate(operator, inputs, attributes=None, readings=None, real=FLOATS):
    """Evaluate both outputs without their last rounding, as arrays of the arithmetic's numbers.

    Args:
        operator: `LinearAttention-27` or `CausalConvWithState-27`, or ONNX Runtime's of each.
        inputs: arrays by input name, of any dtype; an absent one is not there.
        attributes: by the specification's names.
        readings: `conv-round` (output, none) and `state-round` (end, step).
        real: the arithmetic, `FLOATS` or `DIGITS`.
    """
    walk = attention if "LinearAttention" in operator else convolution
    walk = packed_convolution if "Varlen" in operator else walk
    walk = gated_delta_net if "GatedDeltaNet" in operator else walk
    if operator.startswith("com.microsoft."):
        readings = {"conv-round": "none", **(readings or {})}
    with mpmath.workdps(60):
        lists = {name: numbers(array, real) for name, array in inputs.items()}
        return walk(inputs, lists, attributes or {}, readings or {}, real)


def golden(operator, inputs, attributes=None, readings=None):
    """Evaluate both outputs with 60 digits, rounded once, to nearest even, to their dtypes."""
    exact = evaluate(operator, inputs, attributes, readings, DIGITS)
    found = {}
    for name, values in exact.items():
        dtype = result_dtype(inputs, name)
        rounded = [nearest(value, dtype.name) for value in values.ravel()]
        found[name] = np.array(rounded, np.float64).astype(dtype).reshape(values.shape)
    return found


def result_dtype(inputs, name):
    """T of the first input for the output; the past state's for the state, T if it is absent."""
    T = next(iter(inputs.values())).dtype
    if name == "final_state":
        return np.dtype(np.float32) if "query" in inputs else T
    return inputs["past_state"].dtype if name != "output" and "past_state" in inputs else T


def nearest(number, dtype):
    """Round to nearest even; NaN and infinities stay what they are."""
    return correctly_rounded(number, dtype) if mpmath.isfinite(number) else float(number)


def numbers(array, real):
    """Return nested lists of the arithmetic's numbers."""

    def each(values):
        return [each(v) for v in values] if isinstance(values, list) else real.number(values)

    return each(np.asarray(array).astype(np.float64).tolist())


def attention(inputs, lists, attributes, readings, real):
    """Evaluate LinearAttention: per batch and key/value head, from the first token to the last.

    gated:  S = exp(g_t) * S          delta:  u = b_t * (v_t - S^T k_t), else u = v_t
    S = S + k_t (x) u                 o_t = scale * q_t^T S, for each query head of the group
    """
    Hq, Hkv = attributes["q_num_heads"], attributes["kv_num_heads"]
    rule = attributes.get("update_rule", "gated_delta")
    B, T, width = inputs["query"].shape
    dk, dv = width // Hq, inputs["value"].shape[2] // Hkv
    Hk = inputs["key"].shape[2] // dk
    scale = real.number(single(attributes.get("scale", 0.0)))
    if scale == 0:
        scale = 1 / real.sqrt(real.number(dk))
    S_dtype = result_dtype(inputs, "present_state").name
    zero = real.number(0)
    output = np.full((B, T, max(Hq, Hkv) * dv), zero, object)
    present = np.full((B, Hkv, dk, dv), zero, object)
    for b in range(B):
        for h in range(Hkv):
            past = lists.get("past_state")
            S = [list(row) for row in past[b][h]] if past else [[zero] * dv for _ in range(dk)]
            for t in range(T):
                of_key = h * Hk // Hkv
                k = lists["key"][b][t][of_key * dk : (of_key + 1) * dk]
                u = lists["value"][b][t][h * dv : (h + 1) * dv]
                if rule in {"gated", "gated_delta"}:
                    g = lists["decay"][b][t]
                    for i in range(dk):
                        kept = real.exp(g[h] if len(g) == Hkv else g[h * dk + i])
                        S[i] = [kept * s for s in S[i]]
                if rule in {"delta", "gated_delta"}:
                    rates = lists["beta"][b][t]
                    rate = rates[h] if len(rates) == Hkv else rates[0]
                    found = [sum(S[i][j] * k[i] for i in range(dk)) for j in range(dv)]
                    u = [rate * (u[j] - found[j]) for j in range(dv)]
                for i in range(dk):
                    S[i] = [S[i][j] + k[i] * u[j] for j in range(dv)]
                several = range(h * (Hq // Hkv), (h + 1) * (Hq // Hkv))
                for head in several or [h]:  # of values, if they share the heads of queries
                    of_query = head if several else h * Hq // Hkv
                    q = lists["query"][b][t][of_query * dk : (of_query + 1) * dk]
                    for j in range(dv):
                        output[b, t, head * dv + j] = scale * sum(q[i] * S[i][j] for i in range(dk))
                if readings.get("state-round") == "step":
                    S = [[real.number(nearest(s, S_dtype)) for s in row] for row in S]
            for i in range(dk):
                for j in range(dv):
                    present[b, h, i, j] = S[i][j]
    return {"output": output, "present_state": present}


def convolution(inputs, lists, attributes, readings, real):
    """Evaluate CausalConvWithState: Concat, a depthwise Conv, an activation, and Slice.

    The operator's function body has Conv give its sum in T to the activation.
    """
    is_last, apart = attributes.get("channels_last"), attributes.get("dilation", 1)
    if is_last:
        B, L, C = inputs["input"].shape
    else:
        B, C, L = inputs["input"].shape
    k = inputs["weight"].shape[2]
    kept, zero = (k - 1) * apart, real.number(0)
    output = np.full((B, C, L), zero, object)
    present = np.full((B, C, kept), zero, object)
    for b in range(B):
        for c in range(C):
            padded = [zero] * kept if "past_state" not in lists else []
            for name in ("past_state", "input"):
                values = lists.get(name)
                if values:
                    padded += [step[c] for step in values[b]] if is_last else values[b][c]
            for t in range(L):
                total = sum(lists["weight"][c][0][j] * padded[t + j * apart] for j in range(k))
                if "bias" in lists:
                    total = total + lists["bias"][c]
                if attributes.get("activation", "none") in {"silu", "swish"}:
                    if readings.get("conv-round", "output") == "output":
                        total = real.number(nearest(total, inputs["input"].dtype.name))
                    total = total / (1 + real.exp(-total))
                output[b, c, t] = total
            for j in range(kept):
                present[b, c, j] = padded[L + j]
    if is_last:
        output, present = output.swapaxes(1, 2), present.swapaxes(1, 2)
    return {"output": output, "present_state": present}


def packed_convolution(inputs, lists, attributes, _, real):
    """Evaluate VarlenCausalConvWithState, token by token, as its text says.

    Local token t of a request reads its local positions t - (k - 1 - j) * dilation for tap j, and
    positions before its first token come from the carry state.
    """
    apart, k = attributes.get("dilation", 1), inputs["weight"].shape[2]
    ends, kept = inputs["cumulative_sequence_length"].tolist(), (k - 1) * apart
    output = np.full(inputs["input"].shape, real.number(0), object)
    final = np.full(inputs["initial_state"].shape, real.number(0), object)
    for request, (start, end) in enumerate(itertools.pairwise(ends)):
        for c in range(inputs["weight"].shape[0]):

            def sample(position, request=request, start=start, c=c):
                if position < 0:
                    return lists["initial_state"][request][c][kept + position]
                return lists["input"][start + position][c]

            for t in range(end - start):
                taps = enumerate(lists["weight"][c][0])
                total = sum(tap * sample(t - (k - 1 - j) * apart) for j, tap in taps)
                if "bias" in lists:
                    total += lists["bias"][c]
                if attributes.get("activation", "none") != "none":
                    total = total / (1 + real.exp(-total))
                output[start + t, c] = total
            for place in range(kept):
                final[request, c, place] = sample(end - start - kept + place)
    return {"output": output, "final_state": final}


def gated_delta_net(inputs, lists, attributes, _, real):
    """Evaluate GatedDeltaNet, token by token and head by head, as its text says.

    S_t = exp(g_t) S_{t-1} + k_t (beta_t (v_t - exp(g_t) S_{t-1}^T k_t))^T,  o_t = scale S_t^T q_t
    """
    given = {"gate_activation": "none", "update_rule": "gated_delta", **attributes}
    gate, rule = given["gate_activation"], given["update_rule"]
    P, Hq, dk = inputs["query"].shape
    _, Hv, dv = inputs["value"].shape
    if "cu_seqlens" in inputs:
        ends = inputs["cu_seqlens"].tolist()
    else:
        N = inputs["initial_state"].shape[0]
        ends = [P // N * n for n in range(N + 1)]
    scale = real.number(single(attributes.get("scale", 0.0)))
    if scale == 0:
        scale = 1 / real.sqrt(real.number(dk))
    bound = real.number(single(attributes.get("gate_lower_bound", -5.0)))
    added = real.number(1e-6 if gate in {"sigmoid", "kda"} else 1e-12)  # what the kernel adds
    zero = real.number(0)

    def sigmoid(x):
        return 1 / (1 + real.exp(-x)) if x >= 0 else real.exp(x) / (1 + real.exp(x))

    def softplus(x):
        return max(x, zero) + real.log1p(real.exp(-abs(x)))

    def of_length_1(vector):
        length = real.sqrt(sum(each * each for each in vector) + added)
        return [each / length for each in vector] if given.get("qk_l2_norm") else vector

    def log_decay(t, h, i):
        g = lists["decay"][t][h]
        g = g[i] if isinstance(g, list) else g
        if gate == "none":
            return g
        bias, a = lists["dt_bias"][h], real.exp(lists["a_log"][h])
        bias = bias[i] if isinstance(bias, list) else bias
        if gate in {"softplus", "qwen"}:
            return -a * softplus(g + bias)
        return bound * sigmoid(a * (g + bias))

    output = np.full((P, Hv, dv), zero, object)
    final = np.full((len(ends) - 1, Hv, dv, dk), zero, object)
    for n, (start, end) in enumerate(itertools.pairwise(ends)):
        for h in range(Hv):
            S = [[zero] * dv for _ in range(dk)]
            if "initial_state" in lists:
                S = [[lists["initial_state"][n][h][j][i] for j in range(dv)] for i in range(dk)]
            of_query = h * Hq // Hv
            for t in range(start, end):
                q, k = (of_length_1(lists[name][t][of_query]) for name in ("query", "key"))
                u = lists["value"][t][h]
                if "gated" in rule:
                    S = [[real.exp(log_decay(t, h, i)) * s for s in S[i]] for i in range(dk)]
                if "delta" in rule:
                    rate = lists["beta"][t][h]
                    rate = sigmoid(rate) if given.get("beta_activation") == "sigmoid" else rate
                    held = [sum(S[i][j] * k[i] for i in range(dk)) for j in range(dv)]
                    u = [rate * (u[j] - held[j]) for j in range(dv)]
                S = [[S[i][j] + k[i] * u[j] for j in range(dv)] for i in range(dk)]
                for j in range(dv):
                    output[t, h, j] = scale * sum(q[i] * S[i][j] for i in range(dk))
            for i, j in itertools.product(range(dk), range(dv)):
                final[n, h, j, i] = S[i][j]
    return {"output": output, "final_state": final}


def assert_is(found, wanted):
    """Fail if a tensor is off by more than 1e-12 of its largest number."""
    for name, values in found.items():
        exact = wanted[name].astype(np.float64)
        largest = np.max(np.abs(exact[np.isfinite(exact)]), initial=1e-300)
        np.testing.assert_allclose(values, exact, rtol=0, atol=1e-12 * largest)
