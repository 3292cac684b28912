"""Claims about checks of structure, and about functions that call each other."""

import itertools

import onnx
import pytest

from rnncli.errors import InvalidRequest, Unsupported
from rnncli.models.loading import model_from

BROKEN = {
    "g (float x) => () { y = Neg (x) }": "the graph has no outputs",
    "g (float x) => (y) { y = Add (x, z) }": r"node 'Add_0' \(Add\) reads 'z', which no earlier",
    "g (float x) => (y) { y = Add (x, z) z = Neg (y) }": "nodes cannot wait for each other",
    "g (float x) => (y, q) { y = Neg (x) }": "the graph declares the output 'q'",
    "g (float x) => (y) { y = Neg (x) y = Abs (x) }": r"node 'Abs_1' \(Abs\) produces 'y', which",
    """g (float x, bool c) => (y) {
        y = If (c) <then_branch = t () => (a) { a = Neg (b) },
                    else_branch = e () => (b) { b = Neg (x) }>
    }""": "node 'Neg_0' .Neg. reads 'b'",
    """g (float x, bool c) => (y) {
        y = If (c) <then_branch = t () => (q) {}, else_branch = e () => (b) { b = Neg (x) }>
    }""": r"node 'If_0' \(If\) then_branch declares the output 'q'",
    """g (float x) => (y) { y = pkg.F (x) }
        <domain: "pkg", opset_import: ["" : 17]> F (a) => (b) { b = Neg (x) }""": "reads 'x'",
    "g (float x, float x) => (y) { y = Neg (x) }": "the graph names the input 'x' twice",
    "g (float x) => (y, y) { y = Neg (x) }": "the graph names the output 'y' twice",
    f"g (float[{','.join('1' * 65)}] x) => (y) {{ y = Neg (x) }}": "'x' with 65 dimensions",
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


def negation():
    """Return a sound model as a protobuf."""
    return onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float x) => (y) { y = Neg (x) }'
    )


@pytest.mark.parametrize("values", ["input", "output"])
def test_values_of_a_graph_have_names(values):
    """The name "" stands for a value that is left out."""
    proto = negation()
    getattr(proto.graph, values).add()

    with pytest.raises(InvalidRequest, match=f"the graph has an {values} without a name"):
        model_from(proto)


@pytest.mark.parametrize(("opset", "kind"), [(0, InvalidRequest), (2**31, Unsupported)])
def test_an_opset_that_nobody_knows_is_refused(opset, kind):
    """A model of recurrent nodes alone, which are looked up by the newest row below, as well."""
    proto = negation()
    proto.opset_import[0].version = opset

    with pytest.raises(kind, match=f"opset {opset} of ai.onnx"):
        model_from(proto)


@pytest.mark.parametrize(("version", "is_sound"), [(2, True), (3, False), (8, False)])
def test_a_model_says_its_opset(version, is_sound):
    """Since version 3 of the IR; before, there was no place for it."""
    proto = negation()
    del proto.opset_import[:]
    proto.ir_version = version

    if is_sound:
        assert model_from(proto).opsets == {"": 1}
    else:
        with pytest.raises(InvalidRequest, match=f"imports no opset, .* IR version {version}"):
            model_from(proto)


@pytest.mark.parametrize(
    ("name", "sentence"), [("Neg", r"op_type b'.xffeg'"), ("own", r"domain b'.xffwn'")]
)
def test_names_that_are_no_text_are_refused(name, sentence):
    """Protobuf keeps them as bytes, which nothing later could print."""
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "own" : 1]> g (float x) => (y) { y = Neg (x) }'
    )
    damaged = proto.SerializeToString().replace(name.encode(), b"\xff" + name.encode()[1:])

    with pytest.raises(InvalidRequest, match=f"the {sentence} is not UTF-8"):
        model_from(onnx.load_from_string(damaged))


MORE = ', "pkg" : 1'


def nested(levels, calls):
    """Write functions, each of which calls the next one several times in a row."""
    names = ["x", *(f"a{k}" for k in range(calls - 1)), "y"]
    lines = [
        f'<domain: "pkg", opset_import: ["" : 17, "pkg" : 1]> F{k} (x) => (y) {{ '
        + " ".join(f"{b} = pkg.F{k + 1} ({a})" for a, b in itertools.pairwise(names))
        + " }"
        for k in range(levels)
    ]
    last = f'<domain: "pkg", opset_import: ["" : 17]> F{levels} (x) => (y) {{ y = Neg (x) }}'
    return "\n".join(["g (float x) => (y) { y = pkg.F0 (x) }", *lines, last])


@pytest.mark.parametrize(
    ("levels", "calls", "reason"),
    [
        (10, 10, "function pkg::F5 has more than 200000 nodes after expanding function calls"),
        (60, 1, "calls functions more than 50 deep"),
    ],
)
def test_functions_that_would_fill_memory_are_refused_when_loaded(parse, levels, calls, reason):
    """Two kilobytes of text are 10^10 nodes; nobody begins to build them."""
    with pytest.raises(InvalidRequest, match=reason):
        parse(nested(levels, calls), more=MORE)


def test_functions_of_functions_are_sound(parse):
    """As exporters nest them."""
    assert parse(nested(10, 3), more=MORE)
