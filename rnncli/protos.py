"""ONNX's protobuf messages without the rest of onnx.

`import onnx` loads schemas, checker, parser and tools, for longer than it takes to run a small
model. Here only the module that protoc generated is run, under a name of its own. Protobuf has one
class for each kind of message, however often its description is loaded: these are the classes of
`onnx` itself, whichever is imported first.
"""
# ruff: noqa: TC004 -- types for who reads, taken from what was generated for who runs

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx import (
        AttributeProto,
        FunctionProto,
        GraphProto,
        ModelProto,
        NodeProto,
        SparseTensorProto,
        TensorProto,
        TypeProto,
        ValueInfoProto,
    )

__all__ = [
    "AttributeProto",
    "FunctionProto",
    "GraphProto",
    "ModelProto",
    "NodeProto",
    "SparseTensorProto",
    "TensorProto",
    "TypeProto",
    "ValueInfoProto",
]

PACKAGE, GENERATED = "onnx", "onnx_ml_pb2"


def _generated() -> Any:
    """Run what protoc generated; where onnx is imported already, or missing, import it."""
    package = None if PACKAGE in sys.modules else find_spec(PACKAGE)
    folders = package.submodule_search_locations if package else None
    spec = PathFinder.find_spec(GENERATED, folders) if folders else None
    if spec is None or spec.loader is None:
        return import_module(f"{PACKAGE}.{GENERATED}")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_messages = _generated()
globals().update({name: getattr(_messages, name) for name in __all__})
