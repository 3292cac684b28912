"""`rnncli stream` from the command line."""

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
