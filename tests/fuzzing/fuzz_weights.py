"""Files of recurrent weights as libraries name them, with odd tensors and spoilt bytes."""

from __future__ import annotations

import json
import struct
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fuzz_bytes
import fuzz_containers
import fuzz_trees
import numpy as np
from fuzz_process import Box, Command

from rnncli.files.formats import write_tensors
from rnncli.models.weights import RecurrentLayer, to_keras, to_openvino, to_torch

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

Tensors = dict[str, np.ndarray]

LIBRARIES: Mapping[str, Callable[[list[RecurrentLayer]], Tensors]] = {
    "torch": to_torch,
    "keras": to_keras,
    "openvino": to_openvino,
}


def _plain(path: Path, tensors: Tensors, _: random.Random) -> None:
    write_tensors(path, tensors)


def _safetensors(path: Path, tensors: Tensors, dice: random.Random) -> None:
    """Write a header of JSON and the elements one after the other."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    content = b""
    for name, values in tensors.items():
        kind = f"{values.dtype.kind.upper()}{8 * values.dtype.itemsize}".replace("B8", "BOOL")
        offsets = [len(content), len(content) + values.nbytes]
        header[name] = {"dtype": kind, "shape": [*values.shape], "data_offsets": offsets}
        content += values.tobytes()
    if dice.random() < 0.3:
        header = fuzz_trees.mutate(header, dice)
    text = fuzz_trees.write(header).encode("utf-8", "surrogatepass")
    path.write_bytes(struct.pack("<Q", len(text)) + text + content)


def _keras(path: Path, tensors: Tensors, dice: random.Random) -> None:
    """Write an archive of Keras 3: the settings of its layers in JSON, the weights in HDF5."""
    owners = {name.split("/")[0]: name.split("/")[-2] for name in tensors if "/" in name}
    kinds = {"lstm_cell": "LSTM", "gru_cell": "GRU", "simple_rnn_cell": "SimpleRNN"}
    layers = [
        {
            "class_name": "Bidirectional",
            "config": {
                "merge_mode": "concat",
                "layer": {"class_name": kinds.get(cell, "LSTM"), "config": {"units": 2}},
            },
        }
        for cell in owners.values()
    ]
    config: Any = {"class_name": "Sequential", "config": {"name": "m", "layers": layers}}
    if dice.random() < 0.5:
        config = fuzz_trees.mutate(config, dice)
    stored = {_place_in_archive(name): values for name, values in tensors.items()}
    write_tensors(Path("model.weights.h5"), stored)
    members = {
        "metadata.json": b"{}",
        "config.json": fuzz_trees.write(config).encode("utf-8", "surrogatepass"),
        "model.weights.h5": Path("model.weights.h5").read_bytes(),
    }
    if dice.random() < 0.2:
        path.write_bytes(fuzz_containers.archive_zip(members, dice))
        return
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def _place_in_archive(name: str) -> str:
    """Return the path that a variable has in an archive, from that in a model."""
    owner, *middle, variable = name.split("/")
    numbers = {"kernel": "0", "recurrent_kernel": "1", "bias": "2"}
    turn = [f"{part.split('_')[0]}_layer" for part in middle if "ward_" in part]
    return "/".join(["layers", owner, *turn, "cell", "vars", numbers.get(variable, variable)])


# Extension -> what writes a file of it, and the libraries whose weights people keep in one.
FORMATS: Mapping[str, tuple[Callable[[Path, Tensors, random.Random], None], tuple[str, ...]]] = {
    ".npz": (_plain, (*LIBRARIES,)),
    ".h5": (_plain, (*LIBRARIES,)),
    ".safetensors": (_safetensors, (*LIBRARIES,)),
    ".keras": (_keras, ("keras",)),
}
LARGEST = 1 << 12  # elements of a tensor


@cache
def _sound(library: str, gates: int, layers: int) -> str:
    """Return dtype and shape of the tensors of a library, by name, as JSON."""
    H = 2
    stack = [
        RecurrentLayer(
            W=np.ones((2, gates * H, 2 * H if number else 3), np.float32),
            R=np.ones((2, gates * H, H), np.float32),
            B=np.ones((2, 2 * gates * H), np.float32),
            direction="bidirectional",
            linear_before_reset=int(gates == 3),
        )
        for number in range(layers)
    ]
    tensors = LIBRARIES[library](stack)
    return json.dumps({name: [str(v.dtype), *v.shape] for name, v in tensors.items()})


def _tensors(tree: Any, dice: random.Random) -> Tensors:
    """Return tensors of the dtypes and shapes of a tree, leaving out what is none."""
    found: Tensors = {}
    for name, described in tree.items() if isinstance(tree, dict) else ():
        try:
            kind, *shape = described
            size = int(np.prod([int(dim) for dim in shape], dtype=object))
            values = [dice.choice((0.5, -1.0, float("nan"), 1e30)) for _ in range(3)]
            if size <= LARGEST and np.dtype(kind).kind in "fiub":
                found[name] = np.resize(values, shape).astype(kind)
        except (TypeError, ValueError, OverflowError):
            continue
    return found


def weights(box: Box, dice: random.Random) -> Command:
    """Weights in a file, renamed, reshaped, of other dtypes; or the file's bytes mutated."""
    del box
    suffix = dice.choice([*FORMATS])
    writer, libraries = FORMATS[suffix]
    library = dice.choice(libraries)
    sound = json.loads(_sound(library, dice.choice((1, 3, 4)), dice.choice((1, 1, 2))))
    path = Path(f"w{suffix}")
    tree = json.loads(json.dumps(sound))
    if is_spoilt := dice.random() < 0.7:
        tree = fuzz_trees.mutate(tree, dice, mild=dice.random() < 0.7)
    with np.errstate(all="ignore"):
        try:
            writer(path, _tensors(tree, dice), dice)
        except Exception:  # noqa: BLE001 -- each format has names that it cannot hold
            writer(path, _tensors(sound, dice), dice)
    if not is_spoilt or dice.random() < 0.1:
        path.write_bytes(fuzz_bytes.mutate(path.read_bytes(), dice))
    return _on_weights(str(path), library, dice)


def _on_weights(path: str, library: str, dice: random.Random) -> Command:
    to = dice.choice(("onnx", "onnx", *LIBRARIES))
    out = "out.onnx" if to == "onnx" else dice.choice(("out.npz", "out.h5"))
    more = dice.choice((*((),) * 6, ("--cell", "GRU"), ("--activation", "relu"), ("--module", "x")))
    line = ("convert", path, out, "--from", library, "--to", to, *more)
    return Command(line, (path,), (out,))
