"""Claims about the uniform spelling of models."""

import onnx
import pytest

from rnncli.errors import InvalidRequest
from rnncli.models.loading import model_from


def test_the_long_name_of_onnx_domain_is_one_domain(parse):
    """``ai.onnx`` and "" are one, in imports, nodes, branches and functions."""
    text = """g (float x, bool c) => (y) {
        y = If (c) <then_branch = t () => (a) { a = ai.onnx.Neg (x) },
                    else_branch = e () => (b) { b = pkg.F (x) }>
    }
    <domain: "pkg", opset_import: ["ai.onnx" : 17]> F (a) => (b) { b = ai.onnx.Neg (a) }"""

    model = parse(text, more=', "ai.onnx" : 17, "pkg" : 1')

    assert model.opsets == {"": 17, "pkg": 1}
    assert "ai.onnx" not in str(model.proto.graph)
    assert model.proto.functions[0].node[0].domain == ""


def test_one_domain_at_two_versions_is_an_error(parse):
    """Which one is meant cannot be told."""
    with pytest.raises(InvalidRequest, match=r"domain ai\.onnx is imported at two versions"):
        parse("g (float x) => (y) { y = Neg (x) }", more=', "ai.onnx" : 16')


def test_a_model_older_than_imports_has_opset_1():
    """IR versions 1 and 2 had no opset imports."""
    proto = onnx.parser.parse_model("<ir_version: 2> g (float x) => (y) { y = Neg (x) }")

    assert model_from(proto).opsets == {"": 1}
