"""IREE, https://iree.dev, which compiles each model for this machine's CPU and then runs it."""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import iree.compiler
import iree.runtime
import numpy as np
import onnx
from iree.compiler import compile_str, ir
from iree.compiler.extras import onnx_importer

from rnncli.subjects.runtime import LoadingRuntime, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.packs.vector import Vector

FLAGS = ["--iree-llvmcpu-target-cpu=host"]
# What the compiler prints around the reason.
_REASON = re.compile(r"error: (.*?)(?:\n|: \(!torch|$)")


class Iree(LoadingRuntime):
    """Compiles for `llvm-cpu` and runs on one thread, without settings."""

    def describe(self) -> Mapping[str, str]:
        """Return the versions and the target."""
        return {"version": version("iree-base-compiler"), "target": "llvm-cpu"}

    def load(self, vector: Vector) -> Callable[[Vector], Tensors]:
        """Compile the model for any number of vectors."""
        # As `iree-import-onnx` does, without options.
        model = onnx.shape_inference.infer_shapes(onnx.load_model_from_string(vector.model))
        names = [output.name for output in model.graph.output]
        module = iree.runtime.load_vm_flatbuffer(_compiled(model), driver="local-sync")
        function = module[model.graph.name]

        def run(asked: Vector) -> Tensors:
            made = function(*asked.fed.values())
            outputs = made if isinstance(made, tuple | list) else (made,)
            return {name: np.array(values) for name, values in zip(names, outputs, strict=True)}

        return run


def _compiled(model: onnx.ModelProto) -> Any:
    """Return the compiled module.

    Raises:
        Refusal: the importer or the compiler refuses the model.
    """
    about = onnx_importer.ModelInfo(model)
    module = about.create_module(context=ir.Context())
    onnx_importer.NodeImporter.define_function(about.main_graph, module.operation).import_all()
    try:
        return compile_str(
            str(module), input_type="onnx", target_backends=["llvm-cpu"], extra_args=FLAGS
        )
    except iree.compiler.CompilerToolError as error:
        found = _REASON.search(str(error))
        raise Refusal(found[1] if found else "the compiler refuses it") from error
