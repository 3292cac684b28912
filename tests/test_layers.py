"""Imports go down only, and the leaves of a package do not know its table."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import rnncli

PACKAGE = Path(rnncli.__file__).parent

# From the bottom up; what stands on one line does not import each other. A package's name alone
# stands for what no line names a part of: `judging` for its modules that lie in no folder.
LAYERS = (
    ("terminal", "signals", "words"),
    ("errors", "notes", "display"),
    ("budget", "deadline", "interpreter"),
    ("files", "plugins", "options"),
    ("numerics", "randomness", "executors", "limits"),
    ("profiles",),
    ("recurrence", "formats"),
    ("backends",),
    ("mutants",),
    ("operators", "host_operators"),
    ("weights",),
    ("models", "cases"),
    ("cases.config",),
    ("cases.suite",),
    ("sessions",),
    ("packs",),
    ("judging.tolerances", "subjects.supervision"),
    ("judging.comparing", "subjects"),
    ("judging.scoring",),
    ("judging.explaining",),
    ("judging",),
    ("running", "generating", "verifying"),
    ("scoring", "relations"),
    ("tracing", "commands"),
    ("bench",),
    ("reports",),
    ("conformance",),
    ("cli",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

# What stands above the layers: the public API and the entry points of programs.
TOP = {"__init__", "__main__", "onnx_backend", "pytest"}

# Tables, and the modules of their package that may import them.
TABLES = {
    "rnncli.backends.table": {"backends/__init__.py"},
    "rnncli.operators.table": {
        "operators/__init__.py",
        "operators/evaluation.py",  # takes operators by name
        "operators/attributes.py",  # says which versions have an attribute
        "operators/checking.py",  # says which versions have a dtype
    },
    "rnncli.host_operators.table": set(),
}

MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def imports(module: str) -> set[str]:
    """Every module of ours that a module names in an import, at any depth in its functions."""
    tree = ast.parse((PACKAGE / module).read_text(encoding="utf-8"))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in found if name.startswith("rnncli.")}


def layer(name: str) -> str:
    """The longest name of a layer that a dotted name below rnncli begins with."""
    parts = name.split(".")[1:]
    return next((each for k in (2, 1) if (each := ".".join(parts[:k])) in RANK), parts[0])


def dotted(module: str) -> str:
    """A module's path as imports name it."""
    return f"rnncli.{module.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"


@pytest.mark.parametrize("module", [m for m in MODULES if m.split("/")[0][:-3] not in TOP])
def test_imports_go_down_only(module):
    """A module imports its own package and what lies below it, nothing beside or above."""
    own = layer(dotted(module))
    others = {layer(name) for name in imports(module)} - {own, "__version__"}

    assert {name for name in others if RANK[name] >= RANK[own]} == set()


@pytest.mark.parametrize("module", ["rnncli.judging.judgement", "rnncli.judging.session_calls"])
def test_a_verdict_is_given_without_its_explanation(module):
    """To say whether outputs are right takes no known bug, and none is imported."""
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()

    assert "rnncli.judging.comparing.margins" in loaded
    explaining = ("rnncli.mutants", "rnncli.judging.explaining")
    assert [name for name in loaded if name.startswith(explaining)] == []


def test_every_package_has_its_layer():
    """A new package must be given a place."""
    assert {layer(dotted(module)) for module in MODULES} - TOP == set(RANK)


@pytest.mark.parametrize("table", TABLES)
def test_leaves_do_not_import_their_table(table):
    """A row is written without knowing the others."""
    package = table.split(".")[1]
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


@pytest.mark.parametrize("module", MODULES)
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
        *("torch", "tract"),
    }

    assert {Path(module).stem for module in MODULES} & dependencies == set()
