"""What a run of a model put to the test of its recurrent nodes: what could have been wrong.

A node's features are right in any kernel where they cannot matter: the recurrent product in one
step from a zero state, lengths where all sequences are as long as X. Whether they matter is asked
of mutants: one that has a feature wrong must give other outputs on what reached the node.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.backends.backend import Compute
from rnncli.models.data_sets import ROUNDINGS
from rnncli.models.model import declared_shape, rooted
from rnncli.models.node_listing import recurrent_sites
from rnncli.models.streams import streams_of
from rnncli.mutants.catalogue import MUTANTS
from rnncli.mutants.mutant import RIGHT
from rnncli.numerics import dtype_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.files.formats.format import Tensors
    from rnncli.models.model import Model
    from rnncli.models.observation import Occurrence
    from rnncli.mutants.mutant import Mutant
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence, Result

# The executions of a node that are kept, and the nodes of which a sentence names the first.
KEPT, NAMED = 4, 3


class Feature(NamedTuple):
    """A feature of a node, which a kernel may have wrong.

    Attributes:
        name: the feature, as sentences have it.
        of: recurrence -> whether it has it.
        mutants: ids of mutants that have it wrong; one that is seen is enough.
        needs: the free axis without which it may have no effect, "time" or "batch"; "" for none.
    """

    name: str
    of: Callable[[Recurrence], bool]
    mutants: tuple[str, ...]
    needs: str = ""


STEPPING = ("states-never-advance", "initial-h-ignored")
FEATURES = (
    Feature("recurrent product", lambda _: True, STEPPING, "time"),
    Feature(
        "Ct-1",
        lambda r: len(r.initial) > 1,
        ("forget-bias-plus-one", "initial-c-ignored", "states-never-advance"),
        "time",
    ),
    Feature(
        "order of steps",
        lambda r: len(r.X) > 1,
        ("reverse-runs-forward", "forward-runs-reverse"),
        "time",
    ),
    Feature(
        "second direction", lambda r: len(r.directions) > 1, ("outputs-of-directions-swapped",)
    ),
    Feature("sequences beyond the first", lambda _: True, ("batch-first-row-only",), "batch"),
    Feature("sequence_lens", lambda r: r.lengths is not None, ("lengths-ignored",)),
    Feature("input_forget", lambda r: r.options.input_forget, ("input-forget-ignored",)),
    Feature("P", lambda r: r.P is not None and bool(r.P.any()), ("peepholes-dropped",)),
    Feature(
        "linear_before_reset",
        lambda r: r.options.linear_before_reset,
        ("linear-before-reset-ignored",),
        "time",
    ),
)


class Exercise:
    """The executions of a model's recurrent nodes, and what they could not have had wrong."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._kept: dict[tuple[str, ...], list[Occurrence]] = defaultdict(list)

    def add(self, occurrence: Occurrence) -> None:
        """Keep an execution, unless there are enough of its node."""
        kept = self._kept[rooted(self._model, occurrence.path)]
        if len(kept) < KEPT and occurrence.node.outputs:
            kept.append(occurrence)

    def missing(self) -> list[str]:
        """Return in sentences the features of nodes that no execution could have had wrong."""
        found: dict[tuple[str, str], list[str]] = defaultdict(list)
        free = _free_axes(self._model) if self._kept else frozenset()
        for path, occurrences in self._kept.items():
            trials = [_Trial(each) for each in occurrences]
            for feature in FEATURES:
                if feature.needs and feature.needs not in free:
                    continue
                reasons = [each.problem(feature) for each in trials if each.has(feature)]
                if reasons and all(reasons):
                    found[feature.name, reasons[0]].append(path[-1])
        return [
            f"{feature} of {_listed(names)} ({reason})"
            for (feature, reason), names in found.items()
        ]

    def idle(self) -> list[str]:
        """Return the recurrent nodes that did not run, as in branches that were not taken."""
        sites = [rooted(self._model, (*s.path, s.name)) for s, _ in recurrent_sites(self._model)]
        return [" / ".join(path) for path in sites if path not in self._kept]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(f"'{name}'" for name in names[:NAMED]) + more


def _free_axes(model: Model) -> frozenset[str]:
    """Return which of time and the batch the model leaves open; an axis may be either."""
    batch = {axis.size for axis in streams_of(model).batch.values()}
    shapes = [declared_shape(value) for value in model.inputs]
    sizes = {size for shape in shapes for size in shape or ("",) if isinstance(size, str)}
    named = {"time"} if sizes - batch else set()
    return frozenset(named | ({"batch"} if batch & sizes else set()))


class _Trial:
    """One execution of a node, evaluated right and by mutants, in float64."""

    def __init__(self, occurrence: Occurrence) -> None:
        self._node = occurrence.node
        self._recurrence = self._node.recurrence(occurrence.inputs)
        self._right: Tensors | None = None

    def has(self, feature: Feature) -> bool:
        """Whether the node has a feature."""
        return feature.of(self._recurrence)

    def problem(self, feature: Feature) -> str:
        """Return why no mutant that has a feature wrong is seen, or ""."""
        reasons: list[str] = []
        for mutant in map(MUTANTS.__getitem__, feature.mutants):
            if self._recurrence.cell.name in mutant.cells:
                reasons.append(mutant.unseen(self._recurrence) or self._unseen(mutant))
                if not reasons[-1]:
                    return ""
        return ", and ".join(dict.fromkeys(reasons))

    def _unseen(self, mutant: Mutant) -> str:
        """Return why a mutant is not seen, or "" if its outputs are beyond any tolerance."""
        if self._right is None:
            self._right = self._outputs(RIGHT.run(self._recurrence, Compute.FLOAT64))
        wrong = self._outputs(mutant.run(self._recurrence))
        seen = (_is_apart(right, wrong[name]) for name, right in self._right.items())
        return "" if any(seen) else "no output is another without it"

    def _outputs(self, result: Result) -> Tensors:
        return self._node.outputs_of(result)


def _is_apart(right: Array, wrong: Array) -> bool:
    """Whether some element is further off than roundings of a right kernel may be."""
    one, other = (np.nan_to_num(each.astype(np.float64)) for each in (right, wrong))
    allowed = ROUNDINGS * 2.0 ** -dtype_of(right).precision * np.abs(one).max(initial=0.0)
    return bool((np.abs(one - other) > allowed).any())
