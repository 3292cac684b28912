"""Folders full of modules that a stranger may have put there, and a Python that tells what it runs.

Each module writes its path into one file as soon as it is imported. The Python is an environment of
its own whose processes all hold an audit hook: it counts them and tells every file that is
executed or loaded and lies outside the installation.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

import rnncli

# What Python, its processes and this package's dependencies import, and what Python looks for.
MODULES = (
    *("json", "random", "pickle", "string", "struct", "socket", "signal", "tempfile", "threading"),
    *("shutil", "copy", "typing", "types", "enum", "re", "token", "heapq", "bisect", "base64"),
    *("selectors", "traceback", "linecache", "tokenize", "contextlib", "functools", "operator"),
    *("resource", "ctypes", "pkgutil", "runpy", "site", "sitecustomize", "usercustomize", "code"),
    *("numpy", "click", "yaml", "h5py", "onnx", "google", "ml_dtypes", "rich", "pygments"),
    *("onnxruntime", "openvino", "tract", "torch", "cv2", "iree", "MNN", "_tools", "numba"),
    *("llvmlite", "flint", "distributed", "dask", "tornado", "matplotlib", "jinja2", "PIL"),
    *("multiprocessing", "subprocess", "logging", "asyncio", "concurrent", "importlib_metadata"),
    *("rnncli", "conftest", "rnncli_plugin", "pytest", "xdist", "execnet"),
)
# What else is taken from a working folder or a home: settings.
SETTINGS = {
    "matplotlibrc": "backend: module://evil\ntext.usetex: True\n",
    "pytest.ini": "[pytest]\naddopts = -p json\npythonpath = .\n",
    ".pdbrc": "import json\n",
}
WATCH = """\
import os
import sys


def watch(folder, allowed):
    processes = set()

    def tell(event, arguments):
        if event == "exec":
            path = arguments[0].co_filename
        elif event == "import":
            path = arguments[1]
        else:
            return
        if os.getpid() not in processes:
            processes.add(os.getpid())
            os.close(os.open(f"{folder}/process-{os.getpid()}", os.O_CREAT | os.O_WRONLY))
        if not path or path[0] == "<" or path.startswith(allowed):
            return
        # A system may link a file of its installation to elsewhere.
        if not os.path.realpath(path).startswith(allowed):
            with open(f"{folder}/imported", "a") as stream:
                stream.write(f"{path}\\n")

    sys.addaudithook(tell)


if "RNNCLI_TEST_WATCH" in os.environ:
    watch(os.environ["RNNCLI_TEST_WATCH"], tuple(os.environ["RNNCLI_TEST_ALLOWED"].split(":")))
"""
SCRIPT = """\
#!{python}
import sys
from {module} import main
if __name__ == "__main__":
    sys.exit(main())
"""


class Watched(NamedTuple):
    """What a command did: its exit code and words, the files it ran, and its processes."""

    code: int
    out: str
    err: str
    imported: list[str]
    processes: int


def plant(folder: Path, told: Path, without: tuple[str, ...] = ()) -> None:
    """Fill a folder with modules, every third one a package, that tell when they are imported."""
    text = f'open({str(told)!r}, "a").write(__file__ + chr(10))\n'
    for number, name in enumerate(each for each in MODULES if each not in without):
        file = folder / name / "__init__.py" if number % 3 == 0 else folder / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    for name, settings in SETTINGS.items():
        if name not in without:
            (folder / name).write_text(settings)


class WatchedPython:
    """An environment with the packages of this one, whose processes tell what they import.

    Args:
        folder: a new folder for it and for what it tells.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told = folder / "told"
        self.environment = {**os.environ, "RNNCLI_TEST_ALLOWED": ":".join(_installation(folder))}
        for name in [each for each in self.environment if each.startswith(("PYTHON", "PYTEST"))]:
            del self.environment[name]
        venv = [sys.executable, "-m", "venv", "--without-pip", folder / "venv"]
        subprocess.run(venv, check=True)
        (packages,) = (folder / "venv").glob("lib/python*/site-packages")
        (packages / "rnncli_test_watch.py").write_text(WATCH)
        lines = [f"import site; site.addsitedir({path!r})" for path in _packages()]
        (packages / "all.pth").write_text("\n".join([*lines, "import rnncli_test_watch\n"]))
        self.programs = folder / "venv" / "bin"
        self.python = self.programs / "python"
        for name, module in {"rnncli": "rnncli.cli", "pytest": "pytest"}.items():
            program = self.programs / name
            program.write_text(SCRIPT.format(python=self.python, module=module))
            program.chmod(0o755)

    def run(self, program: str, *words: object, cwd: Path, **environment: str) -> Watched:
        """Run a program of the environment; what it and its processes import is told."""
        shutil.rmtree(self.told, ignore_errors=True)
        self.told.mkdir()
        done = subprocess.run(
            [self.programs / program, *map(str, words)],
            cwd=cwd,
            env={**self.environment, "RNNCLI_TEST_WATCH": str(self.told), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        files = [self.told / "imported", self.told / "markers"]
        imported = {line for file in files if file.exists() for line in file.open()}
        processes = len([*self.told.glob("process-*")])
        return Watched(
            done.returncode, done.stdout, done.stderr, sorted(map(str.strip, imported)), processes
        )

    @property
    def markers(self) -> Path:
        """The file for `plant`."""
        return self.told / "markers"


def _packages() -> list[str]:
    return sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})


def _installation(folder: Path) -> list[str]:
    """Return the folders from which may be imported."""
    library = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
    ours = {*library, *_packages(), Path(rnncli.__file__).parent, folder / "venv", sys.base_prefix}
    return sorted(os.path.realpath(path) + os.sep for path in ours)
