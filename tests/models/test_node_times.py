"""Claims about where the time of a model goes."""

import numpy as np
import pytest

from rnncli.models import node_times
from rnncli.models.node_times import node_seconds
from rnncli.models.recurrent_node import EvaluationSettings

TEXT = """\
g (float[2] X, bool yes) => (float[2] Y) {
  A = Add(X, X)
  B = Add(A, X)
  C = own.twice(B)
  Y = If (yes) <
    then_branch = a () => (float[2] D) { D = Neg(C) },
    else_branch = b () => (float[2] E) { E = Abs(C) }
  >
}
<domain: "own", opset_import: ["" : 17]>
twice (x) => (y) { y = Mul(x, x) }
"""


@pytest.fixture
def ticking(monkeypatch):
    """A clock that goes on by a second whenever it is looked at."""
    times = iter(range(1000))
    monkeypatch.setattr(node_times.time, "perf_counter", lambda: next(times))


def test_each_operator_is_charged_with_its_own_nodes(parse, ticking):
    """Two additions, a node in a function, one in a branch; a mean over the runs."""
    model = parse(TEXT, more=', "own" : 1')
    inputs = {"X": np.ones(2, np.float32), "yes": np.array(True)}

    found = node_seconds(model, inputs, 3, EvaluationSettings("numpy", "native"))

    assert found.pop("Add") == 2
    assert found == dict.fromkeys(["Mul", "own::twice", "Neg", "If"], 1)
