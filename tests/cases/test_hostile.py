"""Claims about mutilated configs: one kind of exception, bounded output, whatever the bytes."""

import random

import pytest
from support.tables import every

from rnncli.cases.config import config
from rnncli.cases.config.config import describe, parse_config
from rnncli.cases.library import find_spec, spec_names
from rnncli.errors import RnncliError

CONFIGS = [find_spec(name).read_bytes() for name in spec_names() if name.startswith("ops/")]
FRAGMENTS = [
    *(
        b"!!python/object/apply:os.system [ls]",
        b"!x ",
        b"&a ",
        b"*a",
        b"<<: *a",
        b"---\n",
        b"...\n",
    ),
    *(b"%YAML 9.9\n", b"? ", b": ", b"- ", b"[" * 70, b"{a: " * 70, b"]", b"}", b"|9\n", b">-\n"),
    *(b"'", b'"', b'"\\uD800"', b'"\\UFFFFFFFF"', b"\t", b"\x00", b"\x1b[2J", b"\xff\xfe", b"\xc3"),
    *(
        b"\xe2\x80\xa8",
        b"\xef\xbb\xbf",
        b"\r",
        b"9" * 500,
        b"1e999",
        b".nan",
        b"-.inf",
        b"0x",
        b"~",
    ),
    *(b"null", b"true", b"-1", b"0", b"1.5", b"99999999999999999999", b"[]", b"{}", b"[[[]]]"),
    *(
        b"{file: /dev/zero}",
        b"{file: ../../../etc/passwd}",
        b"{special: 1}",
        b"lengths",
        b"X" * 999,
    ),
    b"a: &a [x,x,x,x,x,x,x,x,x,x]\n"
    + b"".join(b"k%d: &a [%s]\n" % (n, b"*a," * 9) for n in range(9)),
]


def flip(source, rng):
    """Change some bytes."""
    changed = bytearray(source)
    for _ in range(rng.randint(1, 8)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def cut(source, rng):
    """Break the text off."""
    return source[: rng.randrange(len(source))]


def drop(source, rng):
    """Leave a piece out."""
    start = rng.randrange(len(source))
    return source[:start] + source[start + rng.randint(1, 40) :]


def insert(source, rng):
    """Put a piece of something hostile in."""
    at = rng.randrange(len(source))
    return source[:at] + rng.choice(FRAGMENTS) + source[at:]


def replace_value(source, rng):
    """Put something hostile where a value was."""
    lines = source.split(b"\n")
    at = rng.randrange(len(lines))
    lines[at] = lines[at].partition(b":")[0] + b": " + rng.choice(FRAGMENTS)
    return b"\n".join(lines)


def shuffle(source, rng):
    """Put the lines in another order, some of them twice."""
    lines = source.split(b"\n")
    return b"\n".join(rng.choices(lines, k=len(lines)))


def splice(source, rng):
    """Begin as one config and go on as another."""
    other = rng.choice(CONFIGS)
    return source[: rng.randrange(len(source))] + other[rng.randrange(len(other)) :]


MUTATIONS = (flip, cut, drop, insert, replace_value, shuffle, splice)


@pytest.fixture(autouse=True)
def _small_machine(monkeypatch):
    """Sizes that a mutation made large stay cheap."""
    monkeypatch.setattr(config, "memory", lambda: 1 << 28)


@every("seed", range(700))
def test_a_mutilated_config_is_a_case_or_an_error_of_ours(seed):
    """Nothing else comes out, no line is endless, no control character reaches the terminal."""
    rng = random.Random(seed)  # noqa: S311 -- reproducible, not secret
    source = rng.choice(CONFIGS)
    for _ in range(rng.randint(1, 3)):
        source = rng.choice(MUTATIONS)(source or b"x", rng)

    try:
        case = parse_config(source, "fuzz.yaml")
    except RnncliError as caught:
        error = caught
    else:
        assert describe(case)["op"] == case.operator.name
        assert case.inputs.keys() >= {row.name for row in case.operator.inputs if not row.optional}
        return

    lines = str(error).splitlines()
    assert error.exit_code in (2, 3)
    assert 1 <= len(lines) <= 101
    assert all(len(line) < 1000 and line.isprintable() for line in lines)
