"""Trees of JSON and YAML values, mutated by type and written out with what no encoder writes."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    import random
    from collections.abc import Callable


MARK = "\x02"  # begins what is written as it is


class Raw(str):
    """Text that is written as it is, in place of a value."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Mark the text, so that it is found again in what an encoder writes."""
        return super().__new__(cls, MARK + text)


class Twin(str):
    """A key that stands beside an equal one."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


CANARIES = ("canary", "canary.npz", "canary.h5", "canary.pb", "canary.onnx", "canary.yaml")
NUMBERS: tuple[Any, ...] = (
    *(0, 1, -1, 2, 3, 7, 255, 65536, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64),
    *(-(2**31), -(2**63), -(2**63) - 1, 10**30, 10**18, 999_999_999, True, False),
    *(0.5, -0.0, 1.0, 3.0, 1e308, 5e-324, 1e9, -1.5),
    *(Raw("1e999"), Raw("-1e999"), Raw("NaN"), Raw("Infinity"), Raw("-Infinity"), Raw("1E400")),
    *(Raw("9" * 5000), Raw("0." + "3" * 5000), Raw("1e-999999999"), Raw("-0")),
)
TEXTS: tuple[Any, ...] = (
    *(
        "",
        " ",
        ".",
        "..",
        "...",
        "-",
        "--help",
        "-k",
        "::",
        "a::b",
        "a/b",
        "a//b",
        "a/",
        "/a",
        "./a",
    ),
    *("a/.", "a/..", "a\\b", "..\\x", "C:\\x", "C:x", "~", "~root", "$HOME", "%s", "%n", "{0}"),
    *("{model}", "[red]x[/red]", "[/]", "[/red]", "[bold", "<b>x</b>", "| a | b |", "`x`", "# x"),
    *("NaN", "nan", "inf", "null", "true", "1", "-1", "1e5", "0x10", "1_000", "2026-01-01", "no"),
    *("a\nb", "a\rb", "a\tb", "a\0b", "\0", "\n", "\x1b[31mx", "\x1b]0;t\x07", "\x9b31m", "\x7f"),
    *(
        "\u202ex",
        "\u2066x",
        "\u200b",
        "\ufeffx",
        "\u2028",
        "\u0085",
        "\ud800",
        "a\udcffb",
        "\uffff",
    ),
    *("é", "e\u0301", "\U0001f600", "\u0130", "x" * 200, "x" * 256, "x" * 5000, "/x" * 3000),
    *("x" * 100_000, "\u202e" * 300, "[" * 400, "%" * 300, "é" * 130),
    *("LSTM-14", "RNN-7", "GRU-22", "LSTM", "LSTM-0", "LSTM-99", "RNNSequence-5", "float16"),
    *("bfloat16", "float64", "string", "int4", "float8e4m3fn", "complex64", "X", "W", "Y", "Y_h"),
    *("onnx", "npz", "h5", "certified", "float64", "none", "rejection", "result", "standard"),
    *("clip-scope=gates", "clip-scope=preactivation", "zero-length=keep", "kills:x", "strict"),
    *("model.onnx", "manifest.json", "SHA256SUMS", ".rnncli-journal", "vectors.npz", "readings"),
    *("test_data_set_0", "__rnncli__", "__rnncli__/0", "inputs", "outputs", "tolerances", "con"),
    *(
        "../x",
        "../../x",
        "/etc/passwd",
        "/etc/hostname",
        "/dev/zero",
        "/dev/stdin",
        "/proc/self/mem",
    ),
    *(f"{up}{name}" for up in ("../", "../../", "../../../", "x/../../../") for name in CANARIES),
    *(f"test_x/{up}canary" for up in ("../../", "../../../", "../../../../")),
    *(f"x/{up}canary" for up in ("../../../", "../../../../", "../../../../../")),
    *("x/../../../evil", "../evil", "../../evil", "../../../evil", "x/../../../../evil"),
)
WRONG: tuple[Any, ...] = (
    *(
        None,
        True,
        0,
        -1,
        1.5,
        "",
        "x",
        [],
        {},
        [[]],
        [None],
        {"": None},
        {"a": {"b": 1}},
        [1, 2, 3],
    ),
    *(
        ["x", "x"],
        [1, "x"],
        {"x": []},
        [{}],
        Raw("[" * 900 + "]" * 900),
        Raw('{"a":' * 900 + "1" + "}" * 900),
    ),
    *(
        Raw("[" * 100_000),
        Raw("[" * 50_000 + "]" * 50_000),
        Raw(""),
        Raw("nul"),
        Raw("'x'"),
        Raw('"\\ud800"'),
    ),
    *(Raw('"\\u0000"'), Raw("// x"), Raw("0x1"), Raw("[1,]"), Raw('"' + "x" * 1_000_000 + '"')),
)

LARGEST = 4_000_000  # characters, so that many of many stay few

Spot = tuple[Any, Any]


def descend(tree: Any, dice: random.Random) -> Spot | None:
    """Return a container and a key of it; no long list is favoured."""
    spot = None
    while isinstance(tree, dict | list) and tree:
        key = dice.choice([*tree]) if isinstance(tree, dict) else dice.randrange(len(tree))
        spot = (tree, key)
        if dice.random() < 0.2:
            break
        tree = tree[key]
    return spot


def _wrong(tree, key, dice) -> None:
    tree[key] = dice.choice(WRONG)


def _number(tree, key, dice) -> None:
    tree[key] = dice.choice(NUMBERS)


def _text(tree, key, dice) -> None:
    tree[key] = dice.choice(TEXTS)


def _delete(tree, key, _) -> None:
    del tree[key]


def _twin(tree, key, dice) -> None:
    """Give a key, or an element, twice."""
    if isinstance(tree, dict):
        tree[Twin(key)] = dice.choice((tree[key], dice.choice(WRONG)))
    else:
        tree.insert(key, tree[key])


def _extra(tree, key, dice) -> None:
    del key
    value = dice.choice((*WRONG, *NUMBERS[:8]))
    if isinstance(tree, dict):
        tree[dice.choice(TEXTS)] = value
    else:
        tree.append(value)


def _rename(tree, key, dice) -> None:
    if isinstance(tree, dict):
        tree[dice.choice(TEXTS)] = tree.pop(key)
    else:
        tree[key] = dice.choice(TEXTS)


def _swap(tree, key, dice) -> None:
    other = dice.choice([*tree]) if isinstance(tree, dict) else dice.randrange(len(tree))
    tree[key], tree[other] = tree[other], tree[key]


def _nest(tree, key, dice) -> None:
    tree[key] = dice.choice(([tree[key]], {"x": tree[key]}, [[tree[key]]]))


def _unnest(tree, key, dice) -> None:
    value = tree[key]
    if isinstance(value, dict | list) and value:
        tree[key] = dice.choice([*value.values()] if isinstance(value, dict) else value)


def _many(tree, key, dice) -> None:
    """Thousands of what there is one of."""
    count = dice.choice((10, 100, 1000, 10_000))
    value = tree[key]
    if len(write(value)) > LARGEST // count:
        return
    if isinstance(value, dict):
        for k in range(count):
            value[f"x{k}"] = k
    elif isinstance(value, list):
        value.extend(dice.choice((value[:1], [0], ["x"], [{}])) * count)
    else:
        tree[key] = [value] * count


def _perturb(tree, key, dice) -> None:
    """A value that is nearly the one it was."""
    value = tree[key]
    if isinstance(value, bool) or value is None:
        tree[key] = not value
    elif isinstance(value, int | float):
        tree[key] = dice.choice((value + 1, value - 1, -value, value * 2, float(value), str(value)))
    elif isinstance(value, str):
        tree[key] = _edited(value, dice)
    elif isinstance(value, list):
        tree[key] = dice.choice((value[::-1], value[:-1], value[1:], value * 2))


def _edited(text: str, dice) -> str:
    at = dice.randint(0, len(text))
    piece = dice.choice((*TEXTS[:90], "0", "A", "_"))
    return dice.choice(
        (text[:at] + piece + text[at:], text[:at], text[at:], text.swapcase(), piece + text)
    )


MUTATORS: tuple[Callable[..., None], ...] = (
    *(_wrong, _wrong, _number, _text, _text, _delete, _twin, _extra, _rename, _swap),
    *(_nest, _unnest, _many, _perturb, _perturb),
)


def _alike(tree, key, dice) -> None:
    """Another value of the same type, one that stands somewhere near or any at all."""
    value = tree[key]
    near = [*tree.values()] if isinstance(tree, dict) else tree
    pool = [*near, *(NUMBERS if type(value) in (int, float) else TEXTS)]
    same = [each for each in pool if type(each) is type(value)]
    if not isinstance(value, dict | list):
        tree[key] = dice.choice(same)
    elif value and isinstance(value, list):
        dice.choice((value.pop, value.reverse, partial(value.append, value[0])))()
    elif value:
        del value[dice.choice([*value])]


MILD: tuple[Callable[..., None], ...] = (_alike, _alike, _alike, _perturb, _swap)


def mutate(
    tree: Any, dice: random.Random, times: int | None = None, *, mild: bool | None = None
) -> Any:
    """Return a tree with a few mutations, in place where it is not replaced as a whole.

    Args:
        tree: JSON or YAML.
        dice: decides.
        times: how many.
        mild: whether types are kept, so that what is behind the check of types is reached.
    """
    mild = dice.random() < 0.4 if mild is None else mild
    holder = [tree]
    for _ in range(times or dice.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        spot = descend(holder[0], dice) or (holder, 0)
        if dice.random() < 0.01 and not mild:
            spot = (holder, 0)
        dice.choice(MILD if mild else MUTATORS)(*spot, dice)
        if not holder:
            holder.append(None)
    return holder[0]


# Characters of a text; mutations may have doubled a tree until the sandbox has no room for it.
LARGEST = 16 << 20
_RAW = re.compile(r'"\\u0002((?:[^"\\]|\\.)*)"')


def write(tree: Any) -> str:
    """Return JSON, or what looks like it; as YAML it is flow style."""
    try:
        written = json.dumps(tree)
    except (ValueError, RecursionError, MemoryError):  # a circle, or doubled too often
        return "null"
    if len(written) > LARGEST:
        return "null"
    if '"\\u0002' not in written:
        return written
    return _RAW.sub(lambda match: json.loads(f'"{match[1]}"'), written)
