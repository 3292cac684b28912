"""The families of inputs, each a function that builds one input and says what to run on it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import shutil
import socket
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import fuzz_bases
import fuzz_bytes
import fuzz_containers
import fuzz_protos
import fuzz_trees
import onnx
from fuzz_process import Box, Command, Outcome, Series
from onnx import TensorProto

Make = Callable[[Box, random.Random], Command]


def _line(dice: random.Random, lines: str) -> tuple[str, ...]:
    """Choose one of some command lines."""
    return tuple(dice.choice(lines.strip().splitlines()).split())


# --- packs -------------------------------------------------------------------------------------


def sealed(tree: Any) -> tuple[bytes, str]:
    """Return a manifest as a pack holds it, its digest that of its content whatever that is."""
    if not isinstance(tree, dict):
        return fuzz_trees.write(tree).encode("utf-8", "surrogatepass"), ""
    entries = {key: value for key, value in tree.items() if key != "digest"}
    cases, files = entries.pop("cases", None), entries.pop("files", None)
    written = fuzz_trees.write({**entries, "cases": cases, "files": files})
    try:
        read = json.loads(written)
        body = _canonical(read)
    except (ValueError, RecursionError, TypeError, AttributeError):
        body = written
    digest = hashlib.sha256(body.encode("utf-8", "surrogatepass") + b"\n}\n").hexdigest()
    whole = written[:-1] + f', "digest": "{digest}"}}' if "digest" in tree else written
    return whole.encode("utf-8", "surrogatepass"), digest


def _canonical(tree: dict) -> str:
    """Write what a digest is taken of: a line for each entry and each case."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    order = (
        "format",
        "suite",
        "summary",
        "seed",
        "selection",
        "layout",
        "profiles",
        "notes",
        "mutants",
    )
    about = [f"{encode(name)}: {encode(tree[name])},\n" for name in order if name in tree]
    cases = ",\n".join(encode(case) for case in tree["cases"])
    return "".join(
        ["{\n", *about, '"cases": [\n', cases, f'\n],\n"files": {encode(tree["files"])}']
    )


def _copy_pack(box: Box, dice: random.Random, layout: str | None = None) -> tuple[Path, str]:
    layout = layout or dice.choice(("onnx", "onnx", "npz", "h5"))
    fuzz_bases.copy(box.bases / f"pack_{layout}", "pack")
    return Path("pack"), layout


def _rename(tree: dict, dice: random.Random) -> None:
    """Give a case another id, or an alternative another name, wherever it is mentioned."""
    case = dice.choice(tree["cases"])
    new = dice.choice(fuzz_trees.TEXTS)
    if case["alternatives"] and dice.random() < 0.5:
        old, case["alternatives"][0] = case["alternatives"][0], new
        old, new = f"readings/{old}/", f"readings/{new}/"
    else:
        old, case["id"], new = f"test_{case['id']}/", new, f"test_{new}/"
    if dice.random() < 0.7:
        case["files"] = {path.replace(old, new): of for path, of in case["files"].items()}
    if dice.random() < 0.3:
        case["files"] = {}


def _prepare(dice: random.Random) -> None:
    """Make the folders that paths such as x/../../canary need to lead anywhere."""
    if dice.random() < 0.5:
        for name in ("pack/test_x/x", "pack/x", "out/test_x", "out/x"):
            os.makedirs(name, exist_ok=True)  # noqa: PTH103
    for case in Path("pack").glob("test_*"):
        (case / "readings" / "x").mkdir(parents=True, exist_ok=True)


def _altered_member(tree: dict, pack: Path, dice: random.Random) -> None:
    """Mutate a file of a pack, and note its new checksum."""
    holders = [tree, *tree["cases"]]
    holder = dice.choice([each for each in holders if each["files"]])
    name = dice.choice([*holder["files"]])
    content = (pack / name).read_bytes()
    if name.endswith(".pb") and dice.random() < 0.7:
        content = fuzz_protos.mutate(
            TensorProto.FromString(content), dice
        ).SerializePartialToString()
    elif name.endswith(".onnx") and dice.random() < 0.7:
        content = fuzz_protos.mutate(
            fuzz_protos.model_from(content), dice
        ).SerializePartialToString()
    else:
        content = fuzz_bytes.mutate(content, dice)
    (pack / name).write_bytes(content)
    holder["files"][name] = hashlib.sha256(content).hexdigest()


def _sums(tree: dict) -> str:
    found = dict(tree["files"])
    for case in tree["cases"]:
        found |= case["files"]
    return "".join(f"{checksum}  {path}\n" for path, checksum in sorted(found.items()))


def on_pack(box: Box, dice: random.Random, layout: str = "onnx") -> Command:
    """Return a command that reads the pack in `pack`, and whatever else it needs."""
    file = "" if layout == "onnx" else f"vectors.{layout}"
    good = str(box.bases / f"results_{layout}" / file)
    answers = f"pack/{file}" if dice.random() < 0.1 else good
    json_ = dice.choice(((), ("--json",)))
    trust = dice.choice(((), ("--trust",)))
    suite = str(box.bases / "tiny.yaml")
    reads = ("pack", good, suite)
    to = dice.choice(("onnx", "npz", "h5"))
    pages = ("--markdown", "out.md", "--junit", "out.xml", "--html", "out.html")
    rows: tuple[tuple[float, tuple[str, ...], tuple[str, ...]], ...] = (
        (3, ("inspect", "pack", *json_), ()),
        (2, ("list", "pack", *json_), ()),
        (4, ("verify", "pack", "--results", answers, *json_, *trust), ()),
        (0.2, ("verify", "pack", "--results", answers, *pages), ("out.md", "out.xml", "out.html")),
        (1, ("verify", "pack", "--results", answers, "--trust", "--profile", "strict"), ()),
        (4, ("convert", "pack", "out", "--format", to), ("out",)),
        (2, ("run", "pack", *json_), ()),
        (1, ("run", "pack", "-o", "out"), ("out",)),
        (0.3, ("score", "pack", *json_), ()),
        (0.5, ("trace", "pack", "--complete", *json_), ()),
        (0.3, ("list", "pack", "--statements", "--json"), ()),
        (0.5, ("diagnose", "pack", "--results", answers, *trust), ()),
        (0.5, ("compare", "pack", "pack"), ()),
        (0.5, ("generate", suite, "-o", "pack"), ("pack",)),
        (0.3, ("generate", suite, "-o", "pack", "--check"), ()),
        (0.01, ("verify", "pack", "--backend", "numpy", *trust), ()),
        (0.01, ("verify", "pack", "--metamorphic", "--backend", "numpy", *trust), ()),
    )
    _, arguments, writes = dice.choices(rows, [row[0] for row in rows])[0]
    return Command(arguments, reads, writes)


def manifests(box: Box, dice: random.Random) -> Command:
    """A manifest mutated by type, its digest made right, in every layout."""
    pack, layout = _copy_pack(box, dice)
    tree = fuzz_bases.tree(fuzz_bases.text(box.bases / f"pack_{layout}" / "manifest.json"))
    if dice.random() < 0.35:
        _rename(tree, dice)
    elif dice.random() < 0.15:
        _altered_member(tree, pack, dice)
    if dice.random() < 0.7:
        tree = fuzz_trees.mutate(tree, dice)
    content, _ = sealed(tree)
    if dice.random() < 0.03:
        content = fuzz_bytes.mutate(content, dice)
    (pack / "manifest.json").write_bytes(content)
    with contextlib.suppress(TypeError, KeyError, AttributeError, ValueError):
        (pack / "SHA256SUMS").write_text(_sums(tree))
    _prepare(dice)
    return on_pack(box, dice, layout)


def journals(box: Box, dice: random.Random) -> Command:
    """The journal of an unfinished pack, its lines mutated; a second run goes on from it."""
    pack, _ = _copy_pack(box, dice, "onnx")
    lines = [json.loads(line) for line in fuzz_bases.text(box.bases / "journal").splitlines()]
    if dice.random() < 0.2:
        lines = fuzz_trees.mutate(lines, dice, 1)
    for _ in range(dice.choice((1, 1, 2))):
        if isinstance(lines, list) and lines:
            at = 0 if dice.random() < 0.4 else dice.randrange(len(lines))
            lines[at] = fuzz_trees.mutate(lines[at], dice)
    texts = [fuzz_trees.write(line) for line in lines] if isinstance(lines, list) else [str(lines)]
    content = ("\n".join(texts) + dice.choice(("\n", ""))).encode("utf-8", "surrogatepass")
    if dice.random() < 0.15:
        content = fuzz_bytes.mutate(content, dice)
    (pack / ".rnncli-journal").write_bytes(content)
    for name in ("manifest.json", "SHA256SUMS"):
        if dice.random() < 0.7:
            (pack / name).unlink()
    if dice.random() < 0.3:
        shutil.rmtree(pack / "test_rnn_7_plain")
    suite = str(box.bases / "unscored.yaml")
    more = dice.choice(((), (), ("--check",), ("--json",), ("-k", "rnn"), ("--format", "npz")))
    if dice.random() < 0.15:
        return on_pack(box, dice)
    return Command(("generate", suite, "-o", "pack", *more), ("pack", suite), ("pack",))


def sums(box: Box, dice: random.Random) -> Command:
    """SHA256SUMS mutated, and files of the pack that its checksums do not fit."""
    pack, layout = _copy_pack(box, dice)
    path = pack / "SHA256SUMS"
    path.write_bytes(fuzz_bytes.mutate_lines(path.read_text(), dice))
    if dice.random() < 0.3:
        path.write_bytes(fuzz_bytes.mutate(path.read_bytes(), dice))
    if dice.random() < 0.7:
        victim = dice.choice([*filter(Path.is_file, sorted(pack.rglob("*")))])
        victim.write_bytes(fuzz_bytes.mutate(victim.read_bytes(), dice))
    return on_pack(box, dice, layout)


# --- YAML --------------------------------------------------------------------------------------


def _yaml(text: str, dice: random.Random) -> bytes:
    if dice.random() < 0.4:
        return fuzz_bytes.mutate_lines(text, dice)
    tree = fuzz_trees.mutate(json.loads(fuzz_bases.yaml_json(text)), dice)
    return fuzz_trees.write(tree).encode("utf-8", "surrogatepass")


def configs(box: Box, dice: random.Random) -> Command:
    """A config mutated as text and as a tree; a file of inputs beside it."""
    del box
    os.mkdir("c")  # noqa: PTH102
    Path("c/c0.npz").write_bytes(fuzz_bases.npz_bytes(("c0",)))
    content = _yaml(
        dice.choice((fuzz_bases.CONFIG, fuzz_bases.CONFIG, fuzz_bases.SMALL_CONFIG)), dice
    )
    Path("c/c.yaml").write_bytes(content)
    line = _line(
        dice,
        """
        run c/c.yaml
        run c/c.yaml --json
        run c/c.yaml -o out
        run c/c.yaml -o out.npz
        lint c/c.yaml
        inspect c/c.yaml
        inspect c/c.yaml --json
        run -
        lint -
        """,
    )
    reads = ("c",) if "-" not in line else (".",)
    return Command(line, reads, ("out", "out.npz"), content if "-" in line else b"")


def suites(box: Box, dice: random.Random) -> Command:
    """A suite mutated as text and as a tree: listed, checked, and made where it is small."""
    del box
    os.mkdir("s")  # noqa: PTH102
    Path("s/c0.npz").write_bytes(fuzz_bases.npz_bytes(("c0",)))
    small = fuzz_bases.SUITE if dice.random() < 0.1 else fuzz_bases.UNSCORED
    Path("s/s.yaml").write_bytes(_yaml(dice.choice((small, fuzz_bases.MATRIX)), dice))
    line = _line(
        dice,
        """
        list s/s.yaml
        list s/s.yaml --json
        list s/s.yaml -k lstm
        lint s/s.yaml
        inspect s/s.yaml
        inspect s/s.yaml::rnn_7_plain
        inspect s/s.yaml::lstm_14_given --json
        run s/s.yaml
        run s/s.yaml::lstm_14_given
        generate s/s.yaml -o out -k plain
        generate s/s.yaml -o out -k given
        """,
    )
    return Command(line, ("s",), ("out",))


# --- tensors -----------------------------------------------------------------------------------


def _on_tensors(path: str, dice: random.Random) -> Command:
    """Return a command that reads a file of tensors."""
    Path("w.npz").write_bytes(fuzz_bases.npz_bytes())
    Path("m.onnx").write_bytes(fuzz_bases.models()[4])
    key = dice.choice(("", "::x"))
    line = _line(
        dice,
        f"""
        compare {path} w.npz
        compare w.npz {path} --json
        compare {path} {path} --atol 1e-3
        convert {path} out
        convert {path} out.npz
        convert {path} out.h5
        convert {path} out.npy
        convert {path} out.pb
        run m.onnx -i x={path}{key}
        run m.onnx --inputs {path}
        """,
    )
    reads = (path, "w.npz", "m.onnx")
    return Command(line, reads, ("out", "out.npz", "out.h5", "out.npy", "out.pb"))


def npy(box: Box, dice: random.Random) -> Command:
    """An .npy whose header lies."""
    del box
    Path("i.npy").write_bytes(fuzz_containers.npy(dice))
    return _on_tensors("i.npy", dice)


def npz(box: Box, dice: random.Random) -> Command:
    """An .npz whose members, notes and directory lie."""
    if dice.random() < 0.1:
        fuzz_bases.copy(box.bases / "pack_npz", "pack")
        content = Path("pack/vectors.npz").read_bytes()
        Path("r.npz").write_bytes(fuzz_bytes.mutate(content, dice))
        return Command(("verify", "pack", "--results", "r.npz"), ("pack", "r.npz"))
    Path("i.npz").write_bytes(fuzz_containers.npz(dice))
    return _on_tensors("i.npz", dice)


def h5(box: Box, dice: random.Random) -> Command:
    """An HDF5 file with links, virtual and external data, odd types, and flipped bits."""
    if dice.random() < 0.1:
        fuzz_bases.copy(box.bases / "pack_h5", "pack")
        content = Path("pack/vectors.h5").read_bytes()
        Path("r.h5").write_bytes(fuzz_bytes.mutate(content, dice))
        return Command(("verify", "pack", "--results", "r.h5"), ("pack", "r.h5"))
    Path("i.h5").write_bytes(fuzz_containers.h5(dice))
    return _on_tensors("i.h5", dice)


def pb(box: Box, dice: random.Random) -> Command:
    """A serialized tensor, its fields and its bytes mutated."""
    del box
    message = TensorProto.FromString(dice.choice(fuzz_bases.tensors()))
    content = fuzz_protos.mutate(message, dice).SerializePartialToString()
    if dice.random() < 0.3:
        content = fuzz_bytes.mutate(content, dice)
    Path("i.pb").write_bytes(content)
    return _on_tensors("i.pb", dice)


def _case_folder(box: Box, dice: random.Random, name: str = "case") -> Path:
    case = dice.choice(("test_lstm_14_clip", "test_rnn_7_plain"))
    fuzz_bases.copy(box.bases / "pack_onnx" / case, name)
    return Path(name)


def folders(box: Box, dice: random.Random) -> Command:
    """An ONNX test-case folder, its files mutated, renamed, doubled and missing."""
    case = _case_folder(box, dice)
    for _ in range(dice.choice((1, 1, 2, 3))):
        files = [*filter(Path.is_file, sorted(case.rglob("*")))]
        if not files:
            break
        path = dice.choice(files)
        choice = dice.randrange(6)
        if choice == 0:
            path.unlink()
        elif choice == 1:
            new = dice.choice(
                (
                    "output_0.pb",
                    "input_99999999999999999999.pb",
                    "input_00.pb",
                    "output_-1.pb",
                    "input_\u0661.pb",
                    "model.onnx",
                    "a.onnx",
                    "\udcff.pb",
                    "input_1.pb",
                    ".onnx",
                    "x.npz",
                    "input_0.pb.pb",
                )
            )
            path.rename(path.with_name(new))
        elif choice == 2:
            sets = dice.choice(
                (
                    "test_data_set_1",
                    "test_data_set_999999999999",
                    "test_data_set_x",
                    "test_data_set_00",
                )
            )
            shutil.copytree(case / "test_data_set_0", case / sets, dirs_exist_ok=True) if (
                case / "test_data_set_0"
            ).is_dir() else None
        else:
            path.write_bytes(_mutated_file(path, dice))
    line = _line(
        dice,
        """
        run case
        run case --json -o out.npz
        run case --data-set 0
        run case/model.onnx --inputs case/test_data_set_0
        inspect case
        compare case case
        compare case/test_data_set_0 case
        convert case out
        convert case out.npz
        convert case out.h5
        extract case -o out
        """,
    )
    return Command(line, ("case",), ("out", "out.npz", "out.h5"))


def _mutated_file(path: Path, dice: random.Random) -> bytes:
    content = path.read_bytes()
    if dice.random() < 0.4 or not content:
        return fuzz_bytes.mutate(content, dice)
    try:
        message = (onnx.ModelProto if path.suffix == ".onnx" else TensorProto).FromString(content)
    except Exception:  # noqa: BLE001 -- mutated before, perhaps
        return fuzz_bytes.mutate(content, dice)
    return fuzz_protos.mutate(message, dice).SerializePartialToString()


def results(box: Box, dice: random.Random) -> Command:
    """A folder of results, its files mutated, renamed and missing; the pack is sound."""
    for kind, name in (("pack", "pack"), ("results", "r")):
        fuzz_bases.copy(box.bases / f"{kind}_onnx", name)
    for _ in range(dice.choice((1, 2, 4))):
        path = dice.choice(
            [*filter(Path.is_file, sorted(Path("r").rglob("output_*.pb")))] or [Path("r/x.pb")]
        )
        choice = dice.randrange(4)
        if not path.is_file():
            break
        if choice == 0:
            path.rename(
                path.with_name(
                    dice.choice(
                        (
                            "output_7.pb",
                            "output_99999999999999999999.pb",
                            "output_\u0663.pb",
                            "output_00.pb",
                        )
                    )
                )
            )
        elif choice == 1:
            path.unlink()
        else:
            path.write_bytes(_mutated_file(path, dice))
    line = _line(
        dice,
        """
        verify pack --results r
        verify pack --results r --json
        verify pack --results r --allow-refused
        verify pack --results r --trust
        verify pack --results r --junit out.xml
        verify pack --results r --markdown out.md
        """,
    )
    if dice.random() < 0.05:  # seeking a bug takes most of the time
        line = dice.choice((("diagnose", *line[1:4]), (*line, "--diagnose")))
    if dice.random() < 0.03:
        line = (*line, "--html", "out.html") if line[0] == "verify" else line
    return Command(line, ("pack", "r"), ("out.html", "out.xml", "out.md"))


# --- models ------------------------------------------------------------------------------------


def _model(dice: random.Random) -> onnx.ModelProto:
    return fuzz_protos.mutate(fuzz_protos.model_from(dice.choice(fuzz_bases.models())), dice)


def _on_model(path: str, dice: random.Random) -> Command:
    line = _line(
        dice,
        f"""
        run {path}
        run {path} --json
        run {path} --dim N=2
        run {path} -o out
        run {path} --compute native -o out.npz
        run {path} --save-inputs in.npz
        inspect {path}
        inspect {path} --json
        extract {path} -o out
        """,
    )
    return Command(line, ("m",), ("out", "out.npz", "in.npz"))


def models(box: Box, dice: random.Random) -> Command:
    """A model, any field of it mutated by its type; weights beside it perhaps."""
    del box
    os.mkdir("m")  # noqa: PTH102
    Path("m/w.bin").write_bytes(bytes(8))
    content = _model(dice).SerializePartialToString()
    if dice.random() < 0.15:
        content = fuzz_bytes.mutate(content, dice)
    Path("m/m.onnx").write_bytes(content)
    return _on_model("m/m.onnx", dice)


_FORMATS = {"textproto": "textproto", "json": "json", "onnxtxt": "onnxtxt"}


def texts(box: Box, dice: random.Random) -> Command:
    """A model in one of its text forms, mutated before and after it is written."""
    del box
    os.mkdir("m")  # noqa: PTH102
    Path("m/w.bin").write_bytes(bytes(8))
    suffix = dice.choice([*_FORMATS])
    proto = fuzz_protos.model_from(dice.choice(fuzz_bases.models()))
    if dice.random() < 0.5:
        proto = fuzz_protos.mutate(proto, dice)
    content = _written(proto, suffix)
    if suffix == "json" and dice.random() < 0.5:
        tree = fuzz_trees.mutate(json.loads(content), dice)
        content = fuzz_trees.write(tree).encode("utf-8", "surrogatepass")
    elif dice.random() < 0.8:
        content = fuzz_bytes.mutate_lines(content.decode("utf-8", "surrogateescape"), dice)
    path = f"m/m.{suffix}"
    Path(path).write_bytes(content)
    return _on_model(path, dice)


def _written(proto: onnx.ModelProto, suffix: str) -> bytes:
    """Write a model as text; one that cannot be written as the first sound one."""
    import warnings

    serializer = onnx.serialization.registry.get(_FORMATS[suffix])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return serializer.serialize_proto(proto)
        except Exception:  # noqa: BLE001 -- every format has its own
            return serializer.serialize_proto(fuzz_protos.model_from(fuzz_bases.models()[0]))


_MEMBERS = (
    "case/model.onnx",
    "model.onnx",
    "case/test_data_set_0/input_0.pb",
    "case/test_data_set_0/output_0.pb",
    "../canary.onnx",
    "/etc/x",
    "case/../../canary/model.onnx",
    "C:\\x.onnx",
    "case//model.onnx",
    "./model.onnx",
    "case/model.onnx/x",
    "case",
    "a/b/c/model.onnx",
    "case/readme.txt",
    "__MACOSX/._model.onnx",
)


def archives(box: Box, dice: random.Random) -> Command:
    """A zip or tar of a model's folder with members that lie about name, kind and size."""
    os.mkdir("m")  # noqa: PTH102
    case = box.bases / "pack_onnx" / "test_rnn_7_plain"
    members = {
        f"case/{path.relative_to(case)}": path.read_bytes()
        for path in sorted(case.rglob("*"))
        if path.is_file()
    }
    for _ in range(dice.choice((0, 1, 1, 3))):
        name = dice.choice((*_MEMBERS, str(dice.choice(fuzz_trees.TEXTS))[:3000]))
        members[name] = dice.choice(
            (b"", bytes(100), members["case/model.onnx"], fuzz_bases.tensors()[0])
        )
    if dice.random() < 0.3:
        members["case/model.onnx"] = _model(dice).SerializePartialToString()
    if dice.random() < 0.5:
        path, content = "m/a.zip", fuzz_containers.archive_zip(members, dice)
    else:
        content = fuzz_containers.archive_tar(members, dice)
        path = "m/a.tgz" if content[:2] == b"\x1f\x8b" else "m/a.tar"
    Path(path).write_bytes(content)
    return _on_model(path, dice)


# --- places ------------------------------------------------------------------------------------


def _to_canary(path: Path, box: Box, dice) -> None:
    names = (
        "canary",
        "canary.npz",
        "canary.h5",
        "canary.onnx",
        "canary.pb",
        "canary.txt",
        "canary.yaml",
        "canary/manifest.json",
    )
    path.symlink_to(dice.choice(box.outer) / dice.choice(names))


def _same_content_outside(path: Path, box: Box, dice) -> None:
    """A link to a file outside that is what it should be: only the path is wrong."""
    del dice
    path.symlink_to(
        box.outer[-1]
        / "canary"
        / ("model.onnx" if path.suffix == ".onnx" else "test_data_set_0/input_0.pb")
    )


def _to_inside(path: Path, box: Box, dice) -> None:
    del box
    path.symlink_to(
        dice.choice(
            (
                path.name,
                "../x",
                ".",
                "..",
                "model.onnx",
                "nowhere",
                "/proc/self/fd/0",
                "input_0.pb",
                path.name + "2",
            )
        )
    )


def _to_device(path: Path, box: Box, dice) -> None:
    del box
    path.symlink_to(
        dice.choice(
            (
                "/dev/zero",
                "/dev/stdin",
                "/dev/random",
                "/proc/self/mem",
                "/etc/passwd",
                "/dev/full",
                "/dev/tty",
            )
        )
    )


def _pipe(path: Path, _, __) -> None:
    os.mkfifo(path)


def _folder(path: Path, _, dice) -> None:
    path.mkdir()
    (path / "x").write_bytes(b"x") if dice.random() < 0.5 else None


def _sparse(path: Path, _, dice) -> None:
    path.touch()
    os.truncate(path, dice.choice((1 << 20, 1 << 31, 1 << 33, 1 << 40)))


def _socket(path: Path, _, __) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/cwd/{path}"[:100])


def _hard(path: Path, box: Box, _) -> None:
    os.link(box.outer[-1] / "canary.hard", path)


def _empty(path: Path, _, __) -> None:
    path.touch()


def _closed(path: Path, _, __) -> None:
    path.touch(0)


def _device(path: Path, _, __) -> None:
    try:
        os.mknod(path, 0o020644, os.makedev(1, 5))
    except OSError:
        path.symlink_to("/dev/zero")


PLACES = (
    _to_canary,
    _to_canary,
    _same_content_outside,
    _to_inside,
    _to_device,
    _pipe,
    _folder,
    _sparse,
    _socket,
    _hard,
    _empty,
    _closed,
    _device,
)
_NEW = (
    ".rnncli-journal",
    ".rnncli-journal.tmp",
    "manifest.json.tmp",
    ".rnncli-lock",
    "test_x",
    "test_new/model.onnx",
    "vectors.npz",
    "vectors.h5",
    "SHA256SUMS.tmp",
    "test_lstm_14_clip/readings/x",
)


def _misplace(root: Path, box: Box, dice: random.Random) -> None:
    """Put something else where a file or a folder is, or where one will be written."""
    below = sorted(root.rglob("*"))
    path = root / dice.choice(_NEW) if dice.random() < 0.2 else dice.choice(below or [root / "x"])
    if not path.parent.resolve().is_relative_to(box.path.resolve()):
        return  # below a link that was planted before
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.exists() or path.is_symlink():
        path.unlink()
    with contextlib.suppress(OSError):  # the place may be below one that was changed before
        path.parent.mkdir(parents=True, exist_ok=True)
        dice.choice(PLACES)(path, box, dice)


def _in_pack(box: Box, dice: random.Random) -> tuple[Command, Path]:
    _, layout = _copy_pack(box, dice)
    return on_pack(box, dice, layout), Path("pack")


def _in_unfinished(box: Box, dice: random.Random) -> tuple[Command, Path]:
    pack, _ = _copy_pack(box, dice, "onnx")
    shutil.copy(box.bases / "journal", "pack/.rnncli-journal")
    if dice.random() < 0.7:
        (pack / "manifest.json").unlink()
    suite = str(box.bases / "tiny.yaml")
    return Command(("generate", suite, "-o", "pack"), ("pack", suite), ("pack",)), pack


def _in_results(box: Box, _: random.Random) -> tuple[Command, Path]:
    for kind, name in (("pack", "pack"), ("results", "r")):
        fuzz_bases.copy(box.bases / f"{kind}_onnx", name)
    return Command(("verify", "pack", "--results", "r"), ("pack", "r")), Path("r")


def _in_config(box: Box, _: random.Random) -> tuple[Command, Path]:
    del box
    Path("c").mkdir()
    Path("c/c.yaml").write_text(fuzz_bases.CONFIG)
    return Command(("run", "c/c.yaml"), ("c",)), Path("c/c0.npz")


def _in_model(box: Box, dice: random.Random) -> tuple[Command, Path]:
    """Weights beside a model."""
    del box
    Path("m").mkdir()
    Path("m/m.onnx").write_bytes(fuzz_bases.models()[7])
    return _on_model("m/m.onnx", dice), Path("m/w.bin")


def _in_case(box: Box, dice: random.Random) -> tuple[Command, Path]:
    case = _case_folder(box, dice)
    line = _line(
        dice,
        """
        run case
        compare case case
        convert case out.npz
        extract case -o out
        inspect case
        """,
    )
    return Command(line, ("case",), ("out", "out.npz")), case


def _in_output(box: Box, dice: random.Random) -> tuple[Command, Path]:
    """A folder that is written to, in which somebody has planted something."""
    case = _case_folder(box, dice)
    shutil.copytree(case, "out")
    fuzz_bases.copy(box.bases / "pack_onnx", "pack")
    suite = str(box.bases / "tiny.yaml")
    line = _line(
        dice,
        f"""
        run case -o out
        run case case/model.onnx -o out --format npz
        convert case out
        convert pack out
        extract case -o out
        generate {suite} -o out
        """,
    )
    return Command(line, ("case", "pack", suite), ("out",)), Path("out")


_WHERE = (
    *(_in_pack, _in_pack, _in_unfinished, _in_results, _in_case, _in_config, _in_model, _in_output),
)


def places(box: Box, dice: random.Random) -> Command:
    """Links, pipes, devices, folders, sparse and closed files in the place of any file."""
    command, place = dice.choice(_WHERE)(box, dice)
    if not place.is_dir():
        dice.choice(PLACES)(place, box, dice)
        return command
    for _ in range(dice.choice((1, 1, 2, 3))):
        _misplace(place, box, dice)
    return command


# --- lists -------------------------------------------------------------------------------------


def lists(box: Box, dice: random.Random) -> Command:
    """Known failures and lists of targets: lines of ids, patterns, reasons and paths."""
    fuzz_bases.copy(box.bases / "pack_onnx", "pack")
    os.mkdir("m")  # noqa: PTH102
    Path("m/m.onnx").write_bytes(fuzz_bases.models()[4])
    if dice.random() < 0.5:
        text = "# known\nrnn_7_plain  is wrong\nlstm_*  is, too\n\n[a-z]*  reason\n"
        content = fuzz_bytes.mutate_lines(text, dice)
        Path("known.txt").write_bytes(content)
        results = str(box.bases / "results_onnx")
        arguments = ("verify", "pack", "--results", results, "--xfails", "known.txt")
        return Command(arguments, ("pack", "known.txt", results))
    text = "m/m.onnx\nm/m.onnx\npack/test_rnn_7_plain\n"
    content = fuzz_bytes.mutate_lines(text, dice)
    Path("list.txt").write_bytes(content)
    source = dice.choice(("list.txt", "-"))
    arguments = ("run", "--from", source, *dice.choice(((), ("-o", "out"), ("--json",))))
    return Command(arguments, ("/",), ("out",), content if source == "-" else b"")


FAMILIES: Mapping[str, Make] = {
    make.__name__: make
    for make in (
        *(manifests, journals, sums, configs, suites, npy, npz, h5, pb, folders, results),
        *(models, texts, archives, places, lists),
    )
}


def outcomes(family: str, box: Box, seed: int, numbers: Iterable[int]) -> list[Outcome]:
    """Run inputs of a family by their numbers."""
    fuzz_bases.preload()
    return [*Series(FAMILIES[family], family, box, seed).run(numbers)]
