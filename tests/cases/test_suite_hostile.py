"""Suites mutilated in every way: findings, never a crash."""

import contextlib
import copy
import random
from functools import cache
from pathlib import Path

import pytest
import yaml

from rnncli.cases.library import find_suite
from rnncli.cases.suite.suite import parse_suite, suite_findings
from rnncli.errors import ConfigError, RnncliError

JUNK = [
    *(None, True, 3, -1, 1.5, float("nan"), 10**30, "", "x", "LSTM", "LSTM-14", "reverse", "É"),
    *([], [1], [[]], [None, None], ["x", {"y": [1]}], {}, {"a": 1}, {"a": {"b": None}}),
]
NAMES = ["op", "breaks", "matrix", "zip", "inputs", "X", "strategy", "zz", "exclude", "include"]
CASES = 6  # of each suite, so that expanding all others does not take most of the time

# Written by libyaml where PyYAML has it, which takes a tenth of the time.
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def places(value, path=()):
    """The path of everything in a document but the document itself."""
    if not isinstance(value, dict | list):
        return
    for step, child in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, step)
        yield from places(child, (*path, step))


def mutilate(document, chance):
    """Put something else at a place, or take it away, or call it something else."""
    *path, last = chance.choice(list(places(document)))
    parent = document
    for step in path:
        parent = parent[step]
    what = chance.random()
    if what < 0.2:
        del parent[last]
    elif what < 0.4 and isinstance(parent, dict):
        parent[chance.choice(NAMES)] = parent.pop(last)
    else:
        parent[last] = copy.deepcopy(chance.choice(JUNK))


@cache
def written(path):
    """A suite as it is written."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["core", "smoke", "exact", "edge", "reject", "openvino", "webnn"])
@pytest.mark.parametrize("seed", range(15))
@pytest.mark.filterwarnings("ignore::rnncli.errors.RnncliWarning")
def test_whatever_is_wrong_is_a_finding(name, seed):
    """With a place and a sentence; what is still a suite has cases to be read."""
    chance = random.Random(seed)  # noqa: S311 -- places to try, not secrets
    path = find_suite(name)
    document = copy.deepcopy(written(path))
    cases = document["cases"]
    document["cases"] = dict(chance.sample(list(cases.items()), min(CASES, len(cases))))
    for _ in range(3):
        mutilate(document, chance)
    text = yaml.dump(document, Dumper=DUMPER, sort_keys=False, allow_unicode=True)

    with contextlib.suppress(RnncliError):
        entries = parse_suite(text, "x.yaml", path.parent).entries
        for entry in chance.sample(entries, min(5, len(entries))):
            entry.refusal()
    assert all(
        place.line >= 1 and sentence for place, sentence in suite_findings(text, "x", path.parent)
    )


def test_a_case_nested_as_deep_as_the_reader_goes():
    """And no deeper."""
    deep = "[" * 62 + "]" * 62
    with pytest.raises(ConfigError):
        parse_suite(f"suite: s\nsummary: s\ncases: {{x: {deep}}}", "x.yaml", Path())
