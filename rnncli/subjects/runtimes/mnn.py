"""MNN, https://github.com/alibaba/MNN, which converts models to a format of its own.

Its command `mnnconvert` first installs a package and connects to a server, in the Python module
`MNN.tools.utils.log`. The converter that it then calls is a function of the extension module
`_tools`, which is called here directly, so that nothing is installed or sent.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import MNN
import numpy as np

from rnncli.files.atomic import put_file
from rnncli.jobs.interpreter import python_like_this
from rnncli.subjects.runtime import LoadingRuntime, Refusal
from rnncli.supervision.programs import first_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.packs.vector import Vector

# The program that converts, in a process of its own, since it may damage its memory.
CONVERTER = "import sys, _tools; _tools.mnnconvert(sys.argv)"
# Element type of an input -> MNN's.
DTYPES: Mapping[str, Any] = {
    "float32": MNN.expr.float,
    "int32": MNN.expr.int,
    "int64": MNN.expr.int64,
}
# What the converter prints before a sentence: the time, and the line of its source.
_PLACE = re.compile(r"^\[[\d:]+\] :\d+: ")
# Its words for what it cannot do; often it goes on, converts something else and reports success.
# Its lists of tensors have the model's own words.
_CANNOT = re.compile(
    r"^(?!\w+Tensors ?:).*(?:n[o']t support|unsupported|not const|\berror\b)", re.IGNORECASE
)


class Mnn(LoadingRuntime):
    """Converts a model and runs it on the CPU with high precision; it has no settings."""

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:
        super().__init__(settings, threads)
        self._options = {"thread_num": threads, "precision_mode": MNN.expr.PrecisionMode.High}

    def describe(self) -> Mapping[str, str]:
        """Return the version and the precision."""
        return {"version": MNN.version(), "precision": "high"}

    def load(self, vector: Vector) -> Callable[[Vector], Tensors]:
        """Convert and load the model for any number of vectors."""
        if (dtype := vector.record.dtype) != "float32":
            raise Refusal(f"computes in float32 alone, not in {dtype}")
        inputs, outputs = list(vector.fed), list(vector.record.outputs)
        with tempfile.TemporaryDirectory(prefix="rnncli-") as folder:
            converted = _converted(vector.model, folder)
            module = MNN.nn.load_module_from_file(converted, inputs, outputs, **self._options)

        def run(asked: Vector) -> Tensors:
            given = []
            for held in (np.ascontiguousarray(asked.fed[name]) for name in inputs):
                if (dtype := held.dtype.name) not in DTYPES:
                    raise Refusal(f"has no element type {held.dtype}")
                shape = list(held.shape)
                given.append(MNN.expr.const(held, shape, MNN.expr.NCHW, DTYPES[dtype]))
            made = module.forward(given)
            if len(made) != len(outputs):
                raise Refusal(f"returns {len(made)} outputs, not {len(outputs)}")
            return {name: made[k].read().copy() for k, name in enumerate(outputs)}

        return run


def _converted(model: bytes, folder: str) -> str:
    """Convert a model; return the path of the result. If the converter crashes, so do we.

    Raises:
        Refusal: the converter writes nothing, or prints that it cannot do what the model asks for.
    """
    source, target = f"{folder}/model.onnx", f"{folder}/model.mnn"
    put_file(folder, "model.onnx", model)
    done = subprocess.run(  # noqa: S603 -- of a package that the user has installed
        python_like_this(
            *(CONVERTER, "-f", "ONNX", "--bizCode", "rnncli"),
            *("--modelFile", source, "--MNNModel", target),
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode < 0:
        shutil.rmtree(folder)  # the next line ends this process
        os.kill(os.getpid(), -done.returncode)
    said = [_PLACE.sub("", line) for line in done.stdout.splitlines() if _CANNOT.search(line)]
    if said or not Path(target).exists():
        raise Refusal(first_line("\n".join(said)) or "its converter writes no model")
    return target
