"""Claims about irregular spellings and orders of nodes, which are mended."""

import warnings

import numpy as np
import onnx
import pytest

from rnncli.errors import InvalidRequest, RnncliWarning
from rnncli.models.loading import model_from
from rnncli.models.sessions import evaluate_model


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


HEADER = '<ir_version: 8, opset_import: ["" : 17, "pkg" : 1]>\n'
LATER = "g (float x) => (y) { [a] y = Neg (z) [b] w = Abs (x) [c] z = Exp (w) [d] v = Neg (x) }"


def loaded(text):
    """A model of onnx's text, and the sentences that it warns with."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = model_from(onnx.parser.parse_model(HEADER + text), "m.onnx")
    return model, [str(each.message) for each in caught]


def names(body):
    """The names of the nodes of a body, in order."""
    return [node.name for node in body.node]


def test_nodes_move_behind_what_they_read_and_no_farther():
    """The warning names the first that had to; values are right."""
    model, sentences = loaded(LATER)

    assert names(model.proto.graph) == ["b", "c", "a", "d"]
    assert sentences == [
        (
            "m.onnx: node 'a' (Neg) reads 'z', which a later node produces; ONNX requires nodes in"
            " order, so they were sorted"
        )
    ]
    assert evaluate_model(model, {"x": np.float32(-1)})["y"] == -np.exp(np.float32(1))


def test_nodes_in_order_stay():
    """Whatever other order would do; no warning."""
    model, sentences = loaded("g (float x) => (y) { [b] y = Neg (x) [a] z = Abs (x) }")

    assert (names(model.proto.graph), sentences) == (["b", "a"], [])


@pytest.mark.parametrize("then", ["(u) { u = Neg (z) }", "(z) { }"])
def test_what_a_branch_reads_is_read_by_its_node(then):
    """In a node, or as its output."""
    model, sentences = loaded(
        f"g (float x, bool c) => (y) {{ [if] y = If (c) <then_branch = t () => {then},"
        " else_branch = e () => (q) { q = Neg (x) }> [z] z = Abs (x) }"
    )

    assert names(model.proto.graph) == ["z", "if"]
    assert len(sentences) == 1


def test_a_name_of_the_branch_is_not_waited_for():
    """`z` of the branch hides the one that a later node makes."""
    model, sentences = loaded(
        "g (float x, bool c) => (y, z) { [if] y = If (c) <then_branch = t () => (u)"
        " { k = Neg (x) u = Neg (k) }, else_branch = e () => (q) { q = Neg (x) }>"
        " [k] k = Abs (x) [z] z = Neg (k) }"
    )

    assert (names(model.proto.graph), sentences) == (["if", "k", "z"], [])


def test_bodies_of_branches_and_functions_are_sorted():
    """Each by itself."""
    model, _ = loaded(
        "g (float x, bool c) => (y) { y = If (c) <then_branch = t () => (a)"
        " { [p] a = Neg (b) [q] b = Neg (x) }, else_branch = e () => (d) { d = pkg.F (x) }> }\n"
        '<domain: "pkg", opset_import: ["" : 17]> F (u) => (v) { [r] v = Neg (w) [s] w = Abs (u) }'
    )
    (branch,) = (a.g for a in model.proto.graph.node[0].attribute if a.name == "then_branch")

    assert names(branch) == ["q", "p"]
    assert names(model.proto.functions[0]) == ["s", "r"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "g (float x) => (y) { [a] y = Add (x, z) [b] w = Abs (y) [c] z = Neg (w) }",
            (
                "m.onnx: node 'a' (Add) reads from node 'c' (Neg) reads from node 'b' (Abs) reads"
                " from node 'a' (Add): nodes cannot wait for each other"
            ),
        ),
        (
            "g (float x) => (y) { [a] y = Neg (z) [b] z = Add (x, z) }",
            "node 'b' (Add) reads from node 'b' (Add)",
        ),
    ],
)
def test_nodes_that_wait_for_each_other_are_refused(text, sentence):
    """With the circle, without the nodes that wait for it."""
    with pytest.raises(InvalidRequest) as raised:
        loaded(text)

    assert sentence in str(raised.value)


def test_the_warning_can_be_an_error():
    """As every warning of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RnncliWarning)
        with pytest.raises(RnncliWarning, match="which a later node produces"):
            model_from(onnx.parser.parse_model(HEADER + LATER))
