"""Models written as text, the way ONNX prints them."""

import onnx
import pytest

from rnncli.models.loading import model_from

HEADER = '<ir_version: 8, opset_import: ["" : {opset}{more}]>\n'


@pytest.fixture(scope="session")
def parse():
    """Return a function that makes a model from the text of its graph and functions."""

    def parse(text, opset=17, more=""):
        proto = onnx.parser.parse_model(HEADER.format(opset=opset, more=more) + text)
        return model_from(proto, "m.onnx")

    return parse
