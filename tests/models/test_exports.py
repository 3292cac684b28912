"""Claims about what exporters do to models."""

import onnx
from support.tables import every

from rnncli.jobs.workers import HERE
from rnncli.judging.tolerances.tolerance import EXACT
from rnncli.models.exports import export_faults
from rnncli.reports.inspection import model_record
from rnncli.running.request import ListedTarget, Request
from rnncli.running.tasks import plan, run_all

WEIGHTS = "float[1,6,3] W, float[1,6,2] R"
GRU = "GRU <hidden_size = 2, linear_before_reset = 1>"
# Each fault by itself, beside the beginning of its sentence.
FAULTS = {
    # What torch.onnx.export(dynamo=True) declares of a batch-first LSTM or GRU.
    "y: its axis 1 is declared 7, but is as long as s27, axis 1 of x, which is free": f"""
        g (float[s77,s27,3] x, {WEIGHTS}) => (float[s77,7,2] y) {{
        t = Transpose <perm = [1, 0, 2]> (x)
        all = {GRU} (t, W, R)
        one = Constant <value = int64[1] {{1}}> ()
        flat = Squeeze (all, one)
        y = Transpose <perm = [1, 0, 2]> (flat) }}""",
    "y: its axis 0 is declared N, but is 2 at any N, as node 'Reshape_2' (Reshape)": f"""
        g (float[7,N,3] x, {WEIGHTS}) => (float[N,14] y) {{
        all = {GRU} (x, W, R)
        shape = Constant <value = int64[2] {{2, 14}}> ()
        y = Reshape (all, shape) }}""",
    "y: its axis 0 is declared T, but is as long as N, axis 1 of x": f"""
        g (float[T,N,3] x, {WEIGHTS}) => (float[T,2] y) {{
        all, last = {GRU} (x, W, R)
        zero = Constant <value = int64[1] {{0}}> ()
        y = Squeeze (last, zero) }}""",
    "y: its axis 0 is declared T, but has another size": """
        g (float[T,3] x) => (float[T,3] y) { y = Concat <axis = 0> (x, x) }""",
}


@every("sentence, text", FAULTS.items(), ids=str)
def test_what_a_model_declares_of_sizes_wrongly_is_told(parse, sentence, text):
    """Each fault by itself, in one sentence that names the output and the axis."""
    (told,) = export_faults(parse(text))

    assert told.startswith(sentence)


SOUND = {
    "sizes that follow": f"""g (float[T,N,3] x, {WEIGHTS}) => (float[T,1,N,2] y) {{
        y = {GRU} (x, W, R) }}""",
    "sizes that inference does not know": """
        g (float[T,3] x, int64[k] s) => (float[T,1] y) { y = Reshape (x, s) }""",
    "symbols of outputs alone": """
        g (float[T,3] x) => (float[more,3] y) { y = Concat <axis = 0> (x, x) }""",
    "formulas of symbols": """
        g (float[T,3] x, float[D,3] z) => (float[T,3] y) { y = Identity (x) }""",
}


@every("text", SOUND.values(), ids=SOUND)
def test_a_sound_model_is_not_accused(parse, text):
    """What is declared as it is, and what nobody knows."""
    model = parse(text)
    for value in model.proto.graph.input:
        for size in value.type.tensor_type.shape.dim:
            if size.dim_param == "D":
                size.dim_param = "2*T + 1"

    assert [*export_faults(model)] == []


def test_inspect_and_run_tell_it(parse, tmp_path):
    """The same sentence in both."""
    ((sentence, text), *_) = FAULTS.items()
    model, path = parse(text), f"{tmp_path}/m.onnx"
    for name, shape in (("W", [1, 6, 3]), ("R", [1, 6, 2])):
        (value,) = (value for value in model.proto.graph.input if value.name == name)
        model.proto.graph.input.remove(value)
        weights = onnx.helper.make_tensor(name, 1, shape, [0.5] * (shape[1] * shape[2]))
        model.proto.graph.initializer.append(weights)
    onnx.save(model.proto, path)
    (report,) = run_all(plan([ListedTarget(path)], Request(tolerance=EXACT)), HERE)

    for told in (model_record(model)["warnings"], report.warnings):
        assert any(sentence in each for each in told), told
