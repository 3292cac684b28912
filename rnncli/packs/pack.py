"""Packs on disk, in any of the layouts: their manifests and vectors.

Every byte of a vector comes from `Pack.content`, which compares it with the manifest: what is
judged is what the digest names, whatever happens to the files while it is judged.
"""

from __future__ import annotations

import pkgutil
import shlex
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rnncli.cases.library import specs_folder, suite_names
from rnncli.cases.selection import Selection, is_called, words_of
from rnncli.errors import InvalidRequest, UnreadableFile, did_you_mean
from rnncli.files.formats import format_with
from rnncli.files.lock import LOCK
from rnncli.files.paths import RelativePath, below, files_in
from rnncli.files.reading import LARGEST, MissingFile, named, read_bytes, reading, sha256
from rnncli.jobs.tenancy import KeptOpen
from rnncli.packs.layouts import LAYOUTS, ONNX, PREFIX, file_of
from rnncli.packs.manifest import (
    JOURNAL,
    MANIFEST,
    SPOOL,
    SUMS,
    Manifest,
    check_node,
    differences,
    read_manifest,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.packs.record import CaseRecord
    from rnncli.packs.vector import Vector

# The prefix of a word of -k that selects cases by the mutants they kill.
KILLS = "kills:"
# The prefix of the suite of a pack of a model's nodes.
EXTRACTED = "extracted-"
# Extensions of model files alone.
MODELS = (".onnx", ".onnxtxt", ".textproto")


def is_pack(path: str | Path) -> bool:
    """Whether a path is a folder with a manifest.

    Raises:
        InvalidRequest: it is a pack that is being made, or whose making was interrupted.
    """
    folder = Path(path)
    if (folder / MANIFEST).is_file():
        return True
    if any((folder / name).exists() for name in (JOURNAL, SPOOL)):
        resume = f"`rnncli generate SUITE -o {folder}` goes on with it"
        raise InvalidRequest(f"{folder}: an unfinished pack; {resume}")
    return False


def installed_packs() -> dict[str, Path]:
    """Return the folders of the packs that are installed, by name.

    They lie beside the specs, in a checkout or in the package, or in the package `rnncli-vectors`.
    """
    found = {}
    with suppress(ImportError):
        import rnncli_vectors

        found = {name: rnncli_vectors.path(name) for name in rnncli_vectors.names()}
    beside = (specs_folder().parent / "vectors").glob(f"*/{MANIFEST}")
    return found | {file.parent.name: file.parent for file in beside}


def find_pack(path: str | Path) -> Path:
    """Return the folder of a pack that is given by it, or by its name if it is installed."""
    folder = Path(path)
    return folder if folder.exists() else installed_packs().get(str(path), folder)


def pack_hint(path: str | Path) -> str:
    """Return which installed pack, or else suite, a path to nothing may mean."""
    name, packs = Path(path).name, installed_packs()
    if name in packs:
        return f"; the name alone, {name}, is that of an installed pack"
    if name in suite_names():
        return f"; {name} is a suite, whose pack `rnncli generate {name} -o DIR` makes"
    if within := [each.name for each in Path(path).glob("*") if (each / MANIFEST).is_file()]:
        return f"; did you mean {path}/{within[0]}?"
    near = did_you_mean(Path(name).stem, [*packs, *suite_names()])
    return near or f"; installed are {', '.join(sorted(packs)) or 'none'}"


def model_hint(path: str | Path) -> str:
    """Return that a path is a model's, not a pack's, and what judges it; or ""."""
    path = Path(path)
    is_folder = path.is_dir() and any(path.glob("*.onnx")) and not is_pack(path)
    if not is_folder and not (path.suffix.lower() in MODELS and path.is_file()):
        return ""
    name = shlex.quote(str(path))
    return (
        f"it is {'the folder of a model' if is_folder else 'a model file'}; `rnncli run {name}"
        f" --against RUNTIME` judges a runtime on it, `rnncli extract {name} -o PACK` makes a pack"
        " of its recurrent nodes"
    )


class CaseContents(NamedTuple):
    """The files of a case that the manifest lists; no other file of the case is ever read."""

    folder: Path  # the case's folder
    files: dict[str, bytes]  # their contents, by path within the folder
    sums: Mapping[str, str]  # their checksums in the manifest, by the same paths

    def take(self, path: str) -> bytes:
        """Return the content of a file, which is then no longer held in memory here.

        Raises:
            UnreadableFile: the manifest does not list it.
        """
        if path not in self.files:
            raise UnreadableFile(f"{self.folder}/{path}: is not listed in the manifest")
        return self.files.pop(path)


@dataclass(frozen=True)
class Pack:
    """A pack, whose vectors are read on demand."""

    folder: Path  # its folder
    manifest: Manifest  # its manifest
    is_trusted: bool = False  # whether files may differ from their checksums in the manifest

    def __repr__(self) -> str:
        return f"<rnncli pack {self.folder}: {len(self.manifest.cases)} cases>"

    @property
    def layout(self) -> str:
        """A row of `LAYOUTS`."""
        return str(self.manifest.header["layout"])

    @property
    def cases(self) -> list[CaseRecord]:
        """The records of all cases.

        Raises:
            UnreadableFile: the operator of one cannot have such a case.
        """
        return [*map(self._sound, self.manifest.cases)]

    def __contains__(self, case_id: str) -> bool:
        """Whether a case has that id."""
        return case_id in self._by_id

    def vectors(self) -> Iterator[Vector]:
        """Yield the vectors, each read as it is reached.

        Raises:
            UnreadableFile: a vector is missing or damaged.
        """
        yield from map(self.read, self.manifest.cases)

    def case(self, case_id: str) -> CaseRecord:
        """Return a case's record.

        Raises:
            InvalidRequest: no case has that id.
            UnreadableFile: its operator cannot have such a case.
        """
        if case_id not in self._by_id:
            hint = did_you_mean(case_id, self._by_id)
            raise InvalidRequest(f"{self.folder}: no case '{case_id}'{hint}")
        return self._sound(self._by_id[case_id])

    def select(self, expression: str) -> list[CaseRecord]:
        """Return the records of the cases that an expression selects, as `Suite.select` does.

        `id:ID` selects exactly one case. In a scored pack, `kills:ID` selects the cases that catch
        a mutant.

        Raises:
            InvalidRequest: it is not an expression.
            NothingSelected: no case is selected.
            UnreadableFile: the operator of one cannot have such a case.
        """
        cases, holder = self.manifest.cases, str(self.folder)
        found = Selection(expression).chosen(cases, record_is_called, holder, words_of)
        return [*map(self._sound, found)]

    def _sound(self, record: CaseRecord) -> CaseRecord:
        """Return a record of the manifest, whose node is checked when it is first used."""
        place = self._unchecked.get(record.id)
        if place is not None:
            with reading(self.folder / MANIFEST):
                check_node(record, f"cases[{place}]")
            self._unchecked.pop(record.id, None)
        return record

    @property
    def reference(self) -> PackReference:
        """What other processes open it by."""
        return PackReference(str(self.folder.absolute()), self.manifest.digest, self.is_trusted)

    def content(self, path: str) -> bytes:
        """Return the content of a file, read once and compared with its checksum.

        Raises:
            UnreadableFile: the manifest does not list it, or it is missing or altered.
        """
        checksum = self.sums.get(path)
        if checksum is None:
            raise UnreadableFile(f"{self.folder}: {path} is not listed in {MANIFEST}")
        try:
            content = read_bytes(below(self.folder, RelativePath(path)), LARGEST)
        except MissingFile:
            raise UnreadableFile(
                f"{self.folder}: {path} is missing; {self.maker} writes it again"
            ) from None
        if not self.is_trusted and sha256(content) != checksum:
            raise UnreadableFile(
                f"{self.folder}: {path} is altered; verify --trust uses it anyway, and once it is"
                f" removed, {self.maker} writes it again"
            )
        return content

    @property
    def maker(self) -> str:
        """The command that writes its files, for messages."""
        suite, selection = self.manifest.header["suite"], self.manifest.header["selection"]
        folder = shlex.quote(str(self.folder))
        if suite.startswith(EXTRACTED):
            return f"`rnncli extract MODEL -o {folder}`"
        name = suite if suite in suite_names() else "SUITE"
        selected = f" -k {shlex.quote(selection)}" if selection else ""
        layout = "" if self.layout == ONNX else f" --format {self.layout}"
        command = f"`rnncli generate {name}{selected}{layout} -o {folder}`"
        return command if name == suite else f"{command} with the file of suite '{suite}'"

    def contents(self, record: CaseRecord) -> CaseContents:
        """Return the files of a case, all read and compared with their checksums.

        Raises:
            UnreadableFile: one is missing or altered.
        """
        folder = f"{PREFIX}{record.id}"
        sums = {path.removeprefix(f"{folder}/"): sum_ for path, sum_ in record.files.items()}
        files = {path: self.content(f"{folder}/{path}") for path in sums}
        return CaseContents(self.folder / folder, files, sums)

    def read(self, record: CaseRecord | str) -> Vector:
        """Return the vector of a case or id. All files are read, in ONNX folders parsed later.

        Raises:
            InvalidRequest: no case has that id, or the layout is only written.
            UnreadableFile: the vector is missing or damaged.
        """
        reader = LAYOUTS[self.layout].reader
        if not reader:
            raise InvalidRequest(
                f"{self.folder}: is a pack in the layout {self.layout}, which is only written;"
                " read the pack that it was made from"
            )
        record = self.case(record) if isinstance(record, str) else self._sound(record)
        vector: Vector = pkgutil.resolve_name(reader)(self, record)
        return vector

    @property
    def sealed_digest(self) -> str:
        """The digest if it says what is judged; "" if files may differ from their checksums."""
        return "" if self.is_trusted else self.manifest.digest

    def missing(self) -> list[str]:
        """Return the paths of the listed files that are not there."""
        there = {*self._there}
        return [path for path in self.sums if path not in there]

    def doubts(self) -> Iterator[str]:
        """Yield a sentence about files that nobody compares, and one about files of others."""
        if self.is_trusted:
            yield f"{self.folder}: files may be altered: --trust does not compare their checksums"
        known = {*self.sums, MANIFEST, SUMS, JOURNAL, LOCK}
        if others := [path for path in self._there if path not in known]:
            more = f" (and {len(others) - 1} more)" if others[1:] else ""
            yield f"{self.folder}: {others[0]}{more} is not part of the pack and not judged"

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (path, problem) for every file that is missing or does not match its checksum."""
        own = {SUMS: sha256(self.manifest.contents()[SUMS])}
        return differences({**self.sums, **own}, self.folder)

    @cached_property
    def _there(self) -> list[str]:
        return [*files_in(self.folder)]

    @cached_property
    def _unchecked(self) -> dict[str, int]:
        """The places in the manifest of cases whose nodes are not checked yet, by their ids."""
        return {record.id: place for place, record in enumerate(self.manifest.cases)}

    @cached_property
    def _by_id(self) -> dict[str, CaseRecord]:
        return {record.id: record for record in self.manifest.cases}

    @cached_property
    def sums(self) -> Mapping[str, str]:
        """SHA-256 of every file except the manifest, by path."""
        return self.manifest.sums()

    @cached_property
    def tensors(self) -> Mapping[str, Tensors]:
        """The tensors of each case by id, in a layout of one file."""
        groups: dict[str, Tensors] = {}
        with named(self.folder):
            content = self.content(file_of(self.layout))
            parse = format_with(self.layout).parse
            assert parse
            with reading(file_of(self.layout)):
                for name, values in parse(content).items():
                    case, _, rest = name.partition("/")
                    groups.setdefault(case, {})[rest] = values
        return groups


def record_is_called(record: CaseRecord, word: str) -> bool:
    """Return whether a lower-case word of `-k` is true of a case of a pack."""
    if word.startswith(KILLS):
        return word.removeprefix(KILLS) in (record.kills or ())
    return is_called(word, record.id, record.flags)


def open_pack(path: str | Path, digest: str = "", *, trust: bool = False) -> Pack:
    """Open a pack.

    Args:
        path: its folder, or the name of one that is installed, see `find_pack`.
        digest: the required beginning of its digest; "" for any.
        trust: whether its files may differ from their checksums.

    Raises:
        UnreadableFile: it is not there, or has no manifest, or a damaged one.
        InvalidRequest: it is another pack.
    """
    folder = find_pack(path)
    if not folder.exists():
        raise UnreadableFile(f"{path}: no such folder{pack_hint(path)}")
    pack = Pack(folder, read_manifest(folder), trust)
    if not pack.manifest.digest.startswith(digest.lower()):
        raise InvalidRequest(
            f"{path}: is another pack: its digest is {pack.manifest.digest}, not {digest}"
        )
    return pack


class PackReference(NamedTuple):
    """A pack as another process opens it, by its absolute folder: the same one, or none."""

    folder: str
    digest: str
    is_trusted: bool


# The pack of this process's run, whose manifest is read once.
OPEN_PACKS: KeptOpen[PackReference, Pack] = KeptOpen(
    lambda reference: open_pack(reference.folder, reference.digest, trust=reference.is_trusted)
)
