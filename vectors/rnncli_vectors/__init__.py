"""Conformance vectors for RNN, GRU, LSTM and linear attention, as files.

`rnncli_vectors.path("core") / "test_gru_14_clip" / "model.onnx"` is the model of a case.
"""

from pathlib import Path

__all__ = ["names", "path"]
__version__ = "0.1.0"

_HERE = Path(__file__).resolve().parent


def _folder() -> Path:
    """Return the folder of the packs: this package, or, in a checkout, the one around it."""
    return _HERE if (_HERE / "judge.c").is_file() else _HERE.parent


def names() -> "list[str]":
    """Return the names of the packs."""
    return sorted(manifest.parent.name for manifest in _folder().glob("*/manifest.json"))


def path(name: str) -> Path:
    """Return the folder of a pack, or the file judge.c.

    Raises:
        ValueError: there is none of this name.
    """
    if name != "judge.c" and name not in names():
        raise ValueError(f"no pack {name!r}; there are {', '.join(names())}")
    return _folder() / name
