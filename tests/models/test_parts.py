"""Claims about the part of a model that makes some of its values."""

import numpy as np

from rnncli.models.parts import part_that_makes
from rnncli.models.session import evaluate_model

TEXT = """g (float[n] x, float[m] z, bool c) => (y, w) <float[1] k = {2}, float[1] unused = {3}> {
    a = Mul (x, k)
    b = If (c) <then_branch = t () => (p) { p = Neg (a) },
                else_branch = e () => (q) { q = Abs (a) }>
    y = Neg (b)
    w = Neg (z)
}"""


def test_a_part_has_what_its_outputs_depend_on(parse):
    """Nodes, inputs and weights, those too that only a branch reads; the model stays whole."""
    model = parse(TEXT)
    part = part_that_makes(model, ["b"])

    made = evaluate_model(part, {"x": np.float32([1, -3]), "c": np.array(True)})

    assert made["b"].tolist() == [-2, 6]
    assert [node.op_type for node in part.proto.graph.node] == ["Mul", "If"]
    assert [tensor.name for tensor in part.proto.graph.initializer] == ["k"]
    assert len(model.proto.graph.node) == 4
