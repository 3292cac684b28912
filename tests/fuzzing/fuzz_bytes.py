"""Bytes and lines, mutated without knowledge of what they mean."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

INTERESTING = (
    0,
    1,
    2,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
)
LONG = (*INTERESTING, (1 << 40), (1 << 62), (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
FOREIGN = (
    b"",
    b"\0",
    b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    bytes(4096),
    b"\x89PNG\r\n\x1a\n" + bytes(100),
    b"<!DOCTYPE html><html></html>",
    b"\xff\xfe\0\0",
    b"\xef\xbb\xbf{}",
    b"PK\x05\x06" + bytes(18),
    b"\x93NUMPY",
    b"\x89HDF\r\n\x1a\n",
    b"{}",
    b"[]",
    b"null",
    b"\n",
    b"\r\n" * 50,
)


def _place(data: bytes, dice: random.Random) -> int:
    """Return a position; the head of a file is where its structure is."""
    return (
        dice.randrange(min(len(data), dice.choice((16, 128, 1024, len(data)))) or 1) if data else 0
    )


def _flip(data: bytearray, dice) -> None:
    for _ in range(dice.choice((1, 1, 2, 4, 20))):
        if data:
            data[_place(data, dice)] ^= 1 << dice.randrange(8)


def _truncate(data: bytearray, dice) -> None:
    del data[dice.randint(0, len(data)) :]


def _extend(data: bytearray, dice) -> None:
    data += dice.choice((b"\0", bytes(100), dice.randbytes(50), bytes(data[:200])))


def _integer(data: bytearray, dice) -> None:
    code = dice.choice(("<B", "<H", "<I", "<Q", ">I", ">Q"))
    size = struct.calcsize(code)
    at = _place(data, dice)
    value = dice.choice(LONG) & ((1 << (8 * size)) - 1)
    data[at : at + size] = struct.pack(code, value)


def _delete(data: bytearray, dice) -> None:
    at = _place(data, dice)
    del data[at : at + dice.choice((1, 2, 4, 8, 50))]


def _insert(data: bytearray, dice) -> None:
    at = _place(data, dice)
    data[at:at] = dice.choice((b"\0", b"\xff" * 8, dice.randbytes(8), bytes(64), bytes(data[:32])))


def _copy(data: bytearray, dice) -> None:
    size = dice.choice((1, 4, 16, 64))
    source, at = _place(data, dice), _place(data, dice)
    data[at : at + size] = data[source : source + size]


def _foreign(data: bytearray, dice) -> None:
    data[:] = dice.choice(FOREIGN)


MUTATORS = (_flip, _flip, _flip, _truncate, _extend, _integer, _integer, _delete, _insert, _copy)


def mutate(content: bytes, dice: random.Random, times: int | None = None) -> bytes:
    """Return bytes with a few mutations; one in fifty is another file altogether."""
    data = bytearray(content)
    for _ in range(times or dice.choice((1, 1, 2, 3))):
        mutator = _foreign if dice.random() < 0.02 else dice.choice(MUTATORS)
        mutator(data, dice)
    return bytes(data)


WORDS = (
    "!!python/object/apply:os.system ['true']",
    "&a [*a]",
    "*a",
    "&a",
    "!x",
    "<<: {a: 1}",
    "---",
    "...",
    "?",
    "|",
    ">-",
    "%YAML 1.1",
    "%TAG ! x",
    "\t",
    "- ",
    ": ",
    "#",
    "[",
    "]",
    "{",
    "}",
    "\0",
    "\ufeff",
    "\x85",
    "\ud800",
    "1e400",
    ".nan",
    ".inf",
    "-.inf",
    "0o17",
    "1_0",
    "~",
    "null",
    "1:30",
    "2026-01-01",
    "'",
    '"',
    "x: x",
    "a: &a [x,x]\nb: &b [*a,*a]",
    "9" * 400,
    "../../canary.npz",
    "/etc/passwd",
    "\u202e",
    "[" * 3000,
    "{a: " * 3000,
    "- " * 3000,
    "? " * 3000,
)


def mutate_lines(text: str, dice: random.Random) -> bytes:
    """Return a text with lines and words moved, doubled, dropped and replaced."""
    lines = text.split("\n")
    for _ in range(dice.choice((1, 1, 2, 3, 5))):
        at = dice.randrange(len(lines))
        line = lines[at]
        cut = dice.randint(0, len(line))
        word = dice.choice(WORDS)
        lines[at : at + 1] = dice.choice(
            (
                [],
                [line, line],
                [f"  {line}"],
                [line[1:]],
                [line[:cut] + word + line[cut:]],
                [line[:cut]],
                [line[cut:]],
                [line.split(":")[0] + f": {word}"],
                [word],
                [line, word],
                [line.replace(": ", f": {word} ", 1)],
                [line.partition(":")[0] + ":" + dice.choice(lines).partition(":")[2]],
                [dice.choice(lines)],
            )
        )
        lines = lines or [""]
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    return mutate(data, dice, 1) if dice.random() < 0.1 else data
