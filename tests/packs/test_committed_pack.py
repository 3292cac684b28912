"""Claims about committed packs: current, small, and read by people who have no rnncli."""

import itertools
import re
import struct
from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml

from rnncli.cases.suite.suite import load_suite
from rnncli.cases.yaml_reader import as_yaml
from rnncli.generating.generation import GenerationPlan, check
from rnncli.operators import operator_named
from rnncli.operators.attributes import complete, resolve_activations
from rnncli.packs.conversion import convert_pack
from rnncli.packs.layouts import ONNX
from rnncli.packs.pack import open_pack
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.reports.inspection import pack_record

ROOT = Path(__file__).parents[2]
CORE = ROOT / "vectors" / "core"
LARGEST = {"core": 1_600_000, "tiles": 9_500_000, "units_tiles": 7_500_000}  # bytes
COMMITTED = sorted(path.parent for path in CORE.parent.glob("*/manifest.json"))
PACKS = pytest.mark.parametrize("pack", COMMITTED, ids=lambda pack: pack.name)
PATHS = sorted(CORE.glob("test_*/test_data_set_0/*.pb"))


def test_it_is_what_its_suite_gives():
    """Every byte is made again and compared; nothing is missing, and nothing extra."""
    report = check(
        GenerationPlan(suite=load_suite(ROOT / "specs/suites/core.yaml")), CORE, lambda _: None
    )

    assert report.failed == ()
    assert report.findings == ()


def test_it_comes_back_from_raw_files(tmp_path):
    """Byte for byte, models, manifest and sums included."""
    convert_pack(open_pack(CORE), tmp_path / "there", "raw")
    convert_pack(open_pack(tmp_path / "there"), tmp_path / "back", ONNX)

    before, after = (
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (CORE, tmp_path / "back")
    )
    assert before == after


@PACKS
def test_it_stays_small(pack):
    """A repository can hold it; packs of sizes for another dialect have 2.6 MB."""
    size = sum(path.stat().st_size for path in pack.rglob("*") if path.is_file())

    assert size < LARGEST.get(pack.name, 2_600_000)


@PACKS
def test_it_is_inspected(pack):
    """As YAML with the horizons of its long cases by their ids, which are text."""
    shown = yaml.safe_load(as_yaml(pack_record(open_pack(pack, trust=True))))

    assert shown["cases"] == len(open_pack(pack, trust=True).cases)
    assert all(type(name) is str and steps > 0 for name, steps in shown["horizons"].items())
    assert bool(shown["horizons"]) is (pack.name == "tiles")


@PACKS
def test_every_case_is_certified(pack):
    """No golden is anybody's output; NaN, which no ball encloses, is where the formula has it."""
    for case in open_pack(pack).manifest.cases:
        kind = "float64" if "NaN" in case.flags else "certified"
        assert case.golden.kind == kind, case.id


def varint(data, at):
    """Read a varint as the guide for vendors describes it."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """Read a .pb with nothing but the table in vectors/README.md."""
    at, found = 0, {"dims": []}
    while at < len(data):
        tag, at = data[at], at + 1
        if tag == 0x08:
            dim, at = varint(data, at)
            found["dims"].append(dim)
            continue
        if tag == 0x10:
            found["data_type"], at = varint(data, at)
            continue
        length, at = varint(data, at)
        content, at = data[at : at + length], at + length
        found[{0x42: "name", 0x4A: "raw_data"}[tag]] = content
    return found


@pytest.mark.parametrize("path", PATHS[:: max(1, len(PATHS) // 40)], ids=lambda p: p.parts[-3])
def test_a_pb_is_as_the_guide_for_vendors_says(path):
    """Four fields, in the order and with the tags of the table, little-endian."""
    found = fields(path.read_bytes())
    size = {1: 4, 10: 2, 11: 8, 16: 2, 6: 4, 7: 8}[found["data_type"]]
    count = int(np.prod(found["dims"]))

    assert list(found) == ["dims", "data_type", "name", "raw_data"]
    assert len(found["raw_data"]) == size * count
    if found["data_type"] == 1:
        record = next(c for c in open_pack(CORE).manifest.cases if f"test_{c.id}" == path.parts[-3])
        vector = open_pack(CORE).read(record)
        tensors = dict(vector.tensors())
        name = found["name"].decode()
        role = re.match("[a-z]+", path.stem)[0]
        folder = {"input": "inputs", "output": "outputs", "tolerance": "tolerances"}[role]
        values = struct.unpack(f"<{count}f", found["raw_data"])
        assert np.array_equal(
            tensors[f"{folder}/{name}"].ravel(), np.float32(values), equal_nan=True
        )


PLAIN = ("RNN", "GRU", "LSTM")
UNITS = tuple(f"unit of {family}" for family in PLAIN)
# What cannot stand alone -> the smallest set of others that carries it.
TOGETHER = {"activation_alpha": {"activations"}, "activation_beta": {"activations"}}
USUAL = {"direction": "forward", "returnSequence": True}  # where a dialect has no such default
QUANTISATION = ("_scale", "_scales", "_zero_point")  # what ends their names: each tensor has them


def features(case):
    """The optional inputs, attributes and element type that a plain case has not, and calls."""
    row = operator_named(case.operator)
    usual = {name: USUAL.get(name, each.default) for name, each in row.attributes.items()}
    sizes = {name for name, each in row.attributes.items() if (each.role or name) in case.sizes}
    told = sizes | {row.demanding}  # by other features
    return frozenset(
        {each.name for each in row.inputs if each.optional and each.name in case.inputs}
        | {
            name
            for name, value in case.attributes.items()
            if value != usual[name] and name not in told and not name.endswith(QUANTISATION)
        }
        | ({case.dtype} - {"float32", "int8"})
        | {"later calls" for _ in case.calls[1:]}
    )


@cache
def families():
    """Type of an operator, as it is or within a quantised unit -> its cases of committed packs."""
    found = defaultdict(list)
    for case in (case for pack in COMMITTED for case in open_pack(pack, trust=True).cases):
        found["unit of " * bool(case.quantise) + case.operator.partition("-")[0]].append(case)
    return found


@pytest.mark.parametrize("family", sorted(families()))
def test_each_feature_stands_alone_in_some_case(family):
    """Whoever refuses the others, or a bug that only another hides, is no reason to miss it."""
    sets = {features(case) for case in families()[family]}
    carried = {
        each: min((one - {each} for one in sets if each in one), key=len)
        for each in frozenset().union(*sets)
    }

    needed = {each: others for each, others in TOGETHER.items() if each in carried}

    assert {each: others for each, others in carried.items() if others} == needed


@pytest.mark.parametrize(
    ("family", "version"), [*itertools.product(PLAIN, [7, 14, 22]), *((f, 14) for f in UNITS)]
)
def test_each_set_of_outputs_is_asked_for(family, version):
    """Of each version that models have."""
    row = operator_named(f"{family.split()[-1]}-{version}")
    names = [each.name for each in row.outputs]
    asked = {tuple(c.outputs) for c in families()[family] if c.operator == row.name}

    assert asked == {
        chosen
        for count in range(1, len(names) + 1)
        for chosen in itertools.combinations(names, count)
    }


def functions(case):
    """The functions of each direction of a case."""
    row = operator_named(case.operator)
    attributes = complete(row, dict(case.attributes))
    directions = 1 + (attributes.get("direction") == "bidirectional")
    return resolve_activations(row, attributes, directions, case.readings)


def bound(name, beyond):
    """Whether a case has this function with an alpha and a beta of which this is true."""
    return lambda case: any(
        f.name == name and beyond(f.alpha, f.beta) for each in functions(case) for f in each
    )


KINDS = {
    "leaky-below-0": bound("LeakyRelu", lambda alpha, _: alpha < 0),
    "leaky-above-1": bound("LeakyRelu", lambda alpha, _: alpha > 1),
    "affine-shifts": bound("Affine", lambda alpha, beta: alpha == 1 and beta != 0),
    "elu-above-1": bound("Elu", lambda alpha, _: alpha > 1),
    "threshold-above-1": bound("ThresholdedRelu", lambda alpha, _: alpha > 1),
    "one-below-32": lambda case: case.sizes["hidden_size"] % 32 == 31,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", [*PLAIN, *UNITS])
def test_each_kind_has_a_case(family, kind):
    """Of what kernels have got wrong, or have a path for."""
    assert any(map(KINDS[kind], families()[family]))


def dressed(name, holds):
    """Whether this is true of how the integers of this tensor are written, if it has any."""
    return lambda case: name in case.quantise and holds(case.quantise[name], case)


ROWS = {"RNN": 1, "GRU": 3, "LSTM": 4}  # of W and R for each unit
KINDS_OF_UNITS = {
    "scales-of-rows": dressed(
        "W",
        lambda of, case: (
            {np.size(each) for each in (of.scale, of.zero_point)}
            == {ROWS[case.operator.partition("-")[0]] * case.sizes["hidden_size"]}
        ),
    ),
    "weights-16": dressed("R", lambda of, _: of.type == "int16"),
    "bias-32": dressed("B", lambda of, _: of.type == "int32"),
    "state-beyond-8": dressed("initial_h", lambda of, _: of.type in {"int16", "uint16"}),
    "beyond-its-levels": dressed("Y", lambda of, _: of.type == "uint8" and of.scale < 0.003),
    "blocks-with-lengths": lambda c: (
        c.sizes["hidden_size"] % 16 == 0 and "sequence_lens" in c.inputs
    ),
    "many-with-lengths": lambda c: c.sizes["batch_size"] > 16 and "sequence_lens" in c.inputs,
    "long": lambda c: c.sizes["seq_length"] > 32,
    "one-unit": lambda c: c.sizes["hidden_size"] == 1,
}


@pytest.mark.parametrize("kind", KINDS_OF_UNITS)
@pytest.mark.parametrize("family", UNITS)
def test_each_kind_of_unit_has_a_case(family, kind):
    """Of scales, types and levels, and of sizes with what meets them."""
    assert any(map(KINDS_OF_UNITS[kind], families()[family]))


@pytest.mark.parametrize("family", UNITS)
def test_units_have_each_function_in_each_place(family):
    """Between integers, where kernels have tables of them."""
    found = defaultdict(set)
    for case in families()[family]:
        for each in functions(case):
            for place, function in enumerate(each):
                found[place].add(function.name)

    assert [*found.values()] == [{*ACTIVATIONS}] * len(found)


def test_an_output_has_more_elements_than_16_bits_count():
    """In a pack that is committed, whose offsets a kernel may hold in 16 bits."""
    assert any(
        size["seq_length"] * size["batch_size"] * size["hidden_size"] > 1 << 16
        for size in (case.sizes for each in families().values() for case in each)
        if size["seq_length"] is not None
    )
