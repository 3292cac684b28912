"""The conditions of statements, by their words in files and reports, and their violations.

A statement is checked if a violation of it would be noticed. Most violations are mutants. The ones
of `violations.txt` are finer than the bugs of real kernels, so suites are not scored by them.
"""

from __future__ import annotations

import re
import warnings
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from rnncli.backends.reference import NumPyEngine
from rnncli.cases.yaml_reader import plain_scalar, unknown
from rnncli.errors import (
    InvalidRequest,
    RnncliWarning,
    UnreadableFile,
    did_you_mean,
)
from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.scoring.adequacy import Fate, outcomes
from rnncli.mutants.bug_table import SemanticBugs
from rnncli.mutants.catalogue import MUTANTS
from rnncli.mutants.edits import text_of
from rnncli.mutants.equivalence import where
from rnncli.mutants.mutant import ALL, Change, mutant_of
from rnncli.operators.checking import element_type, problems
from rnncli.operators.node import checked
from rnncli.operators.operator import Dim
from rnncli.verifying.node_call import NodeCall, T

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from rnncli.mutants.mutant import Mutant
    from rnncli.numerics import Array
    from rnncli.operators import Node, Operator
    from rnncli.packs.vector import Vector
    from rnncli.recurrence.activations import Activation

_TEXT = text_of("violations.txt", "rnncli.verifying.tracing")
_TABLE = SemanticBugs(_TEXT, "violations.txt")
# No edit of a kernel says what it computes in.
_NARROWED = mutant_of(
    "float64-computed-in-float32",
    ALL,
    "statements",
    "Whatever the dtype, float32 is computed with.",
    "Only float64 is wrong.",
    Change(engine=lambda _: NumPyEngine(np.dtype(np.float32))),
    where(lambda r: r.dtype.name != "float64", "the dtype is narrower than float64"),
)
_ROWS = (*(row for rows in _TABLE.families.values() for row in rows), _NARROWED)
VIOLATIONS: Mapping[str, Mutant] = {row.id: row for row in _ROWS}


def violation_named(id: str) -> Mutant:  # noqa: A002 -- what a mutant itself calls it
    """Return a violation of a statement by its id: a mutant, or finer.

    Raises:
        InvalidRequest: the id is unknown.
    """
    found = VIOLATIONS.get(id) or MUTANTS.get(id)
    if found is None:
        raise InvalidRequest(f"unknown violation '{id}'{did_you_mean(id, [*VIOLATIONS, *MUTANTS])}")
    return found


# The fate of a violation that is distinguished from the specification.
TOLD = {Fate.KILLED, Fate.ACCEPTABLE}


class TracedCase:
    """A vector with cached properties for the conditions of statements.

    Args:
        vector: any case's vector. The kills in its manifest are not read, since a pack may claim
            any.

    Raises:
        InvalidOperator: the case is invalid although it should run.
        Unsupported: no statement is known of its operator.
        UnreadableFile: one of its files is missing or damaged.
    """

    def __init__(self, vector: Vector) -> None:
        self.vector, self.record = vector, vector.record
        self.call = NodeCall.of_vector(vector)
        self.operator, self.inputs = self.call.row, self.call.inputs
        self.written, self.outputs = self.call.attributes, list(self.call.outputs)
        self.is_rejection = vector.record.expect == "rejection"
        if not self.is_rejection:
            checked(self.operator, self.written, self.inputs, self.outputs, self.record.readings)
        self._noticed: dict[str, bool] = {}

    @property
    def node(self) -> Node:
        """The resolved operator, of a case that runs."""
        return self.vector.node

    @property
    def lengths(self) -> Array | None:
        """The valid steps of each sequence, if given."""
        return self.call.get("lengths")

    @cached_property
    def padding(self) -> Array:
        """The elements of X beyond the ends of sequences."""
        X = self.call.canonical("X")
        if self.lengths is None:
            return X[:0].ravel()
        return np.asarray(X[np.arange(len(X))[:, None] >= self.lengths])

    @cached_property
    def activations(self) -> list[Activation]:
        """The functions of every direction, in the attribute's order."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RnncliWarning)
            return [each for row in self.node.activations for each in row]

    def takers(self, key: str) -> tuple[list[int], int]:
        """Return which functions take an alpha (or beta), and how many of them are given one."""
        takers = [k for k, each in enumerate(self.activations) if getattr(each, key) is not None]
        return takers, len(self.node.values.get(f"activation_{key}") or ())

    @cached_property
    def node_inputs(self) -> list[str]:
        """The input names on the model's node, "" for omitted ones."""
        return list(self._proto.input) if self.vector.model else list(self.record.inputs)

    @cached_property
    def node_outputs(self) -> list[str]:
        """The output names on the model's node, "" for omitted ones."""
        return list(self._proto.output) if self.vector.model else list(self.record.outputs)

    @cached_property
    def _proto(self) -> onnx.NodeProto:
        try:
            nodes = onnx.ModelProto.FromString(self.vector.model).graph.node
        except DecodeError as error:
            raise UnreadableFile(f"{self.vector.id}: its model is not an ONNX model") from error
        if len(nodes) != 1:
            raise UnreadableFile(f"{self.vector.id}: its model has {len(nodes)} nodes instead of 1")
        node: onnx.NodeProto = nodes[0]
        return node

    @cached_property
    def broken(self) -> set[tuple[str, ...]]:
        """The errors of a case that must be refused: ("attributes", "clip"), ("inputs", "P")."""
        found = problems(self.operator, self.written, self.inputs, self.outputs)
        return {problem.subject for problem in found}

    def noticed(self, names: Iterable[str]) -> list[str]:
        """Return the given violations that the case distinguishes from the specification.

        A violation that answers as another reading does is distinguished as well: `verify` calls it
        acceptable, not right.
        """
        wanted = list(names)
        fresh = [violation_named(name) for name in wanted if name not in self._noticed]
        if fresh:
            found = outcomes(self.vector, fresh, PACK_RULE)
            self._noticed |= {name: each.fate in TOLD for name, each in found.items()}
        return [name for name in wanted if self._noticed[name]]


class CaseCondition(NamedTuple):
    """A condition on cases that exercise a statement, in words to follow "the case"."""

    words: str
    holds: Callable[[TracedCase], bool]


def _clips(case: TracedCase) -> bool:
    return bool(case.noticed(["clip-ignored"]))


def _value_after_none(case: TracedCase, key: str) -> bool:
    takers, given = case.takers(key)
    return takers[:given] != [*range(len(takers[:given]))]


def _is_of(case: TracedCase, dtype: str) -> bool:
    X = case.inputs.get(case.operator.inputs[0].name)
    return X is not None and element_type(X) == dtype


# --- cases that must be refused ---


def _breaks_attribute(case: TracedCase, name: str) -> bool:
    return case.broken == {("attributes", name)}


def _breaks_rank(case: TracedCase, name: str) -> bool:
    (row,) = (row for row in case.operator.inputs if row.name == name)
    return ("inputs", name) in case.broken and case.inputs[name].ndim != len(row.shape())


def _breaks_input(case: TracedCase, name: str, *, foreign: bool) -> bool:
    """Whether an input alone is wrong, by its type or, if not `foreign`, by anything else.

    A foreign element type is not allowed, or not that of the inputs of its kind.
    """
    if case.broken != {("inputs", name)}:
        return False
    (row,) = (row for row in case.operator.inputs if row.name == name)
    first = next(each.name for each in case.operator.inputs if each.kind == row.kind)
    given, common = (element_type(case.inputs.get(n, case.inputs[name])) for n in (name, first))
    return (given not in case.operator.input_dtypes(row) or given != common) == foreign


def _mixes_types(case: TracedCase) -> bool:
    given = [case.inputs[row.name] for row in case.operator.inputs if row.name in case.inputs]
    floats = [element_type(values) for values in given if values.dtype.kind != "i"]
    return len({*floats}) > 1 and set(floats) <= set(case.operator.dtypes)


def _bad_hidden_size(case: TracedCase) -> bool:
    R = case.inputs.get("R")
    given = case.written.get("hidden_size")
    if R is None or given is None:
        return False
    (row,) = (row for row in case.operator.inputs if row.role == "R")
    units = row.shape().index(Dim("hidden_size"))
    return bool(len(row.shape()) == R.ndim and given != R.shape[units])


def _bad_directions(case: TracedCase) -> bool:
    W = case.inputs.get("W")
    wanted = 2 if case.written.get("direction") == "bidirectional" else 1
    return W is not None and W.ndim == 3 and W.shape[0] != wanted


def _unknown_activation(case: TracedCase) -> bool:
    given = case.written.get("activations")
    names = {str(name).casefold() for name in given} if isinstance(given, list) else set()
    return not names <= {name.casefold() for name in case.operator.activations}


def _wrong_length(case: TracedCase) -> bool:
    row, lengths = case.call.named("lengths"), case.lengths
    if row is None or lengths is None or not _breaks_input(case, row.name, foreign=False):
        return False
    # The steps of X, also if another part of the case is broken.
    X = case.operator.inputs[0]
    axis = [dim.symbol for dim in X.shape(case.operator.variant(case.written))].index(T)
    return bool(np.any((lengths < 0) | (lengths > case.inputs[X.name].shape[axis])))


# --- linear recurrences ---


def _heads(case: TracedCase) -> tuple[int, int]:
    """The numbers of heads that are written: of queries, and of keys; 0 where there is none."""
    q, kv = (case.written.get(name) for name in ("q_num_heads", "kv_num_heads"))
    return (q or 0), (kv or 0)


def _steps(case: TracedCase) -> int:
    return len(case.call.canonical("X"))


def _wrong_ends(case: TracedCase) -> bool:
    """Whether packed sequences end where none can."""
    row = case.call.named("offsets")
    return row is not None and _breaks_input(case, row.name, foreign=False)


def _has_numbers(case: TracedCase, name: str, *, of_heads: bool) -> bool:
    """Whether each head has one number of a gate, or another thing has: a row, or all heads."""
    given = case.inputs.get(name)
    return given is not None and (given.shape[-1] == _heads(case)[1]) == of_heads


CONDITIONS: Mapping[str, Callable[[TracedCase], bool]] = {
    "has one direction": lambda c: len(c.node.directions) == 1,
    "is bidirectional": lambda c: len(c.node.directions) == 2,
    "has a length below T over padding that is not zero": lambda c: bool(np.any(c.padding)),
    "gives no lengths": lambda c: c.lengths is None,
    "has values beyond the clip": _clips,
    "has no value beyond the clip": lambda c: not _clips(c),
    "has output_sequence 0": lambda c: not c.written.get("output_sequence"),
    "has a scale for each direction": lambda c: c.inputs["W_scale"].ndim == 1,
    "has a scale for each column": lambda c: c.inputs["W_scale"].ndim == 2,
    "holds W and R in the model": lambda c: c.record.weights != "inputs",
    "gives the required inputs alone": lambda c: (
        [*c.inputs] == [row.name for row in c.operator.inputs if not row.optional]
    ),
    "gives every input": lambda c: [*c.inputs] == [row.name for row in c.operator.inputs],
    'has "" for an input before one that is given': lambda c: (
        "" in "\0".join(c.node_inputs).rstrip("\0").split("\0")
    ),
    'ends its inputs with ""': lambda c: bool(c.node_inputs) and not c.node_inputs[-1],
    "leaves the last inputs out of its list": lambda c: (
        c.operator.inputs[-1].name not in c.inputs and len(c.node_inputs) < len(c.operator.inputs)
    ),
    "leaves the last outputs out of its list": lambda c: (
        bool(c.node_outputs) and len(c.node_outputs) < len(c.operator.outputs)
    ),
    'has "" for an output before one that is asked for': lambda c: (
        c.outputs != [row.name for row in c.operator.outputs[: len(c.outputs)]]
    ),
    "has one step": lambda c: _steps(c) == 1,
    "has several steps": lambda c: _steps(c) > 1,
    "has fewer steps than the window": lambda c: _steps(c) < c.inputs["weight"].shape[-1] - 1,
    "has as many heads of queries as of keys": lambda c: len({*_heads(c)}) == 1,
    "has more heads of queries than of keys": lambda c: _heads(c)[0] > _heads(c)[1],
    "has more heads of keys than of queries": lambda c: _heads(c)[0] < _heads(c)[1],
    "has taps that are apart": lambda c: c.written.get("dilation", 1) > 1,
    "has several heads of queries": lambda c: c.call.size("q_num_heads") > 1,
    "has a decay of three axes": lambda c: "decay" in c.inputs and c.inputs["decay"].ndim == 3,
    "has several sequences": lambda c: c.call.sequences > 1,
    "has a decay of each head": lambda c: _has_numbers(c, "decay", of_heads=True),
    "has a decay of each row": lambda c: _has_numbers(c, "decay", of_heads=False),
    "has a rate of each head": lambda c: _has_numbers(c, "beta", of_heads=True),
    "has one rate for all heads": lambda c: _has_numbers(c, "beta", of_heads=False),
    # of cases that must be refused
    "has heads of queries that make no groups": lambda c: (
        min(_heads(c)) > 0 and bool(_heads(c)[0] % _heads(c)[1])
    ),
    "has ends that no sequences have": _wrong_ends,
    "names a function that is not listed": lambda c: (
        _breaks_attribute(c, "activations") and _unknown_activation(c)
    ),
    "names too few or too many functions, all of them listed": lambda c: (
        _breaks_attribute(c, "activations") and not _unknown_activation(c)
    ),
    "has a hidden_size that R contradicts": _bad_hidden_size,
    "has a direction that W contradicts": _bad_directions,
    "has a length below 0 or above T": _wrong_length,
    "has an empty tensor": lambda c: any(0 in values.shape for values in c.inputs.values()),
    "has floating-point tensors of two types": _mixes_types,
}
"""Conditions that stand alone: words -> whether a case meets them."""

BLANKS: Mapping[str, Callable[[Operator], Collection[str]]] = {
    "attribute": lambda row: row.attributes,
    "input": lambda row: [each.name for each in row.inputs],
    "inputs": lambda row: [each.name for each in row.inputs],
    "outputs": lambda row: [each.name for each in row.outputs],
    "function": lambda row: row.activations,
}
"""What may be put in place of a blank of that name, by operator; in place of others, any word."""

# In order: the first that fits is taken.
CONDITIONS_WITH_BLANKS: Mapping[str, Callable[..., bool]] = {
    "writes {attribute}": lambda c, name: name in c.written,
    "writes {attribute} {value}": lambda c, name, value: (
        name in c.written and c.written[name] == plain_scalar(value)
    ),
    "writes {attribute} other than {value} and {other}": lambda c, name, *values: (
        name in c.written and c.written[name] not in map(plain_scalar, values)
    ),
    "leaves {attribute} out": lambda c, name: name not in c.written,
    "gives {key} to a function after one that takes none": _value_after_none,
    "gives no {inputs}": lambda c, *names: not any(name in c.inputs for name in names),
    "gives {inputs}": lambda c, *names: all(name in c.inputs for name in names),
    "asks for {outputs} in vain": lambda c, name: c.broken == {("outputs", name)},
    "asks for {outputs}": lambda c, *names: all(name in c.outputs for name in names),
    "does not ask for {outputs}": lambda c, *names: not any(n in c.outputs for n in names),
    "has layout {layout}": lambda c, layout: c.node.layout == int(layout),
    "is {direction}": lambda c, direction: c.node.values["direction"] == direction,
    "is of {dtype}": _is_of,
    "has {input} of {dtype}": lambda c, name, dtype: (
        name in c.inputs and element_type(c.inputs[name]) == dtype
    ),
    "uses {function}": lambda c, name: any(each.name == name for each in c.activations),
    "uses {function} without {key}": lambda c, name, key: (
        name in {c.activations[k].name for k in c.takers(key)[0][c.takers(key)[1] :]}
    ),
    "has another answer under {choice}": lambda c, choice: choice in c.record.alternatives,
    "has different {sizes}": lambda c, *names: (
        len({c.call.sizes[name] for name in names}) == len(names)
    ),
    # of cases that must be refused
    "breaks {attribute} alone": _breaks_attribute,
    "breaks the shape of {inputs} alone": lambda c, name: _breaks_input(c, name, foreign=False),
    "breaks the element type of {inputs} alone": lambda c, name: _breaks_input(
        c, name, foreign=True
    ),
    "breaks the number of dimensions of {inputs}": _breaks_rank,
    "leaves out {inputs} alone": lambda c, *names: (
        c.broken == {("inputs",)} and any(name not in c.inputs for name in names)
    ),
}
"""Conditions with blanks: words -> whether a case meets them, given what is put in the blanks.

The plural ones, `inputs`, `outputs` and `sizes`, take several names: `gives W and R`.
"""
PATTERNS = {
    form: re.compile(re.sub(r"\{\w+?(s?)\}", lambda blank: "(.+)" if blank[1] else r"(\S+)", form))
    for form in CONDITIONS_WITH_BLANKS
}


def all_of(conditions: Sequence[CaseCondition]) -> CaseCondition:
    """Return the condition that all of some hold; of none, one that always does."""
    words = " and ".join(each.words for each in conditions)
    return CaseCondition(words, lambda case: all(each.holds(case) for each in conditions))


def condition_named(words: str, operators: Sequence[Operator]) -> CaseCondition:
    """Return the condition of some words, such as `writes clip`.

    Args:
        words: a row of a table, with something in each blank.
        operators: those of the statement, whose attributes, inputs and outputs may be named.

    Raises:
        InvalidRequest: the condition is unknown, or a name in it.
    """
    if words in CONDITIONS:
        return CaseCondition(words, CONDITIONS[words])
    matches = ((form, found) for form, each in PATTERNS.items() if (found := each.fullmatch(words)))
    form, found = next(matches, ("", None))
    if found is None:
        near = [*CONDITIONS]
        for each in PATTERNS:  # with the words that stand in the places of its blanks
            pairs = zip_longest(each.split(), words.split(), fillvalue="")
            near.append(" ".join(word if "{" in own else own for own, word in pairs).strip())
        raise InvalidRequest(f"unknown condition '{words}'{did_you_mean(words, near)}")

    names: list[str] = []
    for blank, given in zip(re.findall(r"\{(\w+)\}", form), found.groups(), strict=True):
        some = re.split(r", | and no | and | or ", given) if blank.endswith("s") else [given]
        for name in some:
            if blank in BLANKS and not any(name in BLANKS[blank](row) for row in operators):
                known = dict.fromkeys(each for row in operators for each in BLANKS[blank](row))
                raise InvalidRequest(unknown(blank.removesuffix("s"), name, known))
        names += some
    return CaseCondition(words, lambda case: CONDITIONS_WITH_BLANKS[form](case, *names))
