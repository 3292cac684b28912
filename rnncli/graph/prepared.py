"""Evaluators that are kept with their model, so that a second call prepares nothing.

An evaluator serves one call at a time: nodes remember what the last call was like. Threads that
evaluate a model at the same time get one each.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.graph.evaluator import Evaluator
    from rnncli.graph.model import Model
    from rnncli.graph.recurrent_node import EvaluationSettings

MOST_KEPT = 4
"""Idle evaluators of one model that are kept at most; each holds weights as its backend does."""


class EvaluatorPool:
    """Idle evaluators of one model, the one used last at the end."""

    def __init__(self) -> None:
        self._idle: list[tuple[Any, Evaluator]] = []
        self._lock = Lock()

    def take(self, key: Any) -> Evaluator | None:
        """Return the evaluator for a key that was used last, which is then idle no more."""
        with self._lock:
            for place in reversed(range(len(self._idle))):
                if self._idle[place][0] == key:
                    return self._idle.pop(place)[1]
        return None

    def give(self, key: Any, evaluator: Evaluator) -> None:
        """Keep an evaluator, and let go of the one not used for longest if there are too many."""
        with self._lock:
            self._idle = [*self._idle, (key, evaluator)][-MOST_KEPT:]


_POOLS: WeakKeyDictionary[Model, EvaluatorPool] = WeakKeyDictionary()
_LOCK = Lock()


@contextmanager
def lent(
    model: Model, arithmetic: EvaluationSettings, prepare: Callable[[], Evaluator]
) -> Iterator[Evaluator]:
    """Lend an evaluator of a model: a kept one, or else a new one, which is kept if all goes well.

    Args:
        model: it dies as soon as nobody else holds it, and what is kept dies with it.
        arithmetic: of its recurrent nodes.
        prepare: makes an evaluator that does not refer to the model.
    """
    with _LOCK:
        pool = _POOLS.setdefault(model, EvaluatorPool())
    key = arithmetic._replace(readings=dict(arithmetic.readings))
    evaluator = pool.take(key) or prepare()
    yield evaluator
    pool.give(key, evaluator)
