"""Runtimes without settings that are loaded in a few calls; each imports its package when made."""

from __future__ import annotations

import re
import tempfile
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto

from rnncli.subjects.runtime import LoadingRuntime, Prepared, Refusal, TimedRuntime
from rnncli.talk.words import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.packs.vector import Vector


UNSIGNED = {TensorProto.UINT8, TensorProto.UINT16}


class OnnxReference(TimedRuntime):
    """The reference evaluator of the onnx package, on NumPy's own number of threads.

    https://onnx.ai/onnx/api/reference.html
    """

    def describe(self) -> Mapping[str, str]:
        """Return the version."""
        return {"version": onnx.__version__}

    def bind(self, vector: Vector) -> Callable[[Vector], Prepared]:
        """Create an evaluator of the model."""
        from onnx.reference import ReferenceEvaluator

        evaluator = ReferenceEvaluator(onnx.load_model_from_string(vector.model))

        def bound(asked: Vector) -> Prepared:
            fed = asked.fed
            return Prepared(
                lambda: evaluator.run(None, fed),
                lambda outputs: dict(zip(evaluator.output_names, outputs, strict=True)),
            )

        return bound


class Tract(TimedRuntime):
    """Tract on one thread, https://github.com/sonos/tract, which reads models from files only."""

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:
        import tract

        super().__init__(settings, threads)
        self._tract, self.refuses_by = tract, (tract.TractError,)

    def describe(self) -> Mapping[str, str]:
        """Return the version."""
        return {"version": self._tract.version()}

    def bind(self, vector: Vector) -> Callable[[Vector], Prepared]:
        """Load and optimise the model; outputs have the graph's names, in its order."""
        names = [output.name for output in onnx.ModelProto.FromString(vector.model).graph.output]
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            file.write(vector.model)
            file.flush()
            loaded = self._tract.onnx().load(file.name)
            order = [loaded.input_name(k) for k in range(loaded.input_count())]
            runnable = loaded.into_model().into_runnable()

        def bound(asked: Vector) -> Prepared:
            fed = [asked.fed[name] for name in order]
            return Prepared(
                lambda: runnable.run(fed),
                lambda outs: dict(zip(names, (out.to_numpy() for out in outs), strict=True)),
            )

        return bound

    @staticmethod
    def reason(error: Exception) -> str:
        """Return the message without the stack: the failed step and its reason."""
        return printable(str(error).partition("Stack backtrace:")[0])


class OpenCV(LoadingRuntime):
    """The DNN module of OpenCV with its engine of version 5, https://docs.opencv.org/5.x.

    The classic engine refuses weights as inputs.
    """

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:
        import cv2

        super().__init__(settings, threads)
        self._cv2, self.refuses_by = cv2, (cv2.error,)
        cv2.setNumThreads(threads)
        cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)

    def describe(self) -> Mapping[str, str]:
        """Return the version and the engine."""
        return {"version": self._cv2.__version__, "engine": "new"}

    def load(self, vector: Vector) -> Callable[[Vector], Tensors]:
        """Load the model for any number of vectors."""
        dtype, dnn = vector.record.dtype, self._cv2.dnn
        if dtype != "float32":
            raise Refusal(f"its recurrent layers compute in float32 alone, not in {dtype}")
        net = dnn.readNetFromONNX(np.frombuffer(vector.model, np.uint8), dnn.ENGINE_NEW)
        names = net.getUnconnectedOutLayersNames()
        if net.empty() or not names:
            raise Refusal("its importer cannot read the node")

        def run(asked: Vector) -> Tensors:
            for name, values in asked.fed.items():
                net.setInput(values, name)
            return dict(zip(names, map(np.copy, net.forward(names)), strict=True))

        return run

    @staticmethod
    def reason(error: Any) -> str:
        """Return the message without the place in the source that comes before it."""
        return str(error.err or error).strip()


# What IREE's compiler prints around the reason.
_REASON = re.compile(r"error: (.*?)(?:\n|: \(!torch|$)")


class Iree(LoadingRuntime):
    """IREE, https://iree.dev, which compiles a model for this machine's CPU; on one thread."""

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:
        import iree.compiler.extras.onnx_importer
        import iree.runtime

        super().__init__(settings, threads)
        self._iree = iree

    def describe(self) -> Mapping[str, str]:
        """Return the versions and the target."""
        return {"version": version("iree-base-compiler"), "target": "llvm-cpu"}

    def load(self, vector: Vector) -> Callable[[Vector], Tensors]:
        """Compile the model for any number of vectors, as `iree-import-onnx` does.

        Raises:
            Refusal: the importer or the compiler refuses the model.
        """
        compiler, runtime = self._iree.compiler, self._iree.runtime
        importer = compiler.extras.onnx_importer
        model = onnx.shape_inference.infer_shapes(onnx.load_model_from_string(vector.model))
        about = importer.ModelInfo(model)
        unsigned = {  # IREE's integers have no sign, and come as signed ones
            output.name: output.type.tensor_type.elem_type in UNSIGNED
            for output in model.graph.output
        }
        imported = about.create_module(context=compiler.ir.Context())
        importer.NodeImporter.define_function(about.main_graph, imported.operation).import_all()
        try:
            compiled = compiler.compile_str(
                str(imported),
                input_type="onnx",
                target_backends=["llvm-cpu"],
                extra_args=["--iree-llvmcpu-target-cpu=host"],
            )
        except compiler.CompilerToolError as error:
            found = _REASON.search(str(error))
            raise Refusal(found[1] if found else "the compiler refuses it") from error
        module = runtime.load_vm_flatbuffer(compiled, driver="local-sync")
        function = module[model.graph.name]

        def run(asked: Vector) -> Tensors:
            made = function(*asked.fed.values())
            outputs = made if isinstance(made, tuple | list) else (made,)
            found = zip(unsigned.items(), map(np.array, outputs), strict=True)
            return {
                name: values.view(f"u{values.dtype}") if viewed else values
                for (name, viewed), values in found
            }

        return run
