"""Where the time of a model goes, operator by operator."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from rnncli.models.evaluator import Evaluator, run
from rnncli.models.functions import Library
from rnncli.models.model import operator_name
from rnncli.models.observation import Watch
from rnncli.models.recurrent_node import EvaluationSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rnncli.models.model import Model
    from rnncli.models.schedule import Step
    from rnncli.numerics import Array


def node_seconds(
    model: Model, inputs: Mapping[str, Array], runs: int, *, backend: str, compute: str
) -> dict[str, float]:
    """Return what the nodes of each operator take in one run, those of bodies and calls included.

    Args:
        model: from `load_model`.
        inputs: every required input by name.
        runs: how many to take the mean of; one before them is not counted.
        backend: which backend evaluates the recurrent nodes.
        compute: "float64" or "native".

    Raises:
        RnncliError: the model cannot be evaluated.
    """
    clock = Clock()
    library = Library(model, EvaluationSettings(backend, compute), Evaluator, clock)
    evaluator = Evaluator(model.proto.graph, model.opsets, library)
    run(evaluator, inputs)
    clock.seconds.clear()
    for _ in range(runs):
        clock.wind()
        run(evaluator, inputs)
    slowest_first = sorted(clock.seconds.items(), key=lambda pair: -pair[1])
    return {name: seconds / runs for name, seconds in slowest_first}


class Clock(Watch):
    """Charges each step with the time since the one before it has run.

    A node that runs others, in a body or a function, is so charged with what those leave.
    """

    def __init__(self) -> None:
        super().__init__(lambda _: None)
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.wind()

    def wind(self) -> None:
        """Begin to count."""
        self._last = time.perf_counter()

    def hold(self, values: Iterable[Any]) -> None:
        """Take no note of constants."""

    def ran(self, step: Step, values: Mapping[str | None, Any]) -> None:
        """Charge a step that has run."""
        del values
        self.seconds[operator_name(step.operator.onnx_node)] += time.perf_counter() - self._last
        self.wind()
