"""Claims about devices: what they take is read to the letter, and what takes nothing is said."""

import pytest
from support.tables import every

from rnncli.errors import ConfigError
from rnncli.judging.comparing.requirements import Requirements
from rnncli.judging.device import admitted_sizes, contradiction, parse_device, read_device
from rnncli.judging.selected import Selected
from rnncli.packs.pack import open_pack

TEXT = """\
device: "npu-x 2.1"
require:
  - "op=LSTM|GRU, version=14"
  - "hidden_size%16=0, hidden_size<=256, seq_length<=8"
"""
CLAIM = f"""\
implementation: mine
pack: core
digest: {"a" * 64}
cases: 1
require: ["opset<=14"]
"""


def test_a_device_takes_what_meets_every_line():
    """Each is a requirement as the command line takes it."""
    device = parse_device(TEXT, "npu.yaml")

    assert device.device == "npu-x 2.1"
    assert device.requirements == Requirements.parse(device.require)


def test_a_claim_says_what_its_implementation_takes():
    """Nobody writes it twice."""
    assert parse_device(CLAIM, "claim.yaml").require == ["opset<=14"]


FINDINGS = {
    "no requirements": ("device: a", "1:1: 'require' is missing"),
    "one text": ("device: a\nrequire: opset<=14", "2:10: 'require' must be array"),
    "the second line": (
        "device: a\nrequire:\n  - opset<=14\n  - hiden_size<=8",
        "4:5: 'require'[1] cannot require 'hiden_size<=8': unknown field 'hiden_size'; did you",
    ),
    "a misspelt key": ("devise: a\nrequire: []", "1:1: unknown key 'devise'"),
    "sizes": (
        TEXT.replace("<=256", "<16"),
        "3:3: takes nothing: no hidden_size meets 'hidden_size%16=0' and 'hidden_size<16'",
    ),
    "inputs": (
        "device: a\nrequire: ['op=GRU, inputs>=P']",
        "2:10: takes nothing: no set of inputs of GRU meets 'inputs>=P'\n",
    ),
    "a value": (
        "device: a\nrequire: ['calls=x']",
        "2:11: 'require'[0] cannot require 'calls=x': 'calls' is compared with a",
    ),
    "operators": (
        TEXT.replace("version=14", "version=13"),
        "3:3: takes nothing: no operator meets 'op=LSTM|GRU' and 'version=13'",
    ),
}


@every("text, finding", FINDINGS.values(), ids=str)
def test_what_is_not_a_device_is_refused_with_its_place(text, finding):
    """Also what contradicts itself, since nothing would be judged."""
    with pytest.raises(ConfigError) as raised:
        parse_device(text, "npu.yaml")
    assert f"npu.yaml:{finding}" in f"{raised.value}\n"


NOTHING = {
    "hidden_size+input_size<=1": "no sizes of ",
    "outputs==none": "",
    "direction!=forward|reverse|bidirectional": "no direction of ",
    "dtype=float64,op=LSTM,version=22": "",
    "dtype=bfloat16,op=LSTM,version=14": "no operator meets ",
    "hidden_size%16=0,hidden_size%16=1": "no hidden_size meets ",
    "batch_size>=1000": "",
}


@every("requirement, problem", NOTHING.items(), ids=str)
def test_requirements_that_nothing_meets_are_named(requirement, problem):
    """Each axis alone, and the sizes together; "" for what something meets."""
    found = contradiction(Requirements.parse([requirement]))

    assert found.startswith(f"takes nothing: {problem}" if problem else "")
    assert bool(found) == bool(problem)


LARGE = {
    # A requirement of hidden_size -> the largest and the least that are found
    "hidden_size<=100000000000000000": (1, 10**17),
    "hidden_size>=5000": (5000, 5002),
    "hidden_size%4096=0": (4096, 8192),
    "hidden_size%1000=3,hidden_size<=100000": (3, 99003),
    "hidden_size=70000": (70000, 70000),
}


@every("requirement, ends", LARGE.items(), ids=str)
def test_numbers_of_any_size_are_met_in_no_time(requirement, ends):
    """All small sizes, and those about a number that is named: it may be a stranger's."""
    found = admitted_sizes(Requirements.parse([requirement]), "hidden_size", "LSTM")

    assert (found[0], found[-1]) == ends
    assert len(found) < 1000
    assert not contradiction(Requirements.parse([requirement]))


def test_a_device_selects_the_cases_of_a_pack_that_it_takes(tmp_path):
    """Beside `--require`, whose terms are added."""
    path = tmp_path / "npu.yaml"
    path.write_text(TEXT.replace("hidden_size%16=0, ", "").replace("seq_length<=8", "opset<=14"))
    records = open_pack("vectors/core").cases
    both = Selected(require="dtype=float32", device=path).requirements

    taken = [each.id for each in records if not both.reason(each)]
    assert both.terms[1:] == read_device(path).requirements.terms
    assert 20 < len(taken) < len(records)
    assert all(name.startswith(("lstm_14_", "gru_14_")) for name in taken)
