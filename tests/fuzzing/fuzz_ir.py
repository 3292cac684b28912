"""Models of OpenVINO, `model.xml` and `model.bin`, mutated as elements and attributes."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape, quoteattr

import fuzz_bytes
import fuzz_trees
from fuzz_process import Box, Command

if TYPE_CHECKING:
    import random

Node = list[Any]  # its tag, attributes, text and children
VALUES = (
    *("", "0", "1", "-1", "2", "3", "1,1", "2,1,1", "1,?,3", "?", "...", "0,0", "1,-1"),
    *("1,1,1,1,1", "2147483648", "9223372036854775807", "1e400", "nan", "inf"),
    *("99999999999999999999", "4294967296,4294967296", "f16", "f32", "bf16", "f64", "i4", "u1"),
    *("string", "boolean", "dynamic", "f8e4m3", "FP16", "I64", "Const", "Parameter", "Result"),
    *("Add", "If", "Loop", "TensorIterator", "Assign", "ReadValue", "LSTMCell", "LSTMSequence"),
    *("GRUSequence", "RNNSequence", "GRUCell", "RNNCell", "AUGRUCell", "opset1", "opset3"),
    *("opset5", "opset15", "extension", "experimental", "opset99", "true", "sigmoid,tanh"),
    *("relu", "tanh,tanh,tanh", "hardsigmoid", "x", "reverse", "bidirectional", "../x"),
)


def _node(element: ET.Element) -> Node:
    return [element.tag, dict(element.attrib), element.text or "", [*map(_node, element)]]


def _text(node: Any) -> str:
    """Return a node as XML, or whatever has come into its place as text."""
    try:
        tag, attributes, text, children = node
        written = "".join(f" {name}={quoteattr(str(v))}" for name, v in attributes.items())
        inside = escape(str(text)) + "".join(map(_text, children))
    except (TypeError, ValueError, AttributeError):
        return escape(str(node))
    return f"<{tag}{written}>{inside}</{tag}>\n"


@cache
def _values(path: Path) -> dict[str, list[str]]:
    """Return the values of each attribute in a model."""
    found: dict[str, list[str]] = {}
    for element in ET.parse(path).iter():  # noqa: S314 -- of our own making
        for name, value in element.attrib.items():
            found.setdefault(name, []).append(value)
    return found


def _every(node: Node) -> list[Node]:
    return [node, *(each for child in node[3] for each in _every(child))]


def _edit(tree: Node, values: dict[str, list[str]], dice: random.Random) -> None:
    """Change one attribute or dimension, or drop, double or move an element."""
    holders = [each for each in _every(tree) if each[3]]
    if not holders:
        return
    holder = dice.choice(holders)
    k = dice.randrange(len(holder[3]))
    node = dice.choice(_every(holder[3][k]))
    choice = dice.random()
    if choice < 0.6 and node[1]:
        name = dice.choice([*node[1]])
        node[1][name] = dice.choice(values[name] if dice.random() < 0.6 else VALUES)
    elif choice < 0.7:
        node[2] = dice.choice(VALUES)
    elif choice < 0.8:
        del holder[3][k]
    elif choice < 0.9:
        holder[3].insert(k, holder[3][k])
    else:
        holder[3].insert(0, holder[3].pop(k))


def ir(box: Box, dice: random.Random) -> Command:
    """A model of OpenVINO whose elements, weights and bytes are mutated."""
    source = dice.choice(_models(box.bases / "ir"))
    tree = _node(ET.parse(source).getroot())  # noqa: S314 -- of our own making
    weights = source.with_suffix(".bin").read_bytes()
    for _ in range(dice.choice((1, 1, 2, 3))):
        _edit(tree, _values(source), dice)
    whole = fuzz_trees.mutate(tree, dice) if dice.random() < 0.2 else tree
    content = ('<?xml version="1.0"?>\n' + _text(whole)).encode("utf-8", "surrogatepass")
    if dice.random() < 0.1:
        content = fuzz_bytes.mutate(content, dice)
    if dice.random() < 0.2:
        weights = fuzz_bytes.mutate(weights, dice)
    os.mkdir("m")  # noqa: PTH102
    Path("m/m.xml").write_bytes(content)
    if dice.random() < 0.97:
        Path("m/m.bin").write_bytes(weights)
    line = dice.choice(
        (
            ("run", "m/m.xml"),
            ("run", "m/m.xml", "--json", "--dim", "N=2"),
            ("inspect", "m/m.xml"),
            ("inspect", "m/m.xml", "--json"),
            ("extract", "m/m.xml", "-o", "out"),
        )
    )
    return Command(line, ("m",), ("out",))


@cache
def _models(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.xml"))
