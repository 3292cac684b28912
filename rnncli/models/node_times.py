"""The time that a model spends in each operator."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from rnncli.models.evaluator import Evaluator, run
from rnncli.models.function_bodies import Library
from rnncli.models.model import operator_name
from rnncli.models.observation import Watch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rnncli.models.model import Model
    from rnncli.models.recurrent_node import EvaluationSettings
    from rnncli.models.schedule import Step
    from rnncli.numerics import Array


def node_seconds(
    model: Model,
    inputs: Mapping[str, Array],
    runs: int,
    arithmetic: EvaluationSettings,
) -> dict[str, float]:
    """Return the seconds per run of each operator's nodes, including those of bodies and calls.

    Args:
        model: from `load_model`.
        inputs: every required input by name.
        runs: the number of runs to average, after one warm-up run.
        arithmetic: how nodes are evaluated.

    Raises:
        RnncliError: the model cannot be evaluated.
    """
    clock = Clock()
    library = Library(model, arithmetic, Evaluator, clock)
    evaluator = Evaluator(model.proto.graph, model.opsets, library)
    run(evaluator, inputs)
    clock.seconds.clear()
    for _ in range(runs):
        clock.wind()
        run(evaluator, inputs)
    slowest_first = sorted(clock.seconds.items(), key=lambda pair: -pair[1])
    return {name: seconds / runs for name, seconds in slowest_first}


class Clock(Watch):
    """A watch that charges each step with the time since the previous one ended.

    A node that runs others, in a body or function, is charged only with the remainder.
    """

    def __init__(self) -> None:
        super().__init__(lambda _: None)
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.wind()

    def wind(self) -> None:
        """Start the clock."""
        self._last = time.perf_counter()

    def hold(self, values: Iterable[Any]) -> None:
        """Ignore constants."""

    def ran(self, step: Step, values: Mapping[str | None, Any]) -> None:
        """Charge a step with its time."""
        del values
        self.seconds[operator_name(step.operator.onnx_node)] += time.perf_counter() - self._last
        self.wind()
