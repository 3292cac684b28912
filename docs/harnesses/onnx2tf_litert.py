"""A harness for LiteRT models that onnx2tf converts, in an environment of its own.

    python3.11 -m venv onnx2tf && onnx2tf/bin/pip install onnx2tf==1.29.24
    rnncli verify vectors/core --timeout 600 \
      --harness 'onnx2tf/bin/python docs/harnesses/onnx2tf_litert.py'

A converter of models for phones: all but X, that is weights, states and lengths, are constants
of the model. A conversion takes seconds; calls that change X alone share it.
"""

import json
import os
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import onnx
import onnx2tf
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter
from onnx import numpy_helper

# What libraries print goes to the standard error. The converter calls the command onnxsim.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
ABOUT = {
    "name": "onnx2tf",
    "version": version("onnx2tf"),
    "language": "Python",
    "homepage": "https://github.com/PINTO0309/onnx2tf",
    "issues": "https://github.com/PINTO0309/onnx2tf/issues",
    "litert": version("ai-edge-litert"),
    "tensorflow": tf.__version__,
}
converted = {}  # the last model, by its file and constants


def tensor(row):
    if row["dtype"] not in {"float32", "int32", "int64"}:
        raise NotImplementedError(f"LiteRT computes in float32, not in {row['dtype']}")
    return np.fromfile(row["file"], row["dtype"]).reshape(row["shape"])


def interpreter(path, constants):
    key = path, *(values.tobytes() for values in constants.values())
    if key in converted:
        return converted[key]
    model = onnx.load(path)
    model.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in constants.items())
    free = [each for each in model.graph.input if each.name not in constants]
    del model.graph.input[:]
    model.graph.input.extend(free)
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, f"{folder}/model.onnx")
        try:
            onnx2tf.convert(
                input_onnx_file_path=f"{folder}/model.onnx",
                output_folder_path=folder,
                keep_shape_absolutely_input_names=[each.name for each in free],
                disable_strict_mode=True,
                non_verbose=True,
            )
        except (Exception, SystemExit) as error:
            why = f"{type(error).__name__}: {error}".splitlines()[0]
            raise NotImplementedError(f"the conversion ends by {why}") from error
        finally:
            tf.keras.backend.clear_session()
        made = Interpreter(model_content=Path(folder, "model_float32.tflite").read_bytes())
    converted.clear()
    converted[key] = made
    return made


def run(request):
    tensors = {name: tensor(row) for name, row in request["inputs"].items()}
    X = tensors.pop("X")
    found, outputs = interpreter(request["model"], tensors).get_signature_runner()(X=X), {}
    for name in request["outputs"]:
        values = np.ascontiguousarray(found[name])
        values.tofile(Path(request["dir"], f"{name}.bin"))
        dtype, shape = str(values.dtype), values.shape
        outputs[name] = {"file": f"{name}.bin", "dtype": dtype, "shape": shape}
    return outputs


for line in sys.stdin:
    request = json.loads(line)
    if request["cmd"] == "stop":
        break
    if request["cmd"] == "start":
        reply = {"version": 1, "implementation": ABOUT}
    else:
        try:
            reply = {"outputs": run(request)}
        except NotImplementedError as refusal:
            reply = {"skipped": True, "message": str(refusal)}
        except Exception as error:
            reply = {"errored": True, "context": {"message": repr(error)}}
        reply["seq"] = request["seq"]
    answers.write(json.dumps(reply) + "\n")
    answers.flush()
