"""A forward LSTM of 8-bit levels, as an NPU computes it: python npu.py RAW_PACK RESULTS"""

import json
import sys
from pathlib import Path

import numpy as np

BITS = 24  # behind the binary point of the gates' sums


def requantised(sums, scale):  # a multiplier and a shift for row r, whose scale is scale[r mod n]
    mantissa, exponent = np.frexp(np.resize(scale, sums.shape[-1]))
    shift = 31 - BITS - exponent
    return (sums * np.rint(mantissa * 2**31).astype(np.int64) + (1 << shift - 1)) >> shift


def level(reals, q):  # the reading `round`
    quotient, ends = np.float32(reals / q["scale"]), np.iinfo(q["type"])
    return np.clip(np.rint(quotient) + q["zero_point"], ends.min, ends.max)


def rounded(reals, q):  # the reading `requantise`; without levels they stay real
    return (level(reals, q) - q["zero_point"]) * q["scale"] if q else reals


def lstm(q, X, W, R, B):  # int32, zero points subtracted; B may be real
    h, c, Y = np.zeros((X.shape[1], R.shape[2]), np.int32), 0, []
    bias = requantised(B, q["B"]["scale"]) if "B" in q else np.rint(B * 2**BITS).astype(np.int64)
    bias = bias.reshape(2, -1).sum(0)
    for x in X:
        sums = requantised(x @ W[0].T, np.multiply(q["W"]["scale"], q["X"]["scale"])) + bias
        sums += requantised(h @ R[0].T, np.multiply(q["R"]["scale"], q["Y"]["scale"]))
        i, o, f, g = np.split(rounded(sums / 2**BITS, q.get("pre")), 4, axis=1)
        i, o, f = (rounded(1 / (1 + np.exp(-gate)), q.get("gate")) for gate in (i, o, f))
        c = f * c + i * rounded(np.tanh(g), q.get("gate"))
        h = (level(o * np.tanh(c), q["Y"]) - q["Y"]["zero_point"]).astype(np.int32)
        Y, c = [*Y, h * q["Y"]["scale"]], rounded(c, q.get("Y_c"))
    return {"Y": np.stack(Y), "Y_h": Y[-1], "Y_c": c}


cases = [*Path(sys.argv[1]).glob("test_lstm_*/case.json")]
if not cases:
    sys.exit(f"{sys.argv[1]}: no LSTM of a raw pack; `rnncli convert --format raw` makes one")
for path in cases:
    case, results = json.loads(path.read_text()), Path(sys.argv[2], path.parent.name)
    q, rows, tensors = case["quantise"], case["data_sets"][0]["inputs"], {}
    (results / "outputs").mkdir(parents=True, exist_ok=True)
    for name, row in ((row["name"], row) for row in rows):
        tensors[name] = np.fromfile(path.parent / row["file"], row["dtype"]).reshape(row["shape"])
        if name in q:
            tensors[name] = tensors[name].astype(np.int32) - q[name]["zero_point"]
    plain = {"direction": "forward", "hidden_size": case["sizes"]["hidden_size"]}
    if {**plain, **case["attributes"]} != plain or {*tensors} != {*"XWRB"}:
        (results / "refused.txt").write_text("only a forward LSTM from zero states")
    elif {q.get(name, {}).get("type") for name in "XWRY"} - {"int8", "uint8"}:
        (results / "refused.txt").write_text("only 8 bits")
    else:
        found = lstm(q, **tensors)
        for name, row in ((row["name"], row) for row in case["data_sets"][0]["outputs"]):
            made = level(found[name], q[name]) if name in q else found[name]
            made.astype(row["dtype"]).tofile(results / "outputs" / f"{name}.bin")
