"""`rnncli stream` from the command line."""

import json

import numpy as np
import onnx
import pytest
from support.real_models import DATA
from support.streamed_layers import LAYERS, layers
from support.tables import every

import rnncli as api
from rnncli.verifying.relations.streaming import STREAM_RELATIONS

PACKED = DATA / "exports/lstm_packed_bi_ts.onnx"
SWAPPED = LAYERS.replace("y, h_out, c_out", "y, c_out, h_out")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A working folder with a model whose states are swapped, and one that is right."""
    onnx.save(layers(SWAPPED), tmp_path / "swapped.onnx")
    onnx.save(layers(), tmp_path / "right.onnx")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_reports_and_known_failures_are_those_of_every_command(place, rnncli):
    """Lines, JUnit, the command that repeats a case, and xfails by ids of relations."""
    command = ["stream", "swapped.onnx", "--backend", "numpy", "--relation", "chunks-2"]
    (place / "known.txt").write_text("swapped::chunks-* states are swapped\n")

    failed = rnncli(*command, "--json", "--junit", "out.xml")
    lines = [json.loads(line) for line in failed.out.splitlines()]
    (case,) = (line for line in lines if line["kind"] == "case")

    assert (failed.code, case["id"], case["verdict"]) == (1, "swapped::chunks-2", "differs")
    assert case["repeat"].endswith(" --steps 3 --sequences 1 -k id:swapped::chunks-2")
    assert "swapped::chunks-2" in (place / "out.xml").read_text()
    assert rnncli(*command, "--xfails", "known.txt").code == 0


def test_recorded_lines_are_reported_again(place, rnncli):
    """`rnncli report` reads what `stream --json` prints, with its exit code."""
    found = rnncli("stream", "swapped.onnx", "--backend", "numpy", "--json")
    (place / "run.jsonl").write_text(found.out)

    again = rnncli("report", "run.jsonl", "--html", "out.html")

    assert again.code == found.code == 1
    assert "swapped::chunks-1" in (place / "out.html").read_text()


def test_states_and_sizes_are_options(place, rnncli):
    """They decide, and stand in the command that repeats a case."""
    wrong = ["--state", "past_in=past_out", "--state", "h_in=c_out", "--state", "c_in=h_out"]

    passed = rnncli("stream", "swapped.onnx", *wrong)
    failed = rnncli("stream", "right.onnx", *wrong, "--dim", "T=9")
    unknown = rnncli("stream", "right.onnx", "--backend", "numpy", "--state", "h=h_out")

    assert passed.code == 0
    assert failed.code == 1
    repeat = " --state c_in=h_out --dim T=9 --steps 2 --sequences 1 -k id:right::chunks-1"
    assert repeat in failed.out + failed.err
    assert unknown.code == 2
    assert "--state: no input 'h'" in unknown.err


def test_sizes_without_a_name_are_asked_for_and_taken(place, rnncli):
    """A window whose dimensions the model does not name."""
    proto = layers()
    for value in proto.graph.input:
        if value.name == "x":
            value.type.tensor_type.shape.dim[2].Clear()
    window = onnx.helper.make_tensor("window", onnx.TensorProto.INT64, [3], [-1, 4, 5])
    proto.graph.initializer.append(window)
    proto.graph.node[0].input[1] = "framed"
    reshape = onnx.helper.make_node("Reshape", ["x", "window"], ["framed"])
    proto.graph.node.insert(0, reshape)
    onnx.save(proto, place / "unnamed.onnx")

    asked = rnncli("stream", "unnamed.onnx", "--dim", "N=1")
    taken = rnncli("stream", "unnamed.onnx", "--dim", "N=1", "--shape", "x=1,4,5")

    assert asked.code == 2
    assert "give sizes, which have no name: dimension 2 of x (--shape x=N,4,N)" in asked.err
    assert taken.code == 0


def test_a_failing_relation_is_saved_as_a_test_case(place, rnncli):
    """A data set for each call of the smallest case; `run` differs where the relation does."""
    rnncli("stream", "swapped.onnx", "--relation", "chunks-2", "--save", "failing")

    folder = place / "failing/swapped_chunks-2"
    ran = rnncli("run", str(folder))

    assert sorted(each.name for each in folder.iterdir()) == [
        ".rnncli-files",
        "model.onnx",
        "test_data_set_0",
        "test_data_set_1",
    ]
    assert ran.code == 1
    assert "right: 4 outputs as expected by test_data_set_0" in ran.err
    assert f"FAIL {folder} test_data_set_1\n  y: 3 of 3 differ" in ran.err


class Wrong:
    """A model's outputs, wrong in a way that a function of the call's number and an array says."""

    def __init__(self, change):
        self.change, self.count, self.session = change, 0, None

    def __call__(self, vector):
        """Run a call."""
        self.session = self.session or api.prepare(onnx.load_from_string(vector.model))
        self.count += 1
        made = self.session.run(vector.inputs).items()
        changed = {name: self.change(self.count, values) for name, values in made}
        return {name: values for name, values in changed.items() if values is not None}


LATER = {"again", "sizes", "singles", "chunks-2", "padding"}
# What is wrong with a subject -> the change of an output at a call, and relations that it breaks.
TWISTS = {
    "zeros": (lambda _, values: np.zeros_like(values), {"float64"}),
    "others at each call": (lambda k, values: values + values.dtype.type(k), {"float64", *LATER}),
    "another type later": (lambda k, values: values.astype("f2") if k > 1 else values, LATER),
    "no output later": (lambda k, values: values if k < 2 else None, LATER),
    "a step less later": (lambda k, values: values if k < 2 else values[1:], LATER),
}


@every("twist", TWISTS)
def test_whatever_fails_is_saved_in_every_relation(place, rnncli, twist):
    """Each as a test case that `run` takes again, whether or not the relation made a call."""
    (change, broken), failing = TWISTS[twist], set()
    for model in ("right.onnx", str(PACKED)):
        for name in STREAM_RELATIONS:
            subject = Wrong(change)
            (case,) = api.stream(model, subject, relation=[name], save="failing").cases
            if case.details.verdict == "differs":
                folder = case.details.message.partition("saved as ")[2].partition(";")[0]
                assert rnncli("run", folder).code in {0, 1}
                failing.add(name)
    assert failing >= broken


def test_nothing_to_save_is_said(place, rnncli):
    """In a line, and no folder is made."""
    done = rnncli("stream", "right.onnx", "--relation", "chunks-2", "--save", "failing")

    assert "failing: nothing was saved, since no relation differs" in done.err
    assert not (place / "failing").exists()


def test_saved_calls_are_the_stream_again(place, rnncli):
    """Data sets beside a model are successive steps: both chunks together are the three steps."""
    rnncli("stream", "swapped.onnx", "--relation", "chunks-2", "--save", "failing")
    saved = "failing/swapped_chunks-2/model.onnx"

    whole = rnncli("stream", saved, "--relation", "chunks-2", "--json")
    shorter = rnncli("stream", saved, "--relation", "chunks-2", "--steps", "2")
    longer = rnncli("stream", saved, "--steps", "4")

    (case,) = (each for each in map(json.loads, whole.out.splitlines()) if each["kind"] == "case")
    assert (case["verdict"], case["message"].partition(",")[0]) == ("differs", "y at step 2")
    assert shorter.code == 5
    assert longer.code == 2
    assert "--steps 4: the stream has only 3" in longer.err


def test_inputs_are_given_by_name(place, rnncli):
    """The same steps as in a data set; states may be given, too, and stand in the command."""
    steps = np.random.default_rng(2).normal(size=(1, 4, 5)).astype(np.float32)
    np.save(place / "steps.npy", steps)
    np.save(place / "state.npy", np.ones((1, 1, 3), np.float32))
    given = ["-i", "x=steps.npy", "-i", "h_in=state.npy"]

    failed = rnncli("stream", "swapped.onnx", *given, "--relation", "chunks-2")
    passed = rnncli("stream", "right.onnx", *given)
    misfit = rnncli("stream", "right.onnx", "-i", "x=state.npy")

    assert failed.code == 1
    assert "-i x=steps.npy -i h_in=state.npy --steps 3" in failed.err
    assert passed.code == 0
    assert misfit.code == 2
    assert "'x'" in misfit.err


STATEFUL = """<ir_version: 8, opset_import: ["": 17]>
g (float[T,{size}] x, float[1,{size}] h_in) => (float[T,{size}] y, float[1,{size}] h_out) {{
    {nodes}
    y = Add (x, h_out)
}}"""
LOOPED = """trips = Constant <value = int64 {{4611686018427387904}}> ()
    keep = Constant <value = bool {{1}}> ()
    {end} = Loop (trips, keep, h_in)
        <body = b (int64 i, bool c, float[{sizes}] s) => (bool d, float[{sizes}] t) {{
            d = Identity (c)
            t = {step}
        }}>"""
# What takes too much -> the model, the options, and what is said of it.
TOO_MUCH = {
    "inputs": ({"size": 1 << 31, "nodes": "h_out = Relu (h_in)"}, [], "takes 24.0 GiB, and this"),
    "steps": ({"nodes": "h_out = Relu (h_in)"}, ["--dim", "T=1000000000000"], "TiB, and this run"),
    "a loop": (
        {"nodes": LOOPED.format(end="h_out", sizes="1,3", step="Sin (s)")},
        ["--timeout", "0.5"],
        "not finished in the 0.5 s it was given, in trip",
    ),
    "a state that doubles": (
        {
            "nodes": LOOPED.format(end="all", sizes="K,3", step="Concat <axis = 0> (s, s)")
            + "\nh_out = ReduceMean <axes = [0]> (all)"
        },
        ["--max-memory", "100M"],
        "and this run may take 100.0 MiB in all; --max-memory SIZE raises that",
    ),
}


@every("what", TOO_MUCH)
def test_what_a_model_takes_is_limited_as_in_run(place, rnncli, what):
    """A file of some hundred bytes ends with a sentence, whatever would be made of it."""
    filled, options, sentence = TOO_MUCH[what]
    text = STATEFUL.format(**{"size": 3, **filled})
    onnx.save(onnx.parser.parse_model(text), "much.onnx")

    done = rnncli("stream", "much.onnx", *options)

    assert done.code == 2
    assert done.err.startswith("much.onnx: ")
    assert sentence in done.err


def test_what_is_judged_is_not_held_by_the_limit_of_the_command(place, rnncli):
    """Nor are workers without it: in two processes, a model passes in ONNX Runtime."""
    done = rnncli("stream", "right.onnx", "--runtime", "onnxruntime", "-j", "2", "--json")

    assert done.code == 0


def test_the_host_of_other_nodes_is_an_option(place, rnncli):
    """It evaluates them for the backend and for bounds, and stands in the command."""
    done = rnncli("stream", "right.onnx", "--host", "onnxruntime", "--json")

    head = json.loads(done.out.splitlines()[0])
    assert done.code == 0
    assert head["subject"]["about"]["host"] == "onnxruntime"
    assert "--host onnxruntime" in head["command"]
