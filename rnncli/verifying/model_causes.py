"""Causes of a model's wrong outputs: known bugs put into its recurrent nodes, in one or in all.

Outputs of a whole model that another program computed say nothing of its nodes. So every known bug
is a hypothesis on every node: the model is evaluated with it, and its outputs are compared with
those of the program, as far as it gave them.
"""

from __future__ import annotations

import sys
import time
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.errors import Exhausted, RnncliError
from rnncli.judging.comparing.comparison import MODEL, Sides, compare
from rnncli.judging.comparing.likeness import differences, in_order, order_of
from rnncli.judging.comparing.margins import errors_of, problem_of
from rnncli.judging.explaining.fitting import LEAST_ULPS, READING, replacing
from rnncli.judging.explaining.hypotheses import edit_of, sentence_of
from rnncli.judging.tolerances.tolerance import ulp_width
from rnncli.models.evaluator import Evaluator, Library
from rnncli.models.model import rooted
from rnncli.models.observation import Watch
from rnncli.models.steps import OwnRecurrentNode
from rnncli.mutants.catalogue import is_scored, mutants_of
from rnncli.mutants.mutant import RIGHT, Mutant
from rnncli.mutants.runs import Runs, part_of
from rnncli.mutants.scalings import FEWEST, scalings_of
from rnncli.numerics import dtype_of
from rnncli.recurrence.readings import READINGS
from rnncli.running.request import OutputsCause
from rnncli.talk.terminal import tell
from rnncli.talk.words import counted
from rnncli.verifying.layer_mistakes import are_alike, composed, of_layers, with_weights
from rnncli.verifying.model_precision import error_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping, Sequence

    from rnncli.files.formats.format import Tensors
    from rnncli.judging.tolerances.tolerance import Tolerance
    from rnncli.models.model import Model
    from rnncli.models.observation import Observer, Occurrence
    from rnncli.models.steps import Step
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence
    from rnncli.running.request import Request, Run

    Path = tuple[str, ...]

# Families whose bugs conversions and kernels often have: they come first, as time may run out.
FIRST = (
    *("gate order", "linear_before_reset", "biases", "weight layout", "transposes", "directions"),
    *("layout", "initial states", "activations", "peepholes", "lengths"),
)
# The seconds after which no more hypotheses are begun.
SECONDS = 30.0
# Those after which a terminal is told what takes so long.
NOTICE = 2.0
# The part of the wrong elements that a bug must explain to be told where it does not explain all.
MOST_OF = 0.5


class Placed(NamedTuple):
    """A hypothesis: bugs of some nodes of a model."""

    name: str
    sentence: str
    bugs: Mapping[Path, Mutant]


class PlacedFit(NamedTuple):
    """How far the outputs of a hypothesis are those that were given."""

    explained: int  # the wrong elements that it gives
    spoiled: int  # the right elements that it does not give
    margin: float  # the largest error / tolerance


class Snapshots(Watch):
    """A watch that keeps what a run left before each recurrent node, at most depth in a body."""

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self.before: dict[Path, tuple[Step, Mapping[Any, Any]] | None] = {}
        self._last: tuple[Step, Mapping[Any, Any]] | None = None

    def ran(self, step: Step, values: MutableMapping[str | None, Any]) -> None:
        """Process a step that has run."""
        if isinstance(step.operator, OwnRecurrentNode):
            self.before.setdefault(step.path, self._last)
        super().ran(step, values)
        if len(step.path) == 1:
            self._last = step, {**values}


class WrongModel:
    """A model beside outputs of another program that differ, and what bugs make of the model.

    Args:
        model: the model.
        request: how it is evaluated.
        run: its inputs, and the outputs that the program gave.
        tolerance: that by which the outputs differ.
    """

    def __init__(self, model: Model, request: Request, run: Run, tolerance: Tolerance) -> None:
        self._model, self._inputs = model, run.inputs
        # The first execution of each node, and how often it ran.
        self.nodes: dict[Path, Occurrence] = {}
        self._count: dict[Path, int] = {}
        self._bugs: Mapping[Path, Mutant] = {}
        self._given: Mapping[Path, Tensors] = {}
        snapshots = Snapshots(self._observe)
        library = Library(model, request.arithmetic, snapshots)
        self._evaluator = Evaluator(model.proto.graph, model.opsets, library)
        self._right = self._evaluator.outputs(run.inputs)
        self._before = {rooted(model, path): left for path, left in snapshots.before.items()}
        self._theirs = {
            name: values
            for name, values in (run.expected or {}).items()
            if name in self._right
            and values.dtype.kind not in "OSUc"
            and not problem_of(self._right[name], values)
        }
        self._allowed = {}
        for name, values in self._theirs.items():
            bounds = tolerance.of(name)
            width = np.maximum(
                bounds.allowed(values.reshape(-1)), ulp_width(bounds.max_ulp, values.reshape(-1))
            )
            self._allowed[name] = np.nan_to_num(width.reshape(values.shape))
        self._wrong = {
            name: errors_of(self._right[name], values, self._allowed[name]).margin > 1
            for name, values in self._theirs.items()
        }
        self.wrong = sum(int(mask.sum()) for mask in self._wrong.values())

    def _observe(self, occurrence: Occurrence) -> Tensors | None:
        path = rooted(self._model, occurrence.path)
        if path in self._given:
            return self._given[path]
        if path in self._bugs:
            recurrence = occurrence.node.recurrence(occurrence.inputs)
            return occurrence.node.outputs_of(self._bugs[path].run(recurrence))
        if not self._bugs and not self._given:
            self.nodes.setdefault(path, occurrence)
            self._count[path] = self._count.get(path, 0) + 1
        return None

    def outputs(
        self, bugs: Mapping[Path, Mutant], given: Mapping[Path, Tensors] | None = None
    ) -> Tensors | None:
        """Return the model's outputs with bugs, or given outputs, of nodes; None if it fails."""
        self._bugs, self._given = bugs, given or {}
        first = next(path for path in self.nodes if path in self._bugs or path in self._given)
        try:
            return self._evaluator.outputs(self._inputs, self._before[first])
        except Exhausted:
            raise
        except RnncliError:  # as bugs may, where a model checks shapes
            return None

    def fit(self, outputs: Tensors) -> PlacedFit:
        """Compare a hypothesis' outputs with those that were given."""
        explained = spoiled = 0
        margin = 0.0
        for name, values in self._theirs.items():
            found, allowed = outputs[name], self._allowed[name]
            if problem_of(found, values):
                return PlacedFit(0, values.size, np.inf)
            if dtype_of(values).is_float:
                widest = np.maximum(allowed.max(initial=0.0), ulp_width(LEAST_ULPS, found))
                allowed = np.where(found == self._right[name], allowed, widest)
            apart = errors_of(found, values, allowed).margin
            fits, wrong = apart <= 1, self._wrong[name]
            explained += int((fits & wrong).sum())
            spoiled += int((~fits & ~wrong).sum())
            margin = max(margin, float(apart.max(initial=0.0)))
        return PlacedFit(explained, spoiled, margin)

    def groups(self) -> Iterator[Iterator[tuple[Placed, PlacedFit]]]:
        """Yield the hypotheses in groups: on all nodes of a cell at once, and on each by itself.

        Those that conversions have come first, on all nodes, and weights that are scaled; then what
        is composed of those.
        """
        by_cell: dict[str, list[Path]] = {}
        for path, occurrence in self.nodes.items():
            by_cell.setdefault(occurrence.node.operator.cell.name, []).append(path)
        likeliest = sorted(self.nodes, key=self._overlap, reverse=True)
        for stage in range(3):
            # First the bugs that conversions have, and no finer variants of them.
            mutants = {}
            for cell in by_cell:
                first = [m for m in mutants_of(cell) if m.family in FIRST and is_scored(m.id)]
                rest = [m for m in mutants_of(cell) if m not in first]
                mutants[cell] = (first, [*composed(first)], rest)[stage]
            for cell, paths in by_cell.items():
                if len(paths) > 1:
                    yield self._tried_in(mutants[cell], paths)
            for path in likeliest:
                own = [*self._own(path)] if stage == 0 else []
                cell = self.nodes[path].node.operator.cell.name
                yield self._tried_alone(path, own + mutants[cell])
            if stage == 0:
                yield self._swapped()
                yield from map(self._scaled, likeliest if self.wrong >= FEWEST else [])

    def _overlap(self, path: Path) -> float:
        """Return how far the elements that depend on a node are those that are wrong."""
        occurrence = self.nodes[path]
        made = occurrence.node.outputs_of(RIGHT.run(_recurrence(occurrence)))
        zeros = {name: np.zeros_like(values) for name, values in made.items()}
        found = self.outputs({}, {path: zeros}) or {}
        both = either = 0
        for name, wrong in self._wrong.items():
            right, allowed = self._right[name], self._allowed[name]
            if name in found and found[name].shape == wrong.shape:
                moved = errors_of(found[name], right, allowed).margin > 1
                both += int((moved & wrong).sum())
                either += int((moved | wrong).sum())
        return both / max(either, 1)

    def _tried_in(
        self, mutants: Sequence[Mutant], paths: Sequence[Path]
    ) -> Iterator[tuple[Placed, PlacedFit]]:
        """Try bugs that several nodes have, unless they are seen in at most one."""
        recurrences = {path: _recurrence(self.nodes[path]) for path in paths}
        for mutant in mutants:
            bugs = {path: mutant for path, each in recurrences.items() if not mutant.unseen(each)}
            if len(bugs) > 1 and (outputs := self.outputs(bugs)):
                yield Placed(mutant.id, mutant.sentence, bugs), self.fit(outputs)

    def _tried_alone(
        self, path: Path, mutants: Sequence[Mutant]
    ) -> Iterator[tuple[Placed, PlacedFit]]:
        """Try bugs of one node; those that give it the same outputs cost one evaluation."""
        occurrence = self.nodes[path]
        runs, known = Runs(_recurrence(occurrence)), dict[tuple[bytes, ...], PlacedFit]()
        for mutant in mutants:
            if mutant.unseen(runs.recurrence):
                continue
            placed = Placed(mutant.id, mutant.sentence, {path: mutant})
            if self._count[path] > 1:
                if outputs := self.outputs(placed.bugs):
                    yield placed, self.fit(outputs)
                continue
            for _, result in runs.results([(mutant,)]):
                made = occurrence.node.outputs_of(part_of(result, 0))
                key = tuple(values.tobytes() for values in made.values())
                if key not in known and (outputs := self.outputs({}, {path: made})):
                    known[key] = self.fit(outputs)
                if key in known:
                    yield placed, known[key]

    def _own(self, path: Path) -> Iterator[Mutant]:
        """Yield the hypotheses of a node that no table has: other readings, and bugs of layers."""
        node, inputs = self.nodes[path].node, self.nodes[path].inputs
        for name, own in node.readings.items():
            for choice in READINGS[name].choices:
                if choice != own:
                    id_ = f"{name}={choice}"
                    other = node.under({name: choice}).recurrence(inputs)
                    yield Mutant(id_, (), READING, sentence_of(id_), "", replacing(other))
        others = {at[-1]: _recurrence(each) for at, each in self.nodes.items() if at != path}
        yield from of_layers(_recurrence(self.nodes[path]), others)

    def _scaled(self, path: Path) -> Iterator[tuple[Placed, PlacedFit]]:
        """Try the weights of a node multiplied by the numbers that fit the outputs best."""
        names = [name for name, values in self._theirs.items() if dtype_of(values).is_float]

        def flat(outputs: Tensors) -> Array:
            parts = (outputs[name].astype(np.float64).ravel() for name in names)
            return np.concatenate([np.zeros(0), *parts])

        def outputs(bug: Mutant) -> Array | None:
            return None if (found := self.outputs({path: bug})) is None else flat(found)

        right, theirs = flat(self._right), flat(self._theirs)
        for scalings in scalings_of(_recurrence(self.nodes[path])):
            for bug in (scaling.fitted(outputs, right, theirs) for scaling in scalings):
                if bug and (found := self.outputs({path: bug})):
                    yield Placed(bug.id, bug.sentence, {path: bug}), self.fit(found)

    def _swapped(self) -> Iterator[tuple[Placed, PlacedFit]]:
        """Try each two layers with each other's weights."""
        for pair in combinations(self.nodes, 2):
            weights = [_recurrence(self.nodes[path]) for path in pair]
            if are_alike(*weights):
                taken = [with_weights(theirs, "") for theirs in reversed(weights)]
                bugs = dict(zip(pair, taken, strict=True))
                if outputs := self.outputs(bugs):
                    sentence = "Each of the two layers has the weights of the other."
                    yield Placed("layers-swapped", sentence, bugs), self.fit(outputs)


def _recurrence(occurrence: Occurrence) -> Recurrence:
    return occurrence.node.recurrence(occurrence.inputs)


def cause_of(model: Model, request: Request, run: Run, tolerance: Tolerance) -> OutputsCause | None:
    """Return the bug that gives the outputs that a run should have given.

    Returns:
        Without nodes if none does; None if there was nothing to try.
    """
    search = WrongModel(model, request, run, tolerance)
    if not (search.wrong and search.nodes):
        return None
    begun, tried, stopped, is_told = time.monotonic(), 0, False, False
    fits: list[tuple[Placed, PlacedFit]] = []
    for group in search.groups():
        for placed, fit in group:
            tried += 1
            if fit.explained >= MOST_OF * search.wrong and not fit.spoiled:
                fits.append((placed, fit))
            seconds = time.monotonic() - begun
            if seconds > NOTICE and not is_told and sys.stderr.isatty():
                is_told = True
                nodes = counted(len(search.nodes), "recurrent node")
                tell(f"{model.name}: trying known bugs in {nodes}, for at most {SECONDS:g} s")
            stopped = seconds > SECONDS
            if stopped:
                break
        if stopped or any(fit.explained == search.wrong for _, fit in fits):
            break
    if not fits:
        return OutputsCause((), "", {}, "", (), 0, search.wrong, tried, stopped)
    fits.sort(key=lambda each: (-each[1].explained, each[1].margin))
    placed, best = fits[0]
    alike = {
        each.name: fit.margin
        for each, fit in fits
        if fit.explained == best.explained and each.bugs.keys() == placed.bugs.keys()
    }
    first = search.nodes[next(iter(placed.bugs))]
    return OutputsCause(
        nodes=tuple(" / ".join(path) for path in placed.bugs),
        operator=first.node.operator.name,
        fits=alike,
        sentence=placed.sentence,
        edit=tuple(edit_of(placed.name, first.node.operator.cell.name)),
        explained=best.explained,
        wrong=search.wrong,
        tried=tried,
        stopped=stopped,
    )


def why_they_differ(  # noqa: PLR0917 -- two sides, and what is known of both
    model: Model,
    request: Request,
    run: Run,
    theirs: Tensors,
    ours: Tensors,
    tolerance: Tolerance,
    has: str,
) -> dict[str, Any]:
    """Return why outputs of another program differ from the model's, as fields of a report.

    It is a bug that gives all of them, or else arithmetic that makes such errors, and what the two
    have in common.

    Args:
        model: the model.
        request: how it is evaluated.
        run: its inputs.
        theirs: the outputs of the other program.
        ours: the model's.
        tolerance: that by which the outputs differ.
        has: what has the others, as in `Sides`.
    """
    likes = differences(theirs, ours, tolerance, Sides(has, MODEL))
    told = tuple(f"{name}: {each.sentence}" for name, found in likes.items() for each in found)
    arranged = {
        name: in_order(values, order, ours[name].shape)
        for name, values in theirs.items()
        if name in ours and (order := order_of(values.shape, ours[name].shape)) is not None
    }
    if not any(output.differing for output in compare(ours, arranged, tolerance)):
        return {"likeness": told}
    size = error_size(model, request, run.inputs, arranged)
    if size and size.is_same:
        return {"error_size": size}
    cause = cause_of(model, request, run._replace(expected=arranged), tolerance)
    if cause and cause.explained == cause.wrong:
        return {"cause": cause}
    if all(any(each.explains for each in found) for found in likes.values()):
        return {"likeness": told}
    return {"cause": cause, "error_size": size, "likeness": told}
