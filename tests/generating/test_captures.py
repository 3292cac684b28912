"""Claims about which executions are chosen: every node first, nothing left out in silence."""

from dataclasses import replace

import pytest
from gru_places import SIGNATURE, WEIGHTS, model_of

from rnncli.errors import NothingSelected
from rnncli.generating.captures import Captures
from rnncli.models.evaluator import prepare, run
from rnncli.models.node_listing import UnevaluatedNode

THREE = f"""g {SIGNATURE} {{
    yes = Constant <value = bool {{1}}> ()
    [a_lstm] "", a = GRU <hidden_size: int = 2> (X, W, R)
    [b_lstm] "", b = GRU <hidden_size: int = 2> (X, W, R)
    [branch] out = If (yes) <
        then_branch = t () => (h) {{ [c_gru] u, h = GRU <hidden_size: int = 2> (X, W, R) }},
        else_branch = e () => (k) {{ [d_gru] v, k = GRU <hidden_size: int = 2> (X, W, R) }}>
}}"""


def captured(*wanted, text=THREE, runs=1, max_cases=99, max_bytes=10**6):
    """What is captured of a model that runs several times."""
    model = model_of(text)
    captures = Captures(model, wanted, max_cases=max_cases, max_bytes=max_bytes)
    evaluator = prepare(model, observer=captures.add)
    for _ in range(runs):
        run(evaluator, WEIGHTS)
    return captures


def numbered(captures):
    """Each chosen execution as NAME:NUMBER."""
    return [f"{capture.path[-1]}:{capture.number}" for capture in captures.chosen()]


def test_all_nodes_are_captured_unless_some_are_named():
    """The order is that in which they first ran."""
    assert numbered(captured()) == ["a_lstm:1", "b_lstm:1", "c_gru:1"]


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        (["a_lstm"], ["a_lstm:1"]),
        (["*_lstm"], ["a_lstm:1", "b_lstm:1"]),
        (["?_gru", "b*"], ["b_lstm:1", "c_gru:1"]),
        (["graph / branch.then_branch / *"], ["c_gru:1"]),
        (["graph / a_lstm"], ["a_lstm:1"]),
    ],
)
def test_a_node_is_wanted_by_name_or_place_or_pattern(wanted, chosen):
    """As `inspect` prints them."""
    assert numbered(captured(*wanted)) == chosen


def test_a_name_with_brackets_is_itself():
    """TensorFlow's names may hold what patterns are made of."""
    text = THREE.replace("a_lstm", "a[0]")
    model = model_of(text.replace("[a[0]]", "[name]"))
    model.proto.graph.node[1].name = "a[0]"

    assert Captures(model, ["a[0]"], max_cases=1, max_bytes=1).wanted == {("graph", "a[0]")}


@pytest.mark.parametrize("most", range(1, 10))
def test_every_node_comes_before_a_second_execution(most):
    """Whatever the limit; and what did not fit is counted."""
    captures = captured(runs=3, max_cases=most)
    by_number = ["a_lstm:1", "b_lstm:1", "c_gru:1", "a_lstm:2", "b_lstm:2", "c_gru:2"]
    by_number += ["a_lstm:3", "b_lstm:3", "c_gru:3"]

    assert numbered(captures) == sorted(by_number[:most])
    rest = [message for message in captures.warnings() if "--max-cases" in message]
    wanted = f"{9 - most} further executions left out by --max-cases {most}"
    assert rest == ([wanted] if most < 9 else [])


def test_no_more_than_the_limit_is_held():
    """A loop of many iterations does not fill memory."""
    captures = captured(runs=20, max_cases=4)

    assert len(captures._kept) == 4


def test_what_is_too_large_is_said():
    """With its place, its size, and the option that would let it through."""
    model = model_of(THREE)
    captures = Captures(model, [], max_cases=9, max_bytes=300)
    large = []

    def grown(seen):
        large.append(seen)
        captures.add(replace(seen, nbytes=301) if len(large) == 2 else replace(seen, nbytes=300))

    run(prepare(model, observer=grown), WEIGHTS)

    assert numbered(captures) == ["a_lstm:1", "c_gru:1"]
    assert list(captures.warnings()) == [
        "graph / b_lstm: 1 of its executions left out: up to 301 bytes, more than --max-bytes 300",
        "graph / branch.else_branch / d_gru: did not run on these inputs",
    ]


def test_a_node_that_did_not_run_is_said_only_if_wanted():
    """The other branch of an If is news; a node nobody asked for is not."""
    assert len(list(captured().warnings())) == 1
    assert list(captured("a_lstm").warnings()) == []


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ((), ["graph / loop / r: left out: GRUSequence-5 cannot be evaluated here"]),
        (("a_lstm",), []),
    ],
)
def test_a_node_that_cannot_be_evaluated_is_said_unless_others_are_named(wanted, said):
    """A pack of the rest is not taken for all."""
    unevaluated = [UnevaluatedNode("r", "GRUSequence-5", ("graph", "loop", "r"))]
    model = model_of(THREE)
    limits = {"max_cases": 9, "max_bytes": 10**6}
    captures = Captures(model, wanted, **limits, unevaluated=unevaluated)
    run(prepare(model, observer=captures.add), WEIGHTS)

    assert [each for each in captures.warnings() if "did not run" not in each] == said


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"wanted": ["a_lstn"]}, "m.onnx: no recurrent node 'a_lstn'; did you mean 'a_lstm'?"),
        ({"wanted": ["zz*"]}, "no recurrent node 'zz*'; there are a_lstm, b_lstm, c_gru, d_gru"),
        ({"wanted": ["a_lstm", "q9"]}, "no recurrent node 'q9'"),
        ({"wanted": ["d_gru"]}, "nothing was captured: graph / branch.else_branch / d_gru: did"),
        ({"max_bytes": 8}, "left out: up to 232 bytes, more than --max-bytes 8"),
        ({"text": "g (float x) => (y) { y = Identity (x) }", "runs": 0}, "has no recurrent node"),
    ],
)
def test_capturing_nothing_says_why(options, sentence):
    """An empty pack is never written."""
    wanted = options.pop("wanted", ())
    with pytest.raises(NothingSelected) as failure:
        captured(*wanted, **options).chosen()

    assert sentence in str(failure.value)


def test_a_node_without_outputs_judges_nobody():
    """It is left out, and that is said."""
    text = f"""g {SIGNATURE} {{
        "", "" = GRU <hidden_size: int = 2> (X, W, R)
        [b] "", out = GRU <hidden_size: int = 2> (X, W, R)
    }}"""
    captures = captured(text=text)

    assert numbered(captures) == ["b:1"]
    assert list(captures.warnings()) == ["graph / GRU_0: left out: the node names no output"]
