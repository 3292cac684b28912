"""What a run of a model put to the test of its recurrent nodes: what could have been wrong.

A node's features are right in any kernel where they cannot matter: the recurrent product in one
step from a zero state, lengths where all sequences are as long as X. Whether they matter is asked
of mutants: one that has a feature wrong must give other outputs on what reached the node, and so
must the model with it, beyond its tolerance.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.errors import Exhausted, RnncliError
from rnncli.models.model import declared_shape, rooted
from rnncli.models.node_listing import fed_tensors, recurrent_sites
from rnncli.models.streams import streams_of
from rnncli.mutants.catalogue import MUTANTS
from rnncli.mutants.equivalence import sizes_of
from rnncli.mutants.mutant import RIGHT
from rnncli.numerics import ROUNDINGS, dtype_of
from rnncli.recurrence.recurrence import Compute, Direction
from rnncli.talk.words import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.models.model import Model
    from rnncli.models.observation import Observer, Occurrence
    from rnncli.mutants.mutant import Mutant
    from rnncli.recurrence.recurrence import Recurrence

    Path = tuple[str, ...]

# The executions of a node that are kept, the nodes of which a sentence names the first, and those
# each of which costs an evaluation of the model.
KEPT, NAMED, SILENCED = 4, 3, 8


class Feature(NamedTuple):
    """A feature of a node, which a kernel may have wrong."""

    name: str  # the feature, as sentences have it
    of: Callable[[Recurrence], bool]  # recurrence -> whether it has it
    mutants: tuple[str, ...]  # ids of mutants that have it wrong; one that is seen is enough
    # the axis, "time" or "batch", along which one alone may have no effect, which is not told where
    # the model declares one; "" for none
    needs: str = ""
    # the input that is the feature, which it has as well where a call may give it other values than
    # those without effect; "" for none
    role: str = ""


FEATURES = (
    Feature("recurrent product", lambda _: True, ("recurrent-product-dropped",), "time"),
    Feature(
        "Ct-1",
        lambda r: len(r.initial) > 1,
        ("forget-bias-plus-one", "initial-c-ignored", "states-never-advance"),
        "time",
    ),
    Feature(
        "state between steps",
        lambda _: True,
        ("old-state-dropped", "state-never-advances", "window-never-advances"),
        "time",
    ),
    Feature(
        "past_state",
        lambda r: not r.cell.projects and r.initial[1] is not None,
        ("past-state-ignored", "past-window-ignored"),
        role="initial_c",
    ),
    Feature(
        "decay",
        lambda r: r.options.attention is not None and r.options.attention.decays > 0,
        ("decay-ignored",),
    ),
    Feature(
        "beta",
        lambda r: r.options.attention is not None and r.options.attention.has_beta,
        ("beta-taken-for-1",),
    ),
    Feature(
        "groups of heads",
        lambda r: r.options.attention is not None and r.options.attention.group > 1,
        ("groups-tiled", "first-of-group-for-all"),
    ),
    Feature(
        "shared queries",
        lambda r: r.options.attention is not None and r.options.attention.share > 1,
        ("shared-queries-tiled",),
    ),
    Feature("dilation", lambda r: r.options.gap > 0, ("dilation-ignored",)),
    Feature("activation", lambda r: r.options.silu, ("silu-skipped",)),
    Feature(
        "forward direction",
        lambda r: len(r.X) > 1 and Direction.FORWARD in r.directions,
        ("forward-runs-reverse",),
    ),
    Feature(
        "reverse direction",
        lambda r: len(r.X) > 1 and Direction.REVERSE in r.directions,
        ("reverse-runs-forward",),
    ),
    Feature(
        "second direction", lambda r: len(r.directions) > 1, ("outputs-of-directions-swapped",)
    ),
    Feature(
        "sequences beyond the first",
        lambda _: True,
        ("batch-first-row-only", "output-of-first-batch-only", "convolution-of-first-batch-only"),
        "batch",
    ),
    Feature("sequence_lens", lambda r: r.lengths is not None, ("lengths-ignored",), role="lengths"),
    Feature("input_forget", lambda r: r.options.input_forget, ("input-forget-ignored",)),
    Feature("clip", lambda r: r.clip < np.inf, ("clip-ignored",)),
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

    @property
    def paths(self) -> list[Path]:
        """The recurrent nodes that ran here."""
        return [*self._kept]

    def missing(self, compared: Callable[[Observer], bool] | None = None) -> list[str]:
        """Return in sentences what no execution could have had wrong.

        Args:
            compared: whether the model's outputs agree although an observer gives nodes others.
                With it, a node that did not run is missing, and so is what reaches no output.
        """

        def agrees(observer: Observer) -> bool:
            """Whether outputs agree with what an observer gives, on which it may not run."""
            try:
                return compared is not None and compared(observer)
            except Exhausted:
                raise
            except RnncliError:
                return False

        found: dict[tuple[str, str], list[str]] = defaultdict(list)
        wrong: dict[str, dict[Path, list[Mutant]]] = defaultdict(dict)

        # The roles of each node's inputs whose values come from the model's inputs.
        fed: dict[Path, set[str]] = {}
        tensors = fed_tensors(self._model)
        for site, row in recurrent_sites(self._model):
            path = rooted(self._model, (*site.path, site.name))
            given = zip(row.inputs, site.node.input, strict=False)
            fed[path] = {each.role for each, name in given if name in tensors}
            if compared and path not in self._kept:  # as in branches that were not taken
                found["outputs", "it did not run"].append(" / ".join(path))

        # Which of time and the batch the model leaves open; an axis may be either.
        free: set[str] = set()
        if self._kept:
            batch = {axis.size for axis in streams_of(self._model).batch.values()}
            shapes = [declared_shape(value) or ("",) for value in self._model.inputs]
            sizes = {size for shape in shapes for size in shape if isinstance(size, str)}
            free |= ({"time"} if sizes - batch else set()) | ({"batch"} if batch & sizes else set())
        silenced = [path for path, kept in self._kept.items() if kept][:SILENCED]
        for path, occurrences in self._kept.items():
            if path in silenced and agrees(partial(self._silent, path)):
                reason = "with zeros in their place the model's agree, too"
                found["outputs", reason].append(path[-1])
                continue
            trials = [_Trial(each) for each in occurrences]
            for feature in FEATURES:
                asked = [each for each in trials if each.asks(feature, free, fed.get(path, set()))]
                if not asked:
                    continue
                seen = dict.fromkeys(m for each in asked for m in each.seen(feature))
                if seen:
                    wrong[feature.name][path] = [*seen]
                else:
                    found[feature.name, asked[0].problem(feature)].append(path[-1])
        for name, mutants in wrong.items():
            rounds = range(max(map(len, mutants.values())))
            if all(agrees(partial(self._mutated, mutants, k)) for k in rounds):
                names = [path[-1] for path in mutants]
                found[name, "no output of the model is another without it"] += names

        sentences = []
        for (what, reason), names in found.items():
            named = listed([f"'{name}'" for name in names], NAMED)
            sentences.append(f"{what} of {named} ({reason})")
        return sentences

    def _silent(self, silent: Path, occurrence: Occurrence) -> Tensors | None:
        """Return zeros in place of a node's outputs."""
        if rooted(self._model, occurrence.path) != silent:
            return None
        right = occurrence.node.recurrence(occurrence.inputs)
        made = occurrence.node.outputs_of(RIGHT.run(right, Compute.FLOAT64))
        return {name: np.zeros_like(values) for name, values in made.items()}

    def _mutated(
        self, mutants: Mapping[Path, list[Mutant]], k: int, occurrence: Occurrence
    ) -> Tensors | None:
        """Return the outputs of a node by the mutant of its path with number k, or its last."""
        path = rooted(self._model, occurrence.path)
        if path not in mutants:
            return None
        mutant = mutants[path][min(k, len(mutants[path]) - 1)]
        recurrence = occurrence.node.recurrence(occurrence.inputs)
        return occurrence.node.outputs_of(mutant.run(recurrence))


class _Trial:
    """One execution of a node, evaluated right and by mutants, in float64."""

    def __init__(self, occurrence: Occurrence) -> None:
        self._node = occurrence.node
        self.recurrence = self._node.recurrence(occurrence.inputs)

    def asks(self, feature: Feature, free: set[str], fed: set[str]) -> bool:
        """Whether the node has a feature, and the axis that it needs, if that might be longer.

        Args:
            feature: the feature.
            free: the axes that the model leaves open.
            fed: the roles of inputs that have other values in other calls.
        """
        sizes = sizes_of(self.recurrence)
        size = {"time": sizes["T"], "batch": sizes["N"]}.get(feature.needs)
        is_short = feature.needs not in free and size == 1
        has_it = feature.role in fed or feature.of(self.recurrence)
        return has_it and not is_short and bool(self._mutants(feature))

    def seen(self, feature: Feature) -> Iterator[Mutant]:
        """Yield the mutants that have a feature wrong and give outputs beyond any tolerance."""
        for mutant in self._mutants(feature):
            if mutant.unseen(self.recurrence):
                continue
            wrong = self._node.outputs_of(mutant.run(self.recurrence))
            for name, values in self._right.items():
                # Further off than roundings of a right kernel may be.
                one, other = (np.nan_to_num(v.astype(np.float64)) for v in (values, wrong[name]))
                precision, largest = dtype_of(values).precision, np.abs(one).max(initial=0.0)
                if (np.abs(one - other) > ROUNDINGS * 2.0**-precision * largest).any():
                    yield mutant
                    break

    def problem(self, feature: Feature) -> str:
        """Return why no mutant that has a feature wrong is seen."""
        reasons = [
            mutant.unseen(self.recurrence) or "no output is another without it"
            for mutant in self._mutants(feature)
        ]
        return ", and ".join(dict.fromkeys(reasons))

    def _mutants(self, feature: Feature) -> list[Mutant]:
        named = map(MUTANTS.__getitem__, feature.mutants)
        return [mutant for mutant in named if self.recurrence.cell.name in mutant.cells]

    @cached_property
    def _right(self) -> Tensors:
        return self._node.outputs_of(RIGHT.run(self.recurrence, Compute.FLOAT64))
