"""The specs shipped with the package, found by name in a checkout or an installation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.files.reading import nearest_file

if TYPE_CHECKING:
    from collections.abc import Iterator

SUFFIX = ".yaml"


def specs_folder() -> Path:
    """Return the folder of the specs: inside an installed package, or beside it in a checkout.

    Raises:
        InvalidRequest: there is none.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "specs", package.parent / "specs"):
        if (folder / "semantics.md").is_file():
            return folder
    raise InvalidRequest("the specs are not installed; reinstall rnncli")


def spec_names() -> list[str]:
    """Return the names of all configs and suites, paths below the folder: ``ops/lstm_14``."""
    folder = specs_folder()
    paths = [path for kind in ("ops", "suites") for path in sorted(_files(kind))]
    return [path.relative_to(folder).with_suffix("").as_posix() for path in paths]


def statement_files() -> list[Path]:
    """Return the files of statements among the specs, which `trace` reads."""
    return sorted(_files("statements"))


def _files(kind: str) -> Iterator[Path]:
    return (specs_folder() / kind).rglob(f"*{SUFFIX}")


def suite_names() -> list[str]:
    """Return the names of the suites among the specs: ``core``."""
    folder = "suites/"
    return [name.removeprefix(folder) for name in spec_names() if name.startswith(folder)]


def target_names() -> list[str]:
    """Return the names of all configs and suites without their folders: ``lstm_14``, ``core``."""
    return [name.rpartition("/")[2] for name in spec_names()]


def find_suite(name: str | Path) -> Path:
    """Return the file of a suite, given a path, ``core`` or ``specs/suites/core.yaml``.

    Raises:
        InvalidRequest: there is neither.
    """
    path = Path(name)
    if path.is_file():
        return path
    if shipped := find_spec(str(name)):  # even if a folder, such as a pack, has the same name
        return shipped
    suite, separator, case = str(name).partition("::")
    if separator:
        raise InvalidRequest(f"{name}: is a case, not a suite; write {suite} -k id:{case}")
    suites = suite_names()
    near = nearest_file(path) if path.suffix else ""
    hint = near or did_you_mean(path.stem, suites) or f" (there are {', '.join(suites)})"
    raise InvalidRequest(f"{name}: no such file, and no suite of that name{hint}")


def find_spec(name: str) -> Path | None:
    """Return the file of a spec, or None; its name may lack the folder and ``.yaml``."""
    wanted = name.removesuffix(SUFFIX).removeprefix("specs/")
    found = [known for known in spec_names() if wanted in (known, known.rpartition("/")[2])]
    return specs_folder() / f"{found[0]}{SUFFIX}" if found else None
