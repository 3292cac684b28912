"""Bugs as edits: what stands in a plain kernel, and what stands there instead.

`kernel.txt` is one kernel that anybody could have written. It reads a call, walks over its steps
and writes what it got. What is edited is how it reads, steps or writes: the edited lines become
functions, with which the reference evaluates in any arithmetic, stacks and quantised cells
included. No bug edits the walk; those of the walk are functions in `walks`.
"""

from __future__ import annotations

import ast
import difflib
import re
from dataclasses import replace
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from rnncli.mutants import words_of_edits
from rnncli.mutants.equivalence import lengths_of
from rnncli.mutants.words_of_edits import ABSENT
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.cells import CELLS, CellOptions
from rnncli.recurrence.recurrence import Direction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rnncli.numerics import Array
    from rnncli.recurrence.cells import Parameters, States, Value
    from rnncli.recurrence.recurrence import Recurrence

    Step = Callable[[Parameters, Value, States], States]

Edits: TypeAlias = "tuple[Edit, ...]"

# Lines of the kernel of some cells alone end with these cells.
OF_CELLS = re.compile(r"  # ([A-Z]+(?: [A-Z]+)*)$")
READING, STEPPING, WRITING = "Reading", "Stepping", "Writing"
FIELDS = (
    *("X", "W", "R", "Wb", "Rb", "P", "lengths"),
    *("directions", "activations", "clip", "clip_hidden", "keep_initial"),
)
STARTS = ("initial_h", "initial_c")
READ = (*FIELDS, *STARTS, *CellOptions._fields)
OUTPUTS = ("Y", "Y_h", "Y_c")
# Part of the kernel -> the function that its lines become.
FUNCTIONS = {
    READING: """\
def function(r):
    {lines}
    return locals()
""",
    STEPPING: """\
def function(r):
    def step(p, x, states):
        functions, times, peepholes, Rbh = (p.f, p.g, p.h), p.R, p.P, p.Rbh
        {options} = {values}
        {lines}
        return new
    return step
""",
    WRITING: """\
def function(Y, Y_h, Y_c, steps, reverse, live, initial_h, initial_c, state_at):
    (T, D, N, H), written = Y.shape, SimpleNamespace()
    {lines}
    return vars(written)
""",
}


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
    own = []
    for line in text_of("kernel.txt").splitlines():
        found = OF_CELLS.search(line)
        if found is None or cell in found[1].split():
            own.append(line[: found.start()] if found else line)
    return "\n".join(own) + "\n"


@cache
def has_equations(cell: str) -> bool:
    """Whether the kernel has the equations of a cell, without which no bug edits them."""
    return bool(re.search(r"^new = ", "\n".join(_lines(kernel_of(cell), STEPPING)), re.MULTILINE))


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
        for part in FUNCTIONS:
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
    """Return the lines of a part of a kernel, without the indent of the first."""
    lines = _part(text, part).splitlines()[1:]
    indent = len(lines[0]) - len(lines[0].lstrip())
    return [line[indent:] for line in lines]


@cache
def compiled(cell: str, edits: Edits, part: str) -> Any:
    """Return a part of an edited kernel as a function; None if it is as it was."""
    lines, right = (_lines(text, part) for text in (edited(cell, edits), kernel_of(cell)))
    if lines == right:
        return None
    if part == READING:  # all others leave what they read as it is
        lines = [line for k, line in enumerate(lines) if k == 0 or line not in right]
    frame = FUNCTIONS[part]
    indent = re.search(r"^( *)\{lines\}", frame, re.MULTILINE)
    assert indent is not None
    source = frame.format(
        lines=("\n" + indent[1]).join(lines),
        options=", ".join(CellOptions._fields),
        values=", ".join(f"p.options.{name}" for name in CellOptions._fields),
    )
    own = CELLS[cell]
    space = {
        **vars(words_of_edits),
        "LETTERS": own.activations,
        "DEFAULTS": tuple(ACTIVATIONS[name] for name in own.defaults),
    }
    exec(compile(source, f"<{part.lower()} of {cell}>", "exec"), space)  # noqa: S102 -- our files
    return space["function"]


class KernelCall:
    """What a kernel reads: the names of a recurrence. What is not given is `ABSENT`."""

    def __init__(self, recurrence: Recurrence) -> None:
        self._recurrence = recurrence

    def __getattr__(self, name: str) -> Any:
        r = self._recurrence
        if name in STARTS:
            found = r.initial[STARTS.index(name)]
        else:
            found = getattr(r.options if name in CellOptions._fields else r, name)
        vars(self)[name] = ABSENT if found is None else found
        return vars(self)[name]

    @property
    def sizes(self) -> tuple[int, ...]:
        """T, N, I, D, G and H."""
        return (*self._recurrence.X.shape, *self._recurrence.W.shape[:3])

    @property
    def steps(self) -> Array:
        """The number of steps of each sequence [N], also where no lengths are given."""
        return lengths_of(self._recurrence)


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
        self._step: Step = compiled(cell, edits, STEPPING)(KernelCall(recurrence))

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
    cell = r.cell.name
    changed: dict[str, Any] = {}
    if reading := compiled(cell, edits, READING):
        call = KernelCall(r)
        for name, value in reading(call).items():
            if name in READ and value is not getattr(call, name):
                changed[name] = _as_field(name, value)
        if not changed.keys().isdisjoint(STARTS):
            starts = (changed.pop(k, v) for k, v in zip(STARTS, r.initial, strict=False))
            changed["initial"] = tuple(starts)
        options = {k: changed.pop(k) for k in CellOptions._fields if k in changed}
        if options:
            changed["options"] = r.options._replace(**options)
    if compiled(cell, edits, STEPPING):
        changed["cell"] = replace(r.cell, step=_edited_step(r.cell.step, edits, r))
    return replace(r, **changed) if changed else r


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
    reverse = np.array([d is Direction.REVERSE for d in r.directions])[:, None]
    steps, T = lengths_of(r), len(Y)
    starts = [
        np.zeros_like(state) if given is None else given.astype(state.dtype)
        for given, state in zip(r.initial, last, strict=True)
    ]

    def state_at(t: Array) -> Array:
        """H after step t of each direction and sequence, or before the first."""
        if not T:
            return np.asarray(last[0])
        index = np.broadcast_to(np.maximum(t, 0), last[0].shape[:2])[None, :, :, None]
        found = np.where((t >= 0)[..., None], np.take_along_axis(Y, index, 0)[0], starts[0])
        return np.asarray(np.where((steps > 0)[:, None], found, last[0]))

    found = compiled(r.cell.name, edits, WRITING)(
        *(Y, last[0], last[-1], steps, reverse),
        (np.arange(T)[:, None] < steps)[:, None, :, None],
        *(starts[0], starts[-1], state_at),
    )
    names = OUTPUTS[: 1 + len(last)]
    made = [np.asarray(found[name]).astype(Y.dtype, copy=False) for name in names]
    return made[0], tuple(made[1:])


def _as_field(name: str, value: Any) -> Any:
    """Return a field of a recurrence as it has it."""
    if value is ABSENT or value is None:
        return None
    if name == "lengths":
        return np.asarray(value, np.int64)
    if name == "activations":
        return tuple(map(tuple, value))
    if name == "directions":
        return tuple(value)
    return float(value) if name == "clip" else value
