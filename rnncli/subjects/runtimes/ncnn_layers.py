"""ncnn's recurrent layers, https://github.com/Tencent/ncnn, in files of its own, written here.

A layer takes one sequence. Those of a batch are run one after another, each without its padding,
whose outputs are 0.
"""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

import ncnn
import numpy as np

from rnncli.files.atomic import put_file
from rnncli.operators import operator_named
from rnncli.subjects.runtime import Prepared, Refusal
from rnncli.subjects.runtimes.layers import LayerRuntime

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array
    from rnncli.packs.vector import Vector

# Layer -> ONNX's places of its gates, in ncnn's order.
GATES: Mapping[str, tuple[int, ...]] = {"RNN": (0,), "GRU": (1, 0, 2), "LSTM": (0, 2, 1, 3)}
# The tag before each array of a file that has float32.
FLOAT32 = bytes(4)
# Options that round weights or states to 16 bits where the processor has such numbers.
NARROW = ("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_packed", "bf16_storage")


class Ncnn(LayerRuntime):
    """Runs a layer on the CPU, in float32; it has no settings."""

    directions = ("forward", "reverse", "bidirectional")
    dtypes = ("float32",)

    def describe(self) -> Mapping[str, str]:
        """Return the version and the precision."""
        return {"version": ncnn.__version__, "precision": "float32"}

    def built(self, vector: Vector) -> Prepared:
        """Write and load the layer."""
        given, kind = vector.inputs, operator_named(vector.record.operator).type
        (T, N, _), (D, _, H) = given["X"].shape, given["R"].shape
        states = self.states(vector)
        made = ["Y", "Y_h", "Y_c"] if kind == "LSTM" else ["Y", "Y_h"]
        blobs = " ".join(["X", *states, *made])
        direction = self.directions.index(vector.node.values["direction"])
        parameters = f"0={H} 1={given['W'].size} 2={direction}"
        lines = (
            "7767517",  # the format's number, then the numbers of layers and blobs
            f"{len(states) + 2} {len(states) + 1 + len(made)}",
            *(f"Input {name} 0 1 {name}" for name in ("X", *states)),
            f"{kind} layer {len(states) + 1} {len(made)} {blobs} {parameters}",
        )
        net = self._loaded("\n".join(lines), b"".join(_arrays(kind, given)))
        sequences = []
        for n, length in enumerate(given.get("sequence_lens", [T] * N)):
            parts = {"X": given["X"][:length, n], **{k: each[:, n] for k, each in states.items()}}
            sequences.append({name: np.ascontiguousarray(each) for name, each in parts.items()})

        def call() -> list[list[Array]]:
            return [_outputs(net, sequence, made) for sequence in sequences]

        def named(found: list[list[Array]]) -> Tensors:
            outputs = {name: np.zeros((D, N, H), np.float32) for name in made}
            outputs["Y"] = np.zeros((T, D, N, H), np.float32)
            for n, (Y, *last) in enumerate(found):
                outputs["Y"][: len(Y), :, n] = Y.reshape(-1, D, H)
                for name, state in zip(made[1:], last, strict=True):
                    outputs[name][:, n] = state
            return {name: outputs[name] for name in vector.record.outputs}

        return Prepared(call, named)

    def _loaded(self, layers: str, weights: bytes) -> Any:
        """Return a network of layers with their weights."""
        net = ncnn.Net()
        net.opt.num_threads = self.threads
        for name in NARROW:
            setattr(net.opt, f"use_{name}", False)
        with tempfile.TemporaryDirectory(prefix="rnncli-") as folder:
            put_file(folder, "weights.bin", weights)
            if net.load_param_mem(layers + "\n") or net.load_model(f"{folder}/weights.bin"):
                raise Refusal("it does not load the layer")
        return net


def _arrays(kind: str, inputs: Tensors) -> list[bytes]:
    """Return the contents of a file of weights: W, the biases and R, each with its tag."""
    order = list(GATES[kind])
    D, _, H = inputs["R"].shape
    W, R = (inputs[name].reshape(D, len(order), H, -1)[:, order] for name in "WR")
    B = inputs.get("B", np.zeros(D * 2 * len(order) * H, np.float32))
    B = B.reshape(D, 2, len(order), H)[:, :, order]
    biases = B.sum(1)
    if kind == "GRU":  # of the new state, both: the reset gate is between them
        biases = np.concatenate([biases[:, :2], B[:, :, 2]], axis=1)
    return [FLOAT32 + each.astype("<f4").tobytes() for each in (W, biases, R)]


def _outputs(net: Any, inputs: Tensors, names: list[str]) -> list[Array]:
    """Run a network on one sequence; an error is a refusal."""
    extractor = net.create_extractor()
    for name, values in inputs.items():
        extractor.input(name, ncnn.Mat(values))
    found = []
    for name in names:
        error, blob = extractor.extract(name)
        if error:
            raise Refusal(f"it computes no {name}: error {error}")
        found.append(np.array(blob))
    return found
