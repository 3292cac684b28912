"""Imports go down only, and the leaves of a package do not know its table."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.tables import every

import rnncli

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(rnncli.__file__).parent

# The rooms from the bottom up; those on one line do not import each other.
LAYERS = (
    ("talk",),
    ("errors",),
    ("numerics", "options"),
    ("recurrence", "limits", "jobs"),
    ("files",),
    ("backends", "supervision"),
    ("operators", "mutants"),
    ("models", "cases"),
    ("packs",),
    ("subjects", "judging"),
    ("generating", "running"),
    ("verifying", "bench"),
    ("reports",),
    ("api",),
    ("cli",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

# What stands above the rooms: the public API, and what `python -m rnncli` runs.
TOP = {"__init__", "__main__"}

# Tables, and the modules of their package that may import them.
TABLES = {
    "rnncli.backends.backend_table": {"backends/__init__.py"},
    "rnncli.operators.operator_table": {
        "operators/__init__.py",
        "operators/evaluation.py",  # takes operators by name
        "operators/attributes.py",  # says which versions have an attribute
        "operators/checking.py",  # says which versions have a dtype
    },
    "rnncli.models.host_operators.kernel_table": set(),
}

MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def dotted(module: str) -> str:
    """A module's path as imports name it."""
    return f"rnncli.{module.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"


NAMES = {dotted(module): module.removesuffix(".py").split("/") for module in MODULES}


def imports(module: str) -> set[str]:
    """Every module of ours that a module names in an import, at any depth in its functions."""
    tree = ast.parse((PACKAGE / module).read_text(encoding="utf-8"))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            of_names = {f"{node.module}.{alias.name}" for alias in node.names}
            assert node.module != "rnncli" or of_names <= {*NAMES, "rnncli.__version__"}, module
            found |= {name if name in NAMES else node.module for name in of_names}
    return found & {*NAMES}


@cache
def edges() -> frozenset[tuple[str, str, str]]:
    """(folder, part, another part that it imports), each a folder or module within that folder."""
    return frozenset(_edges())


def _edges() -> Iterator[tuple[str, str, str]]:
    for module in MODULES:
        own = NAMES[dotted(module)]
        for other in (NAMES[name] for name in imports(module)):
            pairs = enumerate(zip(own, other, strict=False))
            at = next((k for k, (one, two) in pairs if one != two), None)
            if at is not None:
                yield "/".join(own[:at]), own[at], other[at]


def test_imports_go_down_only():
    """A room imports what lies below it, nothing beside or above; `rnncli` itself names it all."""
    rooms = {(part, other) for folder, part, other in edges() if not folder}

    assert {
        (part, other)
        for part, other in rooms
        if not TOP & {part, other} and RANK[other] >= RANK[part]
    } == set()


def test_nothing_in_a_folder_imports_itself_by_way_of_others():
    """Neither modules nor folders of modules, whether the import is for types or in a function."""
    for folder in {folder for folder, _, _ in edges()} - {""}:
        graph = TopologicalSorter()
        for part, other in ((part, other) for where, part, other in edges() if where == folder):
            graph.add(part, other)
        graph.prepare()  # raises CycleError, which says who


def test_a_verdict_is_given_without_its_explanation():
    """To say whether outputs are right takes no known bug, and none is imported."""
    code = "import sys, rnncli.judging.judgement; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()

    assert "rnncli.judging.comparing.margins" in loaded
    explaining = ("rnncli.mutants", "rnncli.judging.explaining")
    assert [name for name in loaded if name.startswith(explaining)] == []


ARCHITECTURE = Path(__file__).parents[1] / "docs/explanation/architecture.md"
SIGNATURES = re.findall(
    r"^\| `([\w.]+)` \| `(.+?)` \|", ARCHITECTURE.read_text("utf-8"), re.MULTILINE
)


@pytest.mark.parametrize(("module", "signature"), SIGNATURES)
def test_the_signatures_of_the_architecture_page_are_those_of_the_code(module, signature):
    """The four that a reader must know, character by character."""
    path = PACKAGE / f"{module.replace('.', '/')}.py"
    functions = [
        f"{node.name}({ast.unparse(node.args)}) -> {ast.unparse(node.returns)}"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and node.returns
    ]

    assert signature in functions
    assert len(SIGNATURES) == 4


def test_every_package_has_its_layer():
    """A new room must be given a place."""
    assert {Path(module).parts[0].removesuffix(".py") for module in MODULES} == {*RANK, *TOP}


@pytest.mark.parametrize("table", TABLES)
def test_leaves_do_not_import_their_table(table):
    """A row is written without knowing the others."""
    package = "/".join(table.split(".")[1:-1])
    importers = {m for m in MODULES if m.startswith(f"{package}/") and table in imports(m)}

    assert importers == TABLES[table]


def foreign_names(module: str) -> set[str]:
    """Every dotted name of another package that a module imports, or holds as a string."""
    found = set()
    for node in ast.walk(ast.parse((PACKAGE / module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {*re.findall(r"^[a-z]\w*(?:\.\w+)+$", node.value)}
    return {name for name in found if not name.startswith(("rnncli.", "__future__."))}


@every("module", MODULES)
def test_private_names_of_others_are_not_used(module):
    """They may change in any release, which an upper bound would have to keep out."""
    text = (PACKAGE / module).read_text(encoding="utf-8")

    assert {name for name in foreign_names(module) if re.search(r"\._(?!_)", name)} == set()
    assert "noqa: SLF001" not in text


def test_no_two_classes_have_one_name():
    """One name, one meaning."""
    named = Counter(
        node.name
        for module in MODULES
        for node in ast.walk(ast.parse((PACKAGE / module).read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )

    assert [name for name, count in named.items() if count > 1] == []


def test_no_module_is_named_like_a_dependency():
    """`import numpy` never means a file of ours."""
    dependencies = {
        *("click", "numpy", "onnx", "h5py", "rich", "yaml", "numba", "flint", "ml_dtypes"),
        *("dask", "distributed", "onnxruntime", "openvino", "jinja2", "matplotlib", "google"),
        *("torch", "tract", "pytest"),
    }

    assert {Path(module).stem for module in MODULES} & dependencies == set()
