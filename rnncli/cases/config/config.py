"""Reading of configs: from YAML to a checked case, with the place of every finding."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rnncli.cases.case import Case, describe
from rnncli.cases.config.case_shapes import frame_of
from rnncli.cases.config.keys import ConfigKeys
from rnncli.cases.fills import Blank
from rnncli.cases.yaml_reader import YamlNode, parse_yaml, read_yaml
from rnncli.errors import ConfigError, Place
from rnncli.operators.unit import readings_of

__all__ = ["Case", "describe", "findings", "load_config", "parse_config", "read_case"]


def load_config(path: str | Path, *, seed: int | None = None) -> Case:
    """Read a config file; the case is named after the file's stem.

    Args:
        path: the file; other files that it names are relative to it.
        seed: replaces the file's.

    Raises:
        ConfigError: the file is wrong; every finding has a place.
        UnreadableFile: it cannot be read.
    """
    path = Path(path)
    return read_case(read_yaml(path), path.stem, path.parent, seed=seed)


def parse_config(source: bytes | str, name: str, *, seed: int | None = None) -> Case:
    """Read the text of a config, for example of standard input.

    Args:
        source: the text, or its UTF-8 bytes; files that it names are in the working folder.
        name: the name in messages, for example ``<stdin>``; without brackets and suffix, the name
            of the case.
        seed: replaces the text's.

    Raises:
        ConfigError: the text is wrong; every finding has a place.
        UnreadableFile: it is larger than 1 MiB.
    """
    return read_case(parse_yaml(source, name), Path(name.strip("<>")).stem, Path(), seed=seed)


def findings(path: str | Path) -> list[tuple[Place, str]]:
    """Return all findings about a config file, in file order.

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
    """Return the case of parsed YAML.

    The key distinguishes its random inputs from those of other cases with the same seed; it is ""
    for a config, whose inputs depend only on its content. A seed replaces the mapping's.

    Raises:
        ConfigError: it is wrong; every finding has a place.
    """
    config = ConfigKeys(root)
    operator = config.operator()
    if operator is None:  # nothing else can be checked
        config.findings.raise_any()
    assert operator is not None
    sizes = config.sizes(operator)
    dtypes = config.dtypes(operator)
    attributes = config.attributes(operator, sizes)
    outputs, readings = config.outputs(operator, attributes), config.readings()
    summary, written_seed = config.text("summary"), config.value("seed")
    seed = written_seed if seed is None else seed
    frame = frame_of(operator, sizes, attributes, config.choice("scales", operator))
    blanks = {}
    if frame is not None and config.fits(operator, frame, outputs):
        blanks = {
            row.name: Blank(
                shape=frame.shape(row),
                dims=frame.names(row),
                dtype=dtypes[row.kind],
                seed=seed,
                name=row.name,
                seq_length=frame.sizes["seq_length"],
            )
            for row in operator.inputs
        }
    sources = config.sources(operator, blanks, folder)

    # Inputs for the operator's checks: lengths as they are, others without memory. Required inputs
    # with findings are included, so that the rest can be checked.
    required = [row.name for row in operator.inputs if not row.optional]
    arrays = {
        name: np.broadcast_to(np.zeros((), blank.dtype.numpy), blank.shape)
        for name, blank in blanks.items()
        if blank.dtype.is_float and (name in sources or name in required)
    }
    arrays |= {
        name: source.arrays(blanks[name], [key])[0]
        for name, source in sources.items()
        if name in blanks and not blanks[name].dtype.is_float
    }
    unit = config.unit(operator)
    config.check(operator, attributes, arrays, outputs, readings, unit=unit)
    if unit:
        config.check_unit(operator, unit, arrays, outputs)
    config.findings.raise_any()
    return Case(
        name=name,
        key=key,
        operator=operator,
        summary=summary,
        sizes=frame.without_directions if frame else sizes,
        dtype=dtypes["values"],
        attributes=attributes,
        sources=sources,
        blanks={name: blanks[name] for name in sources},
        outputs=tuple(outputs),
        readings={**readings_of(operator, is_unit=bool(unit)), **readings},
        seed=seed,
        root=root,
        unit=unit,
    )
