"""A kernel with the functions that it calls, as one program that needs NumPy alone."""

from __future__ import annotations

import ast
import builtins
from functools import cache
from importlib import import_module
from inspect import getsource
from typing import TYPE_CHECKING, NamedTuple

from rnncli.mutants.calls import call_of
from rnncli.mutants.edits import kernel_of

if TYPE_CHECKING:
    from collections.abc import Mapping

HEAD = """\
# {kernel}: `r` has what it reads, and `written` gets its outputs.
from __future__ import annotations

{imports}

written = SimpleNamespace()
"""


class _Definition(NamedTuple):
    """A statement of a module that gives names, and its lines with the comments above."""

    module: str
    node: ast.stmt
    text: str


def spelled_out(cell: str) -> str:
    """Return the plain kernel of a cell, such as "LSTM", after what it uses of our modules.

    Only the words of TFLite's integer LSTM, which no text specifies, are spelled out; kernels of
    other cells use functions that their specifications have, and stand alone.
    """
    kernel, found = kernel_of(cell), dict[int, _Definition]()
    modules = call_of(cell).spelled
    if not modules:
        return kernel
    imports = {"from types import SimpleNamespace"}

    def add(names: set[str], module: str) -> None:
        given, imported = _given(module), _imported(module)
        for name in sorted(names):
            if each := given.get(name):
                if id(each.node) not in found:
                    found[id(each.node)] = each
                    add(_names_in(each.node), module)
            elif statement := imported.get(name):
                source = statement.module if isinstance(statement, ast.ImportFrom) else None
                if source in modules:
                    add({name}, source)
                elif source is None or not source.startswith("rnncli"):
                    own = [alias for alias in statement.names if name in {alias.name, alias.asname}]
                    imports.add(ast.unparse(type(statement)(**{**vars(statement), "names": own})))
                else:
                    imports.add(f"class {name}(Exception): ...")

    add(_names_in(ast.parse(kernel)), modules[0])
    order = {name: number for number, name in enumerate(reversed(modules))}
    texts = sorted(found.values(), key=lambda each: (order[each.module], each.node.lineno))
    lines = sorted(imports, key=lambda line: (line[:5] == "class", line[:6] != "import", line))
    head = HEAD.format(kernel=call_of(cell).kernel[1], imports="\n".join(lines))
    return "\n\n".join([head.rstrip(), *(each.text for each in texts), kernel])


def _source_of(module: str) -> str:
    return getsource(import_module(module))


@cache
def _given(module: str) -> Mapping[str, _Definition]:
    """Return the definitions of a module by the names that they give."""
    text = _source_of(module)
    lines, found, after = text.splitlines(), dict[str, _Definition](), 0
    for node in ast.parse(text).body:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        start = first - 1
        while start > after and lines[start - 1].startswith("#"):
            start -= 1
        assert node.end_lineno is not None
        own = _Definition(module, node, "\n".join(lines[start : node.end_lineno]))
        after = node.end_lineno
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = own
        elif isinstance(node, ast.Assign):
            found |= {each.id: own for each in node.targets if isinstance(each, ast.Name)}
    return found


@cache
def _imported(module: str) -> Mapping[str, ast.Import | ast.ImportFrom]:
    """Return the imports of a module by the names that they give."""
    return {
        alias.asname or alias.name: node
        for node in ast.parse(_source_of(module)).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def _names_in(node: ast.AST) -> set[str]:
    """Return the names that a piece of code looks up, but for those of the language."""
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return names - vars(builtins).keys()
