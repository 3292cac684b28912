"""A harness for one forward RNN layer with Tanh."""

import json
import sys
import traceback
from pathlib import Path

import numpy as np

ABOUT = {"name": "my-kernels", "version": "1.0", "language": "Python", "operators": ["RNN"]}
DEFAULTS = {"direction": "forward", "layout": 0, "activations": ["Tanh"]}
REPEATED = {"hidden_size", "output_sequence"}  # which shapes and requested outputs say


def run(case, tensors):
    if not case["operator"].startswith("RNN-") or case["dtype"] != "float32":
        raise NotImplementedError(f"no {case['operator']} in {case['dtype']}")
    others = {name for name, value in case["attributes"].items() if value != DEFAULTS.get(name)}
    if extra := others - REPEATED | {*case} & {"quantise"}:
        raise NotImplementedError(f"no {', '.join(sorted(extra))}")
    X, W, R = (tensors[name] for name in "XWR")
    bias = tensors["B"][0].reshape(2, -1).sum(0) if "B" in tensors else 0
    h = tensors["initial_h"][0] if "initial_h" in tensors else np.zeros((X.shape[1], R.shape[2]))
    Y = np.zeros((len(X), 1, *h.shape))  # 0 beyond the length of a sequence
    for t, x in enumerate(X):
        live = t < tensors.get("sequence_lens", np.full(len(h), len(X)))
        h[live] = Y[t, 0, live] = np.tanh(x @ W[0].T + h @ R[0].T + bias)[live]
    return {"Y": Y, "Y_h": h[None]}


def answer(request):
    described = request["inputs"] | request["initializers"]
    tensors = {
        name: np.fromfile(row["file"], row["dtype"]).reshape(row["shape"])
        for name, row in described.items()
        if row["dtype"] != "bfloat16"
    }
    found, outputs = run(request["case"], tensors), {}
    for name in request["outputs"]:
        values = np.ascontiguousarray(found[name], "<f4")
        values.tofile(Path(request["dir"], f"{name}.bin"))
        outputs[name] = {"file": f"{name}.bin", "dtype": "float32", "shape": values.shape}
    return {"outputs": outputs}


for line in sys.stdin:
    request = json.loads(line)
    if request["cmd"] == "stop":
        break
    if request["cmd"] == "start":
        reply = {"version": 1, "implementation": ABOUT}
    else:
        try:
            reply = answer(request)
        except NotImplementedError as refusal:
            reply = {"skipped": True, "message": str(refusal)}
        except Exception as error:
            context = {"message": repr(error), "traceback": traceback.format_exc()}
            reply = {"errored": True, "context": context}
        reply["seq"] = request["seq"]
    print(json.dumps(reply), flush=True)
