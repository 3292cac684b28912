"""Claims about captures and the packs that are extracted from them."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from support.gru_places import HELD, PLACES, SIGNATURE, WEIGHTS, model_of, text_of
from support.real_models import PATHS, recorded, run

from rnncli import operators
from rnncli.errors import InvalidRequest, NothingSelected, Unsupported
from rnncli.generating.extraction import Captures, ExtractionPlan, extract, require
from rnncli.models.evaluator import prepare
from rnncli.models.loading import load_model, model_from
from rnncli.models.node_listing import UnevaluatedNode
from rnncli.models.sessions import evaluate_model
from rnncli.numerics import DTYPES, conditioning_problem
from rnncli.operators.node import WEIGHTS as PARAMETERS
from rnncli.packs.conversion import convert_pack
from rnncli.packs.manifest import manifest_schema
from rnncli.packs.pack import open_pack

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


SAID = []


def extracted(model, inputs, folder, *, max_cases=99, **options):
    """Run a model on inputs and write what its recurrent nodes did; return the pack."""
    captures = Captures(model, (), max_cases=max_cases, max_bytes=10**9)
    run(prepare(model, observer=captures.add), inputs)
    plan = ExtractionPlan(options.pop("name", "m"), **options)
    report = extract(plan, captures.chosen(), folder, lambda _: None)
    SAID[:] = [*report.left_out, *report.shortened]
    pack = open_pack(folder)
    assert list(pack.problems()) == []
    return pack


def one_node(op_type, inputs, *, opset=17, held=(), outputs=("Y", "Y_h"), **attributes):
    """A model of one node, named; inputs that are None are absent."""
    names = ["" if values is None else name for name, values in inputs.items()]
    given = {name: values for name, values in inputs.items() if values is not None}
    numbers = {name: helper.np_dtype_to_tensor_dtype(v.dtype) for name, v in given.items()}
    graph = helper.make_graph(
        [helper.make_node(op_type, names, list(outputs), name="node", **attributes)],
        "one",
        [
            helper.make_tensor_value_info(name, numbers[name], values.shape)
            for name, values in given.items()
            if name not in held
        ],
        [helper.make_tensor_value_info(name, numbers["X"], None) for name in outputs if name],
        [numpy_helper.from_array(given[name], name) for name in held],
    )
    opsets = [helper.make_opsetid("", opset)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    fed = {name: values for name, values in given.items() if name not in held}
    return model_from(proto, "one.onnx"), fed


def numbers(*shape, scale=1.0, dtype=np.float32, seed=0):
    """Normal numbers."""
    return (np.random.default_rng([seed, *shape]).normal(size=shape) * scale).astype(dtype)


def layer(gates, dtype=np.float32, T=5, N=2, I=3, H=4):  # noqa: E741, PLR0917 -- sizes
    """X, W, R and B of a layer."""
    return {
        "X": numbers(T, N, I, dtype=dtype),
        "W": numbers(1, gates * H, I, scale=0.5, dtype=dtype),
        "R": numbers(1, gates * H, H, scale=0.5, dtype=dtype),
        "B": numbers(1, 2 * gates * H, scale=0.5, dtype=dtype),
    }


# Real models against ONNX Runtime.


def margins(vector):
    """ONNX Runtime's error as a part of the tolerance, for each element of each output.

    Raises:
        NotImplementedError: it says that it cannot run the node.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(vector.model, options)
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented as error:
        raise NotImplementedError(str(error)) from error
    wanted = vector.answers.outputs
    for name, got in zip(wanted, session.run(list(wanted), vector.fed), strict=True):
        error = np.abs(got.astype(np.float64) - wanted[name])
        allowed = vector.answers.tolerances[name].astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            yield np.where(error == 0, 0.0, error / allowed)


@pytest.mark.parametrize("name", PATHS)
def test_real_models_judge_onnx_runtime_fairly(name, tmp_path, record_property):
    """Every element that it computes is within its tolerance at the standard profile."""
    inputs, _ = recorded(PATHS[name])
    pack = extracted(load_model(PATHS[name]), inputs, tmp_path / "pack", name=name)
    worst = [float(part.max()) for vector in pack.vectors() for part in margins(vector)]
    record_property("worst margin", max(worst))

    assert SAID == []
    assert max(worst) <= 1.0


# Wherever a node sits.


@pytest.mark.parametrize("signature", [SIGNATURE, HELD], ids=["fed", "held"])
@pytest.mark.parametrize("place", PLACES)
def test_a_node_becomes_a_vector_wherever_it_sits(place, signature, tmp_path):
    """Its golden is what the operator gives, and weights stand where they stood."""
    fed = WEIGHTS if signature == SIGNATURE else {"X": WEIGHTS["X"]}
    model = model_of(text_of(place, signature))
    first, *others = extracted(model, fed, tmp_path / "pack").vectors()

    assert first.id.startswith("gru_")
    assert [other.id for other in others] == [f"{first.id}_{k}" for k in range(2, 5)][: len(others)]
    assert len(others) == (3 if place == "Scan" else 0)
    wanted = operators.evaluate("GRU-14", first.inputs, outputs=list(first.answers.outputs))
    wanted |= {"Y_h": evaluate_model(model, fed)["out"].reshape(1, 2, 2)}
    for name, values in wanted.items():
        assert np.array_equal(first.answers.outputs[name], values)
    assert first.record.weights == ("inputs" if signature == SIGNATURE else "initializers")
    assert first.initializers == (() if signature == SIGNATURE else ("W", "R"))


def test_the_summary_says_where_it_was(tmp_path):
    """Which execution of which node of which model, and in what body."""
    model = model_of(text_of("If in a function in a function"))
    (vector,) = extracted(model, WEIGHTS, tmp_path / "pack", name="net").vectors()

    assert vector.record.summary == (
        "Execution 1 of node 'GRU_0' (GRU-14) of net, in function pkg::Inner / If_1.then_branch."
    )


def test_two_nodes_of_one_name_have_ids_of_their_own(tmp_path):
    """Real models repeat names."""
    text = f"""g {SIGNATURE} {{
        [rnn] "", h = GRU <hidden_size: int = 2> (X, W, R)
        [rnn] "", out = GRU <hidden_size: int = 2> (X, W, R, "", "", h)
    }}"""
    pack = extracted(model_of(text), WEIGHTS, tmp_path / "pack")

    assert [r.id for r in pack.manifest.cases] == ["rnn", "graph_rnn"]
    assert [len(r.inputs) for r in pack.manifest.cases] == [3, 4]


# What a node has.


def test_absent_inputs_stay_absent_and_lengths_are_kept(tmp_path):
    """No B, but lengths and initial_h after it; padding with NaN is no reason to refuse."""
    inputs = layer(3) | {"B": None, "sequence_lens": np.array([5, 2], np.int32)}
    inputs["initial_h"] = numbers(1, 2, 4)
    inputs["X"][3:, 1] = np.nan
    model, fed = one_node("GRU", inputs, held=("W", "R"), hidden_size=4)
    (vector,) = extracted(model, fed, tmp_path / "pack", golden="certified").vectors()

    assert (*vector.inputs,) == ("X", "W", "R", "sequence_lens", "initial_h")
    assert vector.record.golden.kind == "certified"
    assert not vector.answers.outputs["Y"][2:, 0, 1].any()
    assert all(part.max() <= 1.0 for part in margins(vector))


def test_every_attribute_is_kept(tmp_path):
    """Text as text, floats as float32; the model in the vector has the node's own."""
    attributes = {
        "hidden_size": 4,
        "direction": "reverse",
        "activations": ["HardSigmoid", "Tanh", "LeakyRelu"],
        "activation_alpha": [0.25, 0.1],
        "clip": 0.3,
        "input_forget": 1,
    }
    model, fed = one_node("LSTM", layer(4), **attributes)
    (vector,) = extracted(model, fed, tmp_path / "pack").vectors()
    (node,) = onnx.ModelProto.FromString(vector.model).graph.node
    held = {a.name: helper.get_attribute_value(a) for a in node.attribute}

    assert vector.record.attributes["activations"] == attributes["activations"]
    assert held["clip"] == pytest.approx(0.3)
    assert held["direction"] == b"reverse"
    assert vector.record.requirements.direction == "reverse"


def test_other_readings_are_stored_and_tagged(tmp_path):
    """As in the packs of suites: whoever reads the clip otherwise finds the answer."""
    inputs = layer(4) | {"sequence_lens": None, "initial_h": None, "initial_c": numbers(1, 2, 4)}
    model, fed = one_node("LSTM", inputs, hidden_size=4, clip=0.2)
    (vector,) = extracted(model, fed, tmp_path / "pack").vectors()

    assert vector.record.tags == ["reading:clip-scope"]
    assert vector.record.readings["clip-scope"] == "activations"
    gates = vector.alternatives["clip-scope=gates"].outputs
    assert not np.array_equal(gates["Y"], vector.answers.outputs["Y"])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("golden", ["float64", "certified"])
def test_every_dtype(dtype, golden, tmp_path):
    """Bits of inputs are kept; the tolerance fits the dtype."""
    inputs = layer(3, DTYPES[dtype].numpy)
    model, fed = one_node("GRU", inputs, opset=22, held=("W", "R", "B"), hidden_size=4)
    (vector,) = extracted(model, fed, tmp_path / "pack", golden=golden).vectors()

    assert vector.record.dtype == dtype
    assert vector.record.operator == "GRU-22"
    assert all(vector.inputs[n].tobytes() == inputs[n].tobytes() for n in inputs)
    assert {v.dtype for v in vector.answers.outputs.values()} == {DTYPES[dtype].numpy}


def test_weights_of_which_one_is_fed_are_inputs(tmp_path):
    """A case says of W, R, B and P together where they stand."""
    assert set("WRB") < {*PARAMETERS}
    model, fed = one_node("GRU", layer(3), held=("W", "R"), hidden_size=4)
    (vector,) = extracted(model, fed, tmp_path / "pack").vectors()

    assert vector.record.weights == "inputs"
    assert vector.initializers == ()


# What cannot judge anybody.


def chaotic():
    """An RNN whose weights blow every rounding up, and one that is tame."""
    inputs = {"X": numbers(99, 2, 3), "W": numbers(1, 32, 3), "R": numbers(1, 32, 32, scale=0.5)}
    model, fed = one_node("RNN", inputs, outputs=("Y",), hidden_size=32)
    tame = model.proto.graph.node.add()
    tame.CopyFrom(model.proto.graph.node[0])
    tame.name, tame.output[0] = "tame", "Z"
    tame.input[2] = "tame_R"
    small = numpy_helper.from_array(inputs["R"] / 40, "tame_R")
    model.proto.graph.initializer.append(small)
    return model, fed


def test_an_ill_conditioned_node_keeps_its_first_steps(tmp_path):
    """As many as can be judged; what is said has the reason. The tame one keeps all of them."""
    model, fed = chaotic()
    (whole,) = run(prepare(model), fed)[:1]
    pack = extracted(model, fed, tmp_path / "pack")
    first, tame = pack.vectors()
    steps = first.record.sizes["seq_length"]
    (said,) = SAID

    assert (first.id, tame.id, tame.record.sizes["seq_length"]) == ("node", "tame", 99)
    assert 5 < steps < 99
    assert said.startswith(
        f"node: kept {steps} of 99 steps: with all of them Y is ill-conditioned: "
    )
    assert first.record.summary.endswith(f" The first {steps} of its 99 steps.")
    np.testing.assert_array_equal(first.inputs["X"], fed["X"][:steps])
    np.testing.assert_array_equal(first.answers.outputs["Y"], whole[:steps])
    for vector in (first, tame):
        assert not conditioning_problem(vector.answers.outputs["Y"], vector.answers.tolerances["Y"])


def test_lengths_are_cut_with_the_steps(tmp_path):
    """A sequence that ends before is as long as it was."""
    inputs = {"X": numbers(99, 2, 3), "W": numbers(1, 32, 3), "R": numbers(1, 32, 32, scale=0.5)}
    inputs |= {"B": None, "sequence_lens": np.array([99, 4], np.int32)}
    model, fed = one_node("RNN", inputs, outputs=("Y", "Y_h"), hidden_size=32)
    (vector,) = extracted(model, fed, tmp_path / "pack").vectors()
    steps = vector.record.sizes["seq_length"]

    assert 5 < steps < 99
    assert vector.inputs["sequence_lens"].tolist() == [steps, 4]
    assert vector.inputs["sequence_lens"].dtype == np.int32
    last = vector.answers.outputs["Y"][[steps - 1, 3], 0, [0, 1]]
    np.testing.assert_array_equal(vector.answers.outputs["Y_h"][0], last)


def test_a_node_whose_first_step_is_ill_conditioned_is_left_out(tmp_path):
    """With its id and the reason, as no other became a pack."""
    X = np.array([[[1e8, -1e8, 1e-3]]], np.float32)
    inputs = {"X": X, "W": np.ones((1, 4, 3), np.float32), "R": numbers(1, 4, 4)}
    model, fed = one_node("RNN", inputs, outputs=("Y",), hidden_size=4)

    with pytest.raises(InvalidRequest, match="no capture can become a case: node: Y is ill-cond"):
        extracted(model, fed, tmp_path / "pack")


@pytest.mark.parametrize(
    ("golden", "kind", "sentence"),
    [
        ("certified", Unsupported, "m: no capture can become a case: node: golden: certified"),
        ("float64", None, ""),
    ],
)
def test_nan_cannot_be_certified(golden, kind, sentence, tmp_path):
    """In float64 the vector is made, and tagged as not portable; NaN must be NaN."""
    inputs = layer(3)
    inputs["X"][1, 0, 0] = np.nan
    model, fed = one_node("GRU", inputs, hidden_size=4)
    if kind is None:
        (vector,) = extracted(model, fed, tmp_path / "pack", golden=golden).vectors()
        assert vector.record.tags == ["non-portable"]
        assert np.isnan(vector.answers.outputs["Y"]).any()
        return
    with pytest.raises(kind) as failure:
        extracted(model, fed, tmp_path / "pack", golden=golden)

    assert sentence in str(failure.value)
    assert not (tmp_path / "pack").exists()


def test_a_case_that_is_not_exact_is_none_of_that_profile(tmp_path):
    """As in suites."""
    model, fed = one_node("GRU", layer(3), hidden_size=4)
    with pytest.raises(InvalidRequest, match="no capture can become a case: node: profile 'exact'"):
        extracted(model, fed, tmp_path / "pack", profile="exact")


@pytest.mark.parametrize("sizes", [{"T": 0}, {"N": 0}, {"I": 0}])
def test_empty_sizes(sizes, tmp_path):
    """Nothing is there to be wrong, but it must run."""
    inputs = layer(4, **sizes)
    model, fed = one_node("LSTM", inputs, hidden_size=4)
    (vector,) = extracted(model, fed, tmp_path / "pack").vectors()

    assert vector.answers.outputs["Y"].shape == (sizes.get("T", 5), 1, sizes.get("N", 2), 4)


# The pack.


def test_the_manifest_is_as_its_schema_says(tmp_path):
    """And says what it is: a suite of its own, whose flag is explained."""
    pack = extracted(model_of(text_of("Scan")), WEIGHTS, tmp_path / "pack", name="net one")
    record = json.loads((tmp_path / "pack" / "manifest.json").read_text())

    jsonschema.validate(record, manifest_schema())
    assert record["suite"] == "extracted-net_one"
    assert {*record["notes"]} == {"Extracted"} == {f for c in record["cases"] for f in c["flags"]}
    assert pack.select("extracted") == pack.select("gru") == list(pack.manifest.cases)


@pytest.mark.parametrize("layout", ["npz", "h5"])
def test_layouts_are_those_of_conversion(layout, tmp_path):
    """One file, byte for byte what `convert` makes of the folders."""
    model = model_of(text_of("Scan", HELD))
    folders = extracted(model, {"X": WEIGHTS["X"]}, tmp_path / "folders")
    extracted(model, {"X": WEIGHTS["X"]}, tmp_path / "single", layout=layout)
    convert_pack(folders, tmp_path / "converted", layout)
    files = {path.name: path.read_bytes() for path in (tmp_path / "single").iterdir()}

    assert {*files} == {"SHA256SUMS", "manifest.json", f"vectors.{layout}"}
    assert files == {p.name: p.read_bytes() for p in (tmp_path / "converted").iterdir()}


def test_an_earlier_extraction_is_replaced(tmp_path):
    """Whole: cases that are no longer made are gone."""
    extracted(model_of(text_of("Scan")), WEIGHTS, tmp_path / "pack")
    pack = extracted(model_of(text_of("graph")), WEIGHTS, tmp_path / "pack")

    assert [path.name for path in sorted((tmp_path / "pack").glob("test_*"))] == ["test_gru_0"]
    assert len(pack.manifest.cases) == 1


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda folder: (folder / "notes.txt").write_text("mine"), "holds other files"),
        (lambda folder: (folder / "test_gru_0" / "a.txt").write_text("mine"), "holds other files"),
        (lambda folder: (folder / "test_gru_0" / "model.onnx").write_text("mine"), "was changed"),
        (lambda folder: (folder / "SHA256SUMS").write_text("mine"), "SHA256SUMS was changed"),
        (lambda folder: (folder / "manifest.json").write_text("{}"), "manifest.json: has format"),
        (lambda folder: (folder / "manifest.json").unlink(), "holds other files"),
    ],
)
def test_nothing_else_is_ever_removed(make, sentence, tmp_path):
    """A stranger among the files, or no manifest that says whose they are."""
    folder = tmp_path / "pack"
    extracted(model_of(text_of("graph")), WEIGHTS, folder)
    make(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(InvalidRequest, match=sentence):
        require(ExtractionPlan("m"), folder)
    with pytest.raises(InvalidRequest, match=sentence):
        extracted(model_of(text_of("graph")), WEIGHTS, folder)

    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_the_pack_of_another_model_is_not_replaced(tmp_path):
    """The name tells them apart."""
    extracted(model_of(text_of("graph")), WEIGHTS, tmp_path / "pack", name="first")
    with pytest.raises(InvalidRequest, match="'extracted-first', not of 'extracted-second'"):
        require(ExtractionPlan("second"), tmp_path / "pack")


def test_a_failure_leaves_what_was_there(tmp_path):
    """No half a pack, no temporary."""
    extracted(model_of(text_of("graph")), WEIGHTS, tmp_path / "pack")
    model, fed = one_node("GRU", layer(3), hidden_size=4)
    with pytest.raises(InvalidRequest):
        extracted(model, fed, tmp_path / "pack", profile="exact")

    assert [path.name for path in tmp_path.iterdir()] == ["pack"]
    assert list(open_pack(tmp_path / "pack").problems()) == []


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [(ExtractionPlan("m", profile="stric"), "did you mean 'strict'")],
)
def test_what_can_only_fail_later_is_refused_at_once(plan, sentence, tmp_path):
    """Before the model runs."""
    with pytest.raises(InvalidRequest, match=sentence):
        require(plan, tmp_path / "pack")
