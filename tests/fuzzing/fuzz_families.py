"""The families of inputs, each a function that builds one input and says what to run on it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import fuzz_bases
import fuzz_bytes
import fuzz_containers
import fuzz_protos
import fuzz_trees
import onnx
from fuzz_ir import ir
from fuzz_judge import judge
from fuzz_messages import messages
from fuzz_places import PLACES, misplace
from fuzz_process import Box, Command, Outcome, Series, always, never
from fuzz_reports import reports
from fuzz_weights import weights
from onnx import TensorProto

Make = Callable[[Box, random.Random], Command]


def _line(dice: random.Random, lines: str) -> tuple[str, ...]:
    """Choose one of some command lines."""
    return tuple(dice.choice(lines.strip().splitlines()).split())


# --- packs -------------------------------------------------------------------------------------


def _copy_pack(box: Box, dice: random.Random, layout: str | None = None) -> tuple[Path, str]:
    layout = layout or dice.choice(("onnx", "onnx", *fuzz_bases.LAYOUTS))
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


def _subject(
    box: Box, dice: random.Random, layout: str, *, is_partly: bool = True
) -> tuple[str, Callable[[], bool]]:
    """Return the results of a subject, and whether they are green if they are called right.

    Args:
        box: where bases are.
        dice: decides.
        layout: of the pack.
        is_partly: whether it may be the one that is wrong in a single output.
    """
    kinds = (fuzz_bases.RIGHT, fuzz_bases.WRONG, fuzz_bases.PARTLY)[: 2 + is_partly]
    kind = dice.choice(kinds)
    path = box.bases / f"{kind}_{layout}" / one_file(layout)
    return str(path), never if kind == fuzz_bases.RIGHT else always


def one_file(layout: str) -> str:
    """Return the name of the file in a folder of results, if it is one."""
    return f"vectors.{layout}" if layout in {"npz", "h5"} else ""


def on_pack(
    box: Box, dice: random.Random, layout: str = "onnx", *, is_partly: bool = True
) -> Command:
    """Return a command that reads the pack in `pack`, and whatever else it needs.

    Args:
        box: where bases are.
        dice: decides.
        layout: of the pack.
        is_partly: whether a subject that is wrong in one output of `PARTLY_WRONG` is wrong still.
    """
    answers, is_green = _subject(box, dice, layout, is_partly=is_partly)
    good = answers
    if dice.random() < 0.05:
        answers, is_green = f"pack/{one_file(layout)}", never
    json_ = dice.choice(((), ("--json",)))
    trust = dice.choice(((), ("--trust",)))
    suite = str(box.bases / "tiny.yaml")
    sound = str(box.bases / f"pack_{layout}")
    reads = ("pack", good, suite, sound)
    to = dice.choice(("onnx", "npz", "h5", "raw", "c", "hex"))
    pages = ("--markdown", "out.md", "--junit", "out.xml", "--html", "out.html")
    rows: tuple[tuple[float, tuple[str, ...], tuple[str, ...]], ...] = (
        (3, ("inspect", "pack", *json_), ()),
        (2, ("list", "pack", *json_), ()),
        (4, ("verify", "pack", "--results", answers, "--allow-missing", *json_, *trust), ()),
        (0.2, ("verify", "pack", "--results", answers, *pages), ("out.md", "out.xml", "out.html")),
        (1, ("verify", "pack", "--results", answers, "--trust", "--profile", "strict"), ()),
        (4, ("convert", "pack", "out", "--format", to), ("out",)),
        (2, ("run", "pack", *json_), ()),
        (1, ("run", "pack", "-o", "out"), ("out",)),
        (1, ("score", "pack", *json_), ()),
        (0.5, ("trace", "pack", "--complete", *json_), ()),
        (0.3, ("list", "pack", "--statements", "--json"), ()),
        (0.5, ("diagnose", "pack", "--results", answers, *trust), ()),
        (0.5, ("compare", "pack", sound), ()),
        (0.5, ("generate", suite, "-o", "pack"), ("pack",)),
        (0.3, ("generate", suite, "-o", "pack", "--check"), ()),
        (0.01, ("verify", "pack", "--backend", "numpy", *trust), ()),
        (0.05, ("relate", "pack", "--backend", "numpy", *trust), ()),
    )
    _, arguments, writes = dice.choices(rows, [row[0] for row in rows])[0]
    return Command(
        arguments, reads, writes, is_green=is_green if "--results" in arguments else never
    )


def _forget(tree: dict, dice: random.Random) -> None:
    """Leave files out of the checksums of every case."""
    is_any = dice.random() < 0.5
    for case in tree["cases"]:
        case["files"] = {p: of for p, of in case["files"].items() if is_any and dice.random() < 0.5}


def _on_replaced(box: Box, digest: str) -> Command:
    """Judge by expected values that were replaced by a subject's own, against the digest."""
    answers = str(box.bases / f"{fuzz_bases.PARTLY}_onnx")
    shutil.copytree(answers, "pack", dirs_exist_ok=True)
    line = ("verify", "pack", "--results", answers, "--pack-digest", digest)
    return Command(line, ("pack", answers), is_green=always)


def _still_wrong(box: Box, layout: str, content: bytes) -> bool:
    """Whether the case that `PARTLY` is wrong in stands in a manifest as it did."""
    sound = json.loads(fuzz_bases.text(box.bases / f"pack_{layout}" / "manifest.json"))
    try:
        cases = json.loads(content)["cases"]
    except (ValueError, RecursionError, TypeError, KeyError):
        return False
    wanted = [each for each in sound["cases"] if each["id"] == fuzz_bases.PARTLY_WRONG]
    return isinstance(cases, list) and wanted[0] in cases


# Entries of a case -> values that the schema of manifests allows, whatever they mean together.
_VALUES: Mapping[str, tuple[Any, ...]] = {
    "operator": ("RNN-7", "GRU-14", "LSTM-22", "webnn.gru", "LSTMSequence-5", "GRUCell-3"),
    "dtype": ("float16", "bfloat16", "float64", "int32", "string"),
    "opset": (0, 1, 7, 99, (1 << 63) - 1),
    "domain": ("", "webnn", "com.microsoft", "x"),
    "expect": ("result", "rejection"),
    "golden": ({"kind": "none"}, {"kind": "float64"}, {"kind": "certified"}),
    "weights": ("inputs", "initializers"),
    "profile": ("", "strict", "x"),
    "alternatives": ([], ["clip-scope=gates"], ["zero-length=initial", "threshold-tie=gt"]),
    "steps": ([], ["gate_i"], ["state_H", "x"]),
    "inputs": ([], ["X"], ["X", "W", "R"], ["X", "W", "R", "P", "initial_c"], ["R", "W", "X"]),
    "outputs": ([], ["Y"], ["Y_h", "Y"], ["Y_c"]),
    "tolerance": ({}, {"Y": {"rtol": 0, "atol": 1e300}}),
    "tags": (["reading:x"], ["non-portable"]),
}
_NUMBERS = (0, 1, -1, 2, 7, 1.5, 1e300, 1 << 40, (1 << 63) - 1)
_OTHERS = (True, "", "x", "nan", "inf", "forward", "reverse", "bidirectional", [], [1, 2], ["Tanh"])
_ENTRIES: Mapping[str, tuple[tuple[str, ...], tuple[Any, ...]]] = {
    "attributes": (
        ("hidden_size", "direction", "layout", "clip", "activations", "activation_alpha", "x"),
        (*_NUMBERS, *_OTHERS, ["Sigmoid", "Tanh", "Tanh"], ["Affine"] * 3, ["inf"] * 3),
    ),
    "sizes": (
        ("seq_length", "batch_size", "input_size", "hidden_size", "x"),
        _NUMBERS[:2] + _NUMBERS[3:5],
    ),
    "readings": (("clip-scope", "zero-length", "peephole-o", "x"), ("gates", "previous", "", "x")),
    "requirements": (
        ("dtype", "direction", "layout", "weights", "largest_size", "activations", "opset"),
        (*_NUMBERS, "inputs", "reverse", "float16", ["Tanh"], []),
    ),
}


def _reworded(tree: dict, dice: random.Random) -> None:
    """Give entries of a case values that follow the schema, and may contradict others."""
    case = dice.choice(tree["cases"])
    for _ in range(dice.choice((1, 1, 2, 3))):
        name = dice.choice([*_VALUES, *[*_ENTRIES] * 4])
        if name in _VALUES:
            case[name] = dice.choice(_VALUES[name])
        elif dice.random() < 0.15 and case[name]:
            del case[name][dice.choice([*case[name]])]
        else:
            known, values = _ENTRIES[name]
            case[name][dice.choice(known)] = dice.choice(values)


def manifests(box: Box, dice: random.Random) -> Command:
    """A manifest mutated by type, its digest made right, in every layout."""
    pack, layout = _copy_pack(box, dice)
    tree = fuzz_bases.tree(fuzz_bases.text(box.bases / f"pack_{layout}" / "manifest.json"))
    is_replaced = layout == "onnx" and dice.random() < 0.1
    if is_replaced and dice.random() < 0.7:
        _forget(tree, dice)
    elif dice.random() < 0.35:
        _rename(tree, dice)
    elif dice.random() < 0.15:
        _altered_member(tree, pack, dice)
    if dice.random() < 0.5:
        _reworded(tree, dice)
    elif dice.random() < 0.7:
        tree = fuzz_trees.mutate(tree, dice)
    content, digest = fuzz_bases.sealed(tree)
    if dice.random() < 0.03:
        content = fuzz_bytes.mutate(content, dice)
    (pack / "manifest.json").write_bytes(content)
    with contextlib.suppress(TypeError, KeyError, AttributeError, ValueError):
        (pack / "SHA256SUMS").write_text(_sums(tree))
    _prepare(dice)
    if is_replaced:
        return _on_replaced(box, digest)
    return on_pack(box, dice, layout, is_partly=_still_wrong(box, layout, content))


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
    line = ("generate", suite, "-o", "pack", *more)
    # The pack is that of a suite which is scored: it is never what this one makes.
    is_green = always if "--check" in more else never
    return Command(line, ("pack", suite), ("pack",), is_green=is_green)


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
        compare {path} w.npz --atol 1e-3
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


def _on_single_file(box: Box, dice: random.Random, layout: str) -> Command:
    """Judge results of all cases in one file, its bytes mutated."""
    answers, is_green = _subject(box, dice, layout)
    Path(f"r.{layout}").write_bytes(fuzz_bytes.mutate(Path(answers).read_bytes(), dice))
    pack = str(box.bases / f"pack_{layout}")
    line = ("verify", pack, "--results", f"r.{layout}")
    return Command(line, (pack, f"r.{layout}"), is_green=is_green)


def npz(box: Box, dice: random.Random) -> Command:
    """An .npz whose members, notes and directory lie."""
    if dice.random() < 0.1:
        return _on_single_file(box, dice, "npz")
    Path("i.npz").write_bytes(fuzz_containers.npz(dice))
    return _on_tensors("i.npz", dice)


def h5(box: Box, dice: random.Random) -> Command:
    """An HDF5 file with links, virtual and external data, odd types, and flipped bits."""
    if dice.random() < 0.1:
        return _on_single_file(box, dice, "h5")
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


def _case_folder(box: Box, dice: random.Random) -> tuple[Path, str]:
    """Copy the folder of a case to `case`; return it, and the name it had."""
    name = dice.choice(("test_lstm_14_clip", "test_rnn_7_plain"))
    fuzz_bases.copy(box.bases / "pack_onnx" / name, "case")
    return Path("case"), name


def folders(box: Box, dice: random.Random) -> Command:
    """An ONNX test-case folder, its files mutated, renamed, doubled and missing."""
    case, name = _case_folder(box, dice)
    sound = str(box.bases / "pack_onnx" / name)
    is_wrong = dice.random() < 0.5
    if is_wrong:
        shutil.copytree(box.bases / f"{fuzz_bases.WRONG}_onnx" / name, case, dirs_exist_ok=True)
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
        compare case/test_data_set_0 case
        compare case SOUND
        compare SOUND case
        convert case out
        convert case out.npz
        convert case out.h5
        extract case -o out
        """.replace("SOUND", sound),
    )
    is_green = never
    if is_wrong and (line[:2] == ("run", "case") or sound in line):
        is_green = _has_outputs if line[0] == "run" else always
    return Command(line, ("case", sound), ("out", "out.npz", "out.h5"), is_green=is_green)


def _has_outputs() -> bool:
    """Whether an output that a run has to be compared with is where one is looked for."""
    return any(Path("case/test_data_set_0").glob("output_?.pb"))


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
    answers, is_green = _subject(box, dice, "onnx")
    fuzz_bases.copy(box.bases / "pack_onnx", "pack")
    fuzz_bases.copy(Path(answers), "r")
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
            path.unlink() if dice.random() < 0.5 else shutil.rmtree(dice.choice(path.parents[:2]))
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
    writes = ("out.html", "out.xml", "out.md")
    return Command(line, ("pack", "r"), writes, is_green=is_green)


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


def _in_results(box: Box, dice: random.Random) -> tuple[Command, Path]:
    fuzz_bases.copy(box.bases / "pack_onnx", "pack")
    answers, is_green = _subject(box, dice, "onnx")
    fuzz_bases.copy(Path(answers), "r")
    line = ("verify", "pack", "--results", "r")
    return Command(line, ("pack", "r"), is_green=is_green), Path("r")


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
    case, _ = _case_folder(box, dice)
    sound = str(box.bases / "pack_onnx" / "test_rnn_7_plain")
    line = _line(
        dice,
        f"""
        run case
        compare case {sound}
        convert case out.npz
        extract case -o out
        inspect case
        """,
    )
    return Command(line, ("case", sound), ("out", "out.npz")), case


def _in_output(box: Box, dice: random.Random) -> tuple[Command, Path]:
    """A folder that is written to, in which somebody has planted something."""
    case, _ = _case_folder(box, dice)
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
        misplace(place, box, dice)
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
        results = str(box.bases / "right_onnx")
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
        *(models, texts, archives, places, lists, messages, reports, judge, ir, weights),
    )
}


def outcomes(family: str, box: Box, seed: int, numbers: Iterable[int]) -> list[Outcome]:
    """Run inputs of a family by their numbers."""
    fuzz_bases.preload()
    return [*Series(FAMILIES[family], family, box, seed).run(numbers)]
