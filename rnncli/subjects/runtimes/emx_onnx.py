"""emx-onnx-cgen, https://github.com/emmtrix/emx-onnx-cgen, which generates C from a model.

A C compiler builds a library of it, which is loaded into this process: a crash of the generated
code is a crash of the process, and a compiler that takes too long is ended with it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from emx_onnx_cgen.compiler import Compiler, CompilerOptions
from google.protobuf.message import Message
from onnx import helper

from rnncli.errors import Unsupported
from rnncli.files.atomic import put_file
from rnncli.subjects.runtime import LoadingRuntime, Refusal
from rnncli.supervision.programs import first_line, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.packs.vector import Vector

COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-O2", "-w", "-shared", "-fPIC")
# The generated function: void entry(inputs ..., outputs ...), in the order of the graph.
ENTRY = "entry"
# All weights are in the C source; by default, large ones are in a file of their own.
OPTIONS = CompilerOptions(model_name=ENTRY, large_weight_threshold=0)
# What follows the reason in the messages of the generator: the node with all its tensors.
DETAILS = " (while lowering "


class EmxOnnx(LoadingRuntime):
    """Compiles the generated C with $CC, or else the system's compiler; it has no settings."""

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:
        super().__init__(settings, threads)
        self._compiler = _compiler()

    def describe(self) -> Mapping[str, str]:
        """Return the versions of the generator and the compiler, and the compiler's flags."""
        compiler = first_line(_ended([*self._compiler, "--version"]).stdout)
        flags = " ".join(FLAGS)
        return {"version": version("emx-onnx-cgen"), "compiler": compiler, "flags": flags}

    def load(self, vector: Vector) -> Callable[[Vector], Tensors]:
        """Generate and compile the C for any number of vectors."""
        model = onnx.load_model_from_string(vector.model)
        held = {each.name for each in model.graph.initializer}
        inputs = [_declared(each) for each in model.graph.input if each.name not in held]
        outputs = [_declared(each) for each in model.graph.output]

        # The generator copies names and attributes into comments.
        if any("*" in text for text in _texts(model)):
            raise Refusal("a text of the model has an asterisk, which could end a comment of the C")
        try:
            source = str(Compiler(OPTIONS).compile(model))
        except Exception as error:
            raise Refusal(str(error).partition(DETAILS)[0] or type(error).__name__) from error
        entry = getattr(self._library(source), ENTRY)
        entry.restype = None

        def run(asked: Vector) -> Tensors:
            fed = []
            for name, dtype, shape in inputs:
                values = asked.fed[name]
                if (values.dtype, values.shape) != (dtype, shape):  # it would read beyond the end
                    wanted, given = f"{dtype}{[*shape]}", f"{values.dtype}{[*values.shape]}"
                    raise Refusal(f"the code takes {wanted} for {name}, not {given}")
                fed.append(np.ascontiguousarray(values))
            made = {}
            for name, dtype, shape in outputs:  # NaN stays where the code never writes
                bits = np.full((*shape, dtype.itemsize), 0xFF, np.uint8)
                made[name] = bits.view(dtype)[..., 0]
            entry(*(ctypes.c_void_p(each.ctypes.data) for each in (*fed, *made.values())))
            return made

        return run

    def _library(self, source: str) -> ctypes.CDLL:
        """Compile C and load the library, which then needs no file.

        Raises:
            Refusal: the compiler reports an error.
        """
        with tempfile.TemporaryDirectory(prefix="rnncli-") as folder:
            file, library = f"{folder}/model.c", f"{folder}/model.so"
            put_file(folder, "model.c", source.encode())
            done = _ended([*self._compiler, *FLAGS, file, "-o", library, "-lm"])
            if not Path(library).exists():
                # Its first error without the place, which is in a file that is gone.
                errors = (line.partition("error: ")[2] for line in done.stderr.splitlines())
                said = first_line("\n".join(errors).strip() or done.stderr)
                said = said or f"nothing; it ended with exit code {done.returncode}"
                raise Refusal(f"the C compiler says: {said}")
            return ctypes.CDLL(library)


def _declared(info: onnx.ValueInfoProto) -> tuple[str, np.dtype[Any], tuple[int, ...]]:
    """Return the name, element type and shape of a tensor that a graph declares.

    Raises:
        Refusal: a dimension has no size.
    """
    kind = info.type.tensor_type
    if not kind.HasField("shape") or not all(d.HasField("dim_value") for d in kind.shape.dim):
        raise Refusal(f"the model gives no size for {info.name}")
    dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
    return info.name, dtype, tuple(d.dim_value for d in kind.shape.dim)


def _texts(message: Message) -> Iterator[str]:
    """Yield the texts of a message, at any depth, without the raw data of tensors."""
    for field, value in message.ListFields():
        for each in value if field.is_repeated else [value]:
            if isinstance(each, Message):
                yield from _texts(each)
            elif isinstance(each, str | bytes) and field.name != "raw_data":
                yield each if isinstance(each, str) else each.decode("utf-8", "replace")


def _compiler() -> list[str]:
    """Return the command of the C compiler: $CC, or the first of `COMPILERS` in PATH.

    Raises:
        InvalidRequest: $CC has a quotation without an end.
        Unsupported: there is none.
    """
    variable = os.environ.get("CC", "").strip()
    named = words_of("CC", variable) if variable else []
    if program := next(filter(None, map(shutil.which, named[:1] or COMPILERS)), None):
        return [program, *named[1:]]
    lacking = f"CC is {named[0]}" if named else f"no {', '.join(COMPILERS)} in PATH"
    raise Unsupported(f"emx-onnx-cgen generates C and needs a C compiler: {lacking}")


def _ended(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 -- the compiler is the user's
        command, capture_output=True, text=True, errors="replace", check=False
    )
