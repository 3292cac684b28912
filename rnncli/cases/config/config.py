"""From a YAML config to a case: every key checked, every default decided, every finding placed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rnncli.cases.case import Case, Filling, GivenValues, describe
from rnncli.cases.config.keys import ConfigKeys
from rnncli.cases.config.shapes import Frame, frame_of
from rnncli.cases.fills import Blank
from rnncli.cases.yaml_reader import YamlNode, parse_yaml, read_yaml
from rnncli.errors import ConfigError, Place
from rnncli.numerics import DType, dtype_named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.numerics import Array
    from rnncli.operators import Input, Operator

__all__ = ["Case", "describe", "findings", "load_config", "parse_config", "read_case"]


def load_config(path: str | Path, *, seed: int | None = None) -> Case:
    """Read a config file; the case is named by the file's stem.

    Args:
        path: the file; other files it names lie relative to it.
        seed: replaces the file's.

    Raises:
        ConfigError: the file is wrong; every finding has its place.
        UnreadableFile: it cannot be read.
    """
    path = Path(path)
    return read_case(read_yaml(path), path.stem, path.parent, seed=seed)


def parse_config(source: bytes | str, name: str, *, seed: int | None = None) -> Case:
    """Read the text of a config, for example of standard input.

    Args:
        source: the text, or its UTF-8 bytes; files it names lie in the working folder.
        name: what messages call it, for example ``<stdin>``; without brackets and suffix, the
            name of the case.
        seed: replaces the text's.

    Raises:
        ConfigError: the text is wrong; every finding has its place.
        UnreadableFile: it is larger than 1 MiB.
    """
    return read_case(parse_yaml(source, name), Path(name.strip("<>")).stem, Path(), seed=seed)


def findings(path: str | Path) -> list[tuple[Place, str]]:
    """Return everything that is wrong with a config file, in the order of the file.

    Raises:
        UnreadableFile: it cannot be read.
    """
    try:
        load_config(path)
    except ConfigError as error:
        return list(error.findings)
    return []


def read_case(
    root: YamlNode, name: str, folder: Path, *, seed: int | None = None, key: str = ""
) -> Case:
    """Read a case from YAML that was read before.

    Args:
        root: the mapping that describes it.
        name: of the case.
        folder: where the files it names lie.
        seed: replaces the mapping's.
        key: what tells its random inputs from those of other cases with the same seed; nothing
            does for a config, whose inputs depend on its contents alone.

    Raises:
        ConfigError: it is wrong; every finding has its place.
    """
    config = ConfigKeys(root)
    operator = config.operator()
    if operator is None:  # nothing else can be judged
        config.findings.raise_any()
    assert operator is not None
    sizes, dtype = config.sizes(operator), config.dtype(operator)
    attributes = config.attributes(operator, sizes)
    outputs, readings = config.outputs(operator), config.readings()
    summary, written_seed = config.summary(), config.seed()
    seed = written_seed if seed is None else seed
    frame = frame_of(operator, sizes, attributes)
    if frame is not None and not config.fits(operator, frame, outputs):
        frame = None
    blanks = _blanks(operator, frame, dtype, seed) if frame else {}
    sources = config.sources(operator, blanks, folder)
    arrays = _stand_ins(operator, blanks, sources, key)
    config.check(operator, attributes, arrays, outputs, readings)
    config.findings.raise_any()
    return Case(
        name=name,
        key=key,
        operator=operator,
        summary=summary,
        sizes=sizes,
        dtype=dtype,
        attributes=attributes,
        sources=sources,
        blanks={name: blanks[name] for name in sources},
        outputs=tuple(outputs),
        readings={**operator.readings, **readings},
        seed=seed,
        root=root,
    )


def _blanks(operator: Operator, frame: Frame, dtype: DType, seed: int) -> dict[str, Blank]:
    return {
        row.name: Blank(
            shape=frame.shape(row),
            dims=frame.names(row),
            dtype=_element_type(row, dtype),
            seed=seed,
            name=row.name,
            seq_length=frame.sizes["seq_length"],
        )
        for row in operator.inputs
    }


def _element_type(row: Input, dtype: DType) -> DType:
    """Return what an input is made of: the case's dtype, or int32 where only integers may be."""
    if not row.dtypes:
        return dtype
    return dtype_named("int32" if "int32" in row.dtypes else row.dtypes[0])


_ZERO = bytes(16)  # as wide as the widest element


def _one_zero(blank: Blank) -> Array:
    """Return an array of any shape that takes no memory."""
    strides = (0,) * len(blank.shape)
    return np.ndarray(blank.shape, blank.dtype.numpy, _ZERO, strides=strides)


def _stand_ins(
    operator: Operator,
    blanks: Mapping[str, Blank],
    sources: Mapping[str, Filling | GivenValues],
    key: str,
) -> dict[str, Array]:
    """Return what the operator is to check: lengths themselves, of other inputs only a shape.

    A required input that was not understood is there as well, so that the rest can be checked.
    """
    required = [row.name for row in operator.inputs if not row.optional]
    shapes = {
        name: _one_zero(blank)
        for name, blank in blanks.items()
        if blank.dtype.is_float and (name in sources or name in required)
    }
    lengths = {
        name: source.arrays(blanks[name], [key])[0]
        for name, source in sources.items()
        if name in blanks and not blanks[name].dtype.is_float
    }
    return {**shapes, **lengths}
