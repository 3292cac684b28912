"""Interpreters of TFLite's models, tflite-micro's and LiteRT's; each imports its package when made.

https://github.com/tensorflow/tflite-micro and https://github.com/google-ai-edge/LiteRT. Either ends
the process on some files, without a message, as if an LSTM has no biases.
"""

from __future__ import annotations

from abc import abstractmethod
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from rnncli.models.tflite_model import STATES, schema
from rnncli.packs.layouts import LAYOUTS
from rnncli.packs.tflite_form import fed_inputs, model_of, numbers_of
from rnncli.recurrence.integers import GEMMLOWP_EXPONENTS
from rnncli.subjects.runtime import LoadingRuntime, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array
    from rnncli.packs.vector import Vector

# Our name of an output -> that of the tensor that holds it.
OUTPUTS = {"output": "output", **{f"final_{state}": state for state in STATES}}


class TfliteRuntime(LoadingRuntime):
    """An interpreter, which runs the model of the form `tflite`; it has no settings."""

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:
        super().__init__(settings, threads)
        self.threads = threads
        schema()  # which writes the model

    def load(self, vector: Vector) -> Callable[[Vector], Tensors]:
        """Load a vector's model, again for a call that has other weights.

        A whole model is a .tflite file, whose tensors have their numbers as names.
        """
        if vector.record.is_whole_model:
            interpreter = self.interpreter(vector.model)

            def run_whole(asked: Vector) -> Tensors:
                given = {int(number): values for number, values in asked.inputs.items()}
                called = self.called(interpreter, given)
                return {number: called(int(number)) for number in asked.record.outputs}

            return run_whole
        if vector.node.operator.dialect != LAYOUTS["tflite"].whose:
            raise Refusal("runs TFLite's operator alone here")
        numbers = numbers_of(vector)
        opened: dict[bytes, Any] = {}

        def run(asked: Vector) -> Tensors:
            if reason := self.lacks(asked):
                raise Refusal(reason)
            if (model := model_of(asked)) not in opened:
                opened[model] = self.interpreter(model)
            given = {numbers[name]: values for name, values in fed_inputs(asked).items()}
            called = self.called(opened[model], given)
            return {name: called(numbers[OUTPUTS[name]]) for name in asked.record.outputs}

        return run

    @staticmethod
    def lacks(vector: Vector) -> str:  # noqa: ARG004 -- of those that lack something
        """Return what of a vector it cannot run, or does without a defined result; or ""."""
        return ""

    @abstractmethod
    def interpreter(self, model: bytes) -> Any:
        """Return an interpreter of a model, ready to be called."""

    @abstractmethod
    def called(self, interpreter: Any, given: Mapping[int, Array]) -> Callable[[int], Array]:
        """Reset the states, give tensors by number, and call; return what reads a tensor."""


class TfliteMicro(TfliteRuntime):
    """tflite-micro's interpreter with its reference kernels."""

    def describe(self) -> Mapping[str, str]:
        """Return the version."""
        return {"version": version("tflite_micro"), "kernels": "reference"}

    @staticmethod
    def lacks(vector: Vector) -> str:
        """Return what of a vector it cannot run."""
        if (variant := vector.node.values.get("variant", "plain")) != "plain":
            return f"its LSTM has no variant {variant}"
        return "its LSTM has no projection" * (vector.recurrence.projection is not None)

    def interpreter(self, model: bytes) -> Any:
        """Return an interpreter that keeps every tensor."""
        from tflite_micro.python.tflite_micro import runtime

        keep = runtime.InterpreterConfig.kPreserveAllTensors
        size = ARENA + 20 * len(model)
        return runtime.Interpreter.from_bytes(model, arena_size=size, intrepreter_config=keep)

    def called(self, interpreter: Any, given: Mapping[int, Array]) -> Callable[[int], Array]:
        """Call once; what is given are the inputs of the graph, in its order."""
        interpreter.reset()
        for place, values in enumerate(given.values()):
            interpreter.set_input(values, place)
        interpreter.invoke()
        return lambda number: interpreter.GetTensor(number, 0)["tensor_data"].copy()


ARENA = 1 << 20  # bytes for tensors, beside those that depend on the model


class LiteRt(TfliteRuntime):
    """LiteRT's interpreter with its own kernels, without delegates."""

    def describe(self) -> Mapping[str, str]:
        """Return the version."""
        return {"version": version("ai-edge-litert"), "delegates": "none"}

    @staticmethod
    def lacks(vector: Vector) -> str:
        """Return what of a vector it cannot run, or does without a defined result."""
        if vector.record.dtype == "int16":
            return "its LSTM has no int16 activations"
        if (form := vector.recurrence.options.integers) is None:
            return ""
        if form.cell_scale != 2.0**form.exponent or form.exponent not in GEMMLOWP_EXPONENTS:
            return (
                f"what it does with a cell_state_scale of {form.cell_scale:g} is undefined: it"
                " takes powers of two from 2^-15 to 2^-9"
            )
        return ""

    def interpreter(self, model: bytes) -> Any:
        """Return an interpreter that keeps every tensor."""
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        interpreter = Interpreter(
            model_content=model,
            num_threads=self.threads,
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            experimental_preserve_all_tensors=True,
        )
        interpreter.allocate_tensors()
        return interpreter

    def called(self, interpreter: Any, given: Mapping[int, Array]) -> Callable[[int], Array]:
        """Call once; states are variables, which can be set before."""
        interpreter.reset_all_variables()
        for number, values in given.items():
            interpreter.set_tensor(number, values)
        interpreter.invoke()
        return lambda number: interpreter.get_tensor(number).copy()
