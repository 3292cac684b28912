"""Claims about what makes a protobuf a graph."""

import onnx
import pytest

from rnncli.errors import InvalidRequest
from rnncli.graph.loading import model_from

BROKEN = {
    "g (float x) => () { y = Neg (x) }": "the graph has no outputs",
    "g (float x) => (y) { y = Add (x, z) }": r"node 'Add_0' \(Add\) reads 'z', which nothing",
    "g (float x) => (y) { y = Neg (z) z = Neg (x) }": "reads 'z', which nothing before it makes",
    "g (float x) => (y, q) { y = Neg (x) }": "the graph declares the output 'q'",
    "g (float x) => (y) { y = Neg (x) y = Abs (x) }": r"node 'Abs_1' \(Abs\) makes 'y', which",
    """g (float x, bool c) => (y) {
        y = If (c) <then_branch = t () => (a) { a = Neg (b) },
                    else_branch = e () => (b) { b = Neg (x) }>
    }""": "node 'Neg_0' .Neg. reads 'b'",
    """g (float x, bool c) => (y) {
        y = If (c) <then_branch = t () => (q) {}, else_branch = e () => (b) { b = Neg (x) }>
    }""": r"node 'If_0' \(If\) then_branch declares the output 'q'",
    """g (float x) => (y) { y = pkg.F (x) }
        <domain: "pkg", opset_import: ["" : 17]> F (a) => (b) { b = Neg (x) }""": "reads 'x'",
    """g (float x) => (y) { y = pkg.F (x) }
        <domain: "pkg", opset_import: ["" : 17]> F (a) => (b) { c = Neg (a) }""": (
        "function pkg::F declares the output 'b'"
    ),
}


@pytest.mark.parametrize("text", BROKEN)
def test_what_cannot_run_is_refused_when_loaded(parse, text):
    """Values are made once and before they are read, in graphs, branches and functions."""
    with pytest.raises(InvalidRequest, match=f"m.onnx: .*{BROKEN[text]}"):
        parse(text, more=', "pkg" : 1')


def test_names_that_are_no_text_are_refused():
    """Protobuf keeps them as bytes, which nothing later could print."""
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float x) => (y) { y = Neg (x) }'
    )
    damaged = proto.SerializeToString().replace(b"Neg", b"N\xffg")

    with pytest.raises(InvalidRequest, match=r"the op_type b'N.xffg' is not UTF-8"):
        model_from(onnx.load_from_string(damaged))
