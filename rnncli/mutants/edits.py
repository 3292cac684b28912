"""Bugs as edits: what stands in a plain kernel, and what stands there instead.

`kernel.txt` is one kernel that anybody could have written. It reads a call, walks over its steps
and writes what it got. What is edited is how it reads, steps or writes: the edited lines become
functions, with which the reference evaluates in any arithmetic, stacks and quantised cells
included. No bug edits the walk; those of the walk are functions in `walks`. Linear recurrences have
kernels of their own, in `linear_kernel.txt`; what each kernel reads and writes `calls` says.
"""

from __future__ import annotations

import ast
import difflib
import re
from dataclasses import replace
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from rnncli.mutants.calls import PARTS, PREPARING, READING, STEPPING, WRITING, call_of
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.cells import CELLS, CellOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rnncli.numerics import Array
    from rnncli.recurrence.cells import Parameters, States, Value
    from rnncli.recurrence.recurrence import Recurrence

    Step = Callable[[Parameters, Value, States], States]

Edits: TypeAlias = "tuple[Edit, ...]"

# Lines of the kernel of some cells alone end with these cells.
OF_CELLS = re.compile(r"  # ([A-Z]+(?: [A-Z]+)*)$")


class Edit(NamedTuple):
    """What stands in the kernel, wherever it does, and what stands there instead."""

    old: str
    new: str

    def applied(self, text: str) -> str:
        """Return a text with this edit; its later lines have the indent of the first."""

        def new(found: re.Match[str]) -> str:
            line = text[text.rfind("\n", 0, found.start()) + 1 :]
            return self.new.replace("\n", "\n" + " " * (len(line) - len(line.lstrip(" "))))

        before = r"(?<![\w.])" if self.old[0].isalnum() else ""
        after = r"(?![\w])" if self.old[-1].isalnum() else ""
        return re.sub(before + re.escape(self.old) + after, new, text)

    def is_in(self, cell: str, part: str = "") -> bool:
        """Whether a piece stands in the kernel of a cell, or in one of its parts."""
        return self.old in (_part(kernel_of(cell), part) if part else kernel_of(cell))


def text_of(name: str, package: str = "rnncli.mutants") -> str:
    """Return a text beside the modules of a package: a kernel or its bugs."""
    return files(package).joinpath(name).read_text("utf-8")


@cache
def kernel_of(cell: str) -> str:
    """Return the plain kernel of a cell, such as "LSTM"."""
    file, function = call_of(cell).kernel
    (text,) = (f for f in text_of(file).split("\n\n\n") if f.startswith(f"def {function}("))
    own = []
    for line in text.splitlines():
        found = OF_CELLS.search(line)
        if found is None or cell in found[1].split():
            own.append(line[: found.start()] if found else line)
    return "\n".join(own) + "\n"


@cache
def has_equations(cell: str) -> bool:
    """Whether the kernel has the equations of a cell, without which no bug edits them."""
    return bool(
        re.search(r"^(new|o|y|h) = ", "\n".join(_lines(kernel_of(cell), STEPPING)), re.MULTILINE)
    )


@cache
def edited(cell: str, edits: Edits) -> str:
    """Return the kernel of a cell with some edits, those of its own lines."""
    text = kernel_of(cell)
    for edit in edits:
        text = edit.applied(text)
    return text


def difference(cells: Sequence[str], edits: Edits) -> str:
    """Return edits as a diff of the lines of the kernels; cells with other lines one by one.

    It is empty where nothing is edited.
    """
    shown: dict[str, list[str]] = {"": []} if not edits else {}
    for cell in cells if edits else ():
        lines: list[str] = []
        for part in PARTS:
            right, wrong = (_named(_lines(t, part)) for t in (kernel_of(cell), edited(cell, edits)))
            lines += (line for line in difflib.ndiff(right, wrong) if line[0] in "+-")
        shown.setdefault("\n".join(lines), []).append(cell)
    if len(shown) == 1:
        return next(iter(shown))
    return "\n".join(f"{' '.join(own)}:\n{text}" for text, own in shown.items())


def _named(lines: Sequence[str]) -> list[str]:
    """Return lines with one name each: `a = c` and `b = d` instead of `a, b = c, d`."""
    text, found = "\n".join(lines), []
    for each in ast.parse(text).body:
        own = ast.get_source_segment(text, each) or ""
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Tuple):
            names, value = each.targets[0].elts, each.value
            if isinstance(value, ast.Tuple) and len(value.elts) == len(names):
                pairs = zip(names, value.elts, strict=True)
                own = "\n".join(" = ".join(map(ast.unparse, pair)) for pair in pairs)
        found += own.splitlines()
    return found


@cache
def _part(text: str, name: str) -> str:
    """Return a part of a kernel, from its comment to the empty line after it."""
    return text.partition(f"# {name}: ")[2].partition("\n\n")[0]


def _lines(text: str, part: str) -> list[str]:
    """Return the lines of a part of a kernel, without their indent; [] if it has none."""
    lines = _part(text, part).splitlines()[1:]
    indent = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
    return [line[indent:] for line in lines]


@cache
def compiled(cell: str, edits: Edits, part: str) -> Any:
    """Return a part of an edited kernel as a function; None if it is as it was."""
    wrong, text = edited(cell, edits), kernel_of(cell)
    lines, right, prepared = _lines(wrong, part), _lines(text, part), _lines(wrong, PREPARING)
    if lines == right and (part != STEPPING or prepared == _lines(text, PREPARING)):
        return None
    if part == READING:  # all others leave what they read as it is
        lines = [line for k, line in enumerate(lines) if k == 0 or line not in right]
    frame = call_of(cell).frames[part]

    def placed(name: str, lines: Sequence[str]) -> str:
        indent = re.search(rf"^( *)\{{{name}\}}", frame, re.MULTILINE)
        return ("\n" + indent[1]).join(lines) if indent else ""

    source = frame.format(
        lines=placed("lines", lines),
        reading=placed("reading", _lines(text, READING)),
        preparing=placed("preparing", prepared),
        options=", ".join(CellOptions._fields),
        values=", ".join(f"p.options.{name}" for name in CellOptions._fields),
    )
    own = CELLS[cell]
    space = {
        **call_of(cell).words,
        "LETTERS": own.activations,
        "DEFAULTS": tuple(ACTIVATIONS[name] for name in own.defaults),
    }
    exec(compile(source, f"<{part.lower()} of {cell}>", "exec"), space)  # noqa: S102 -- our files
    return space["function"]


class EditedStep:
    """The equations with some edits.

    Args:
        cell: the cell.
        edits: the edits.
        recurrence: what `r` is in them.
    """

    def __init__(self, cell: str, edits: Edits, recurrence: Recurrence) -> None:
        self.edits, self._recurrence = edits, recurrence
        self._key = (cell, edits, id(recurrence) if _reads_call(edits) else 0)
        self._step: Step = compiled(cell, edits, STEPPING)(call_of(cell)(recurrence))

    def __call__(self, p: Parameters, x: Value, states: States) -> States:
        """Advance by one time step."""
        return self._step(p, x, states)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EditedStep) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@cache
def _reads_call(edits: Edits) -> bool:
    return any(re.search(r"\br\.", edit.new) for edit in edits)


def read(edits: Edits, r: Recurrence) -> Recurrence:
    """Return the recurrence that a kernel with some edits computes.

    Raises:
        ValueError: its equations were edited before, so that these edits change nothing.
    """
    cell, found = r.cell.name, r
    if reading := compiled(cell, edits, READING):
        call = call_of(cell)(r)
        found = call.reading(reading(call))
    if compiled(cell, edits, STEPPING):
        step = _edited_step(r.cell.step, edits, r)
        found = replace(found, cell=replace(r.cell, step=step))
    return found


def _edited_step(step: Any, edits: Edits, r: Recurrence) -> Any:
    """Return equations, those within a bug's own included, with some edits more."""
    if isinstance(step, partial):
        *values, right = step.args
        inner = _edited_step(right, edits, r)
        return partial(step.func, *values, inner, **step.keywords)
    before = step.edits if isinstance(step, EditedStep) else ()
    both = (*before, *edits)
    if before and edited(r.cell.name, both) == edited(r.cell.name, before):
        raise ValueError(edits)
    return EditedStep(r.cell.name, both, r)


def write(edits: Edits, r: Recurrence, Y: Array, last: States) -> tuple[Array, States]:
    """Return what a kernel with some edits writes of right results."""
    cell = r.cell.name
    return call_of(cell)(r).writing(compiled(cell, edits, WRITING), Y, last)
