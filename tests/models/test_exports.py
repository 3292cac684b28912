"""Claims about what exporters do to models."""

from dataclasses import astuple

import numpy as np
import onnx
from support.real_models import DATA, PATHS
from support.tables import every

from rnncli.jobs.workers import HERE
from rnncli.judging.tolerances.tolerance import EXACT
from rnncli.models.exports import export_faults
from rnncli.models.loading import load_model
from rnncli.reports.inspection import model_record
from rnncli.running.request import ListedTarget, Request
from rnncli.running.tasks import plan, run_all

EXPORTS = DATA / "exports" / "faulty"
WEIGHTS = "float[1,6,3] W, float[1,6,2] R"
GRU = "GRU <hidden_size = 2, linear_before_reset = 1>"
LSTM = "LSTM <hidden_size = 2>"
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
    # What a manual bidirectional layer became: the length of the trace is in a shape.
    "seq, axis 1 of x, is declared free, but all shapes fit at 1 and 7 alone": """
        g (float[N,seq,3] x) => (float[N,a,3] y) {
        n = Shape <start = 0, end = 1> (x)
        rest = Constant <value = int64[2] {7, 3}> ()
        shape = Concat <axis = 0> (n, rest)
        zero = Constant <value = float[1,1,1] {0}> ()
        zeros = Expand (zero, shape)
        y = Add (x, zeros) }""",
    "T, axis 0 of x, is declared free, but all shapes fit at 7 alone": f"""
        g (float[T,N,3] x, {WEIGHTS}) => (float[7,N,2] y) {{
        all = {GRU} (x, W, R)
        shape = Constant <value = int64[3] {{7, -1, 2}}> ()
        y = Reshape (all, shape) }}""",
    # A recurrence that torch.export or a trace unrolled, by sequences, by elements and by slices.
    "T, axis 0 of x, is declared free, but only its first 3 steps are read": """
        g (float[T,N,2] x, float[2,2] W) => (float[N,2] y) {
        all = MatMul (x, W)
        steps = SplitToSequence <axis = 0, keepdims = 0> (all)
        zero = Constant <value = int64 {0}> ()
        one = Constant <value = int64 {1}> ()
        two = Constant <value = int64 {2}> ()
        a = SequenceAt (steps, zero)
        b = SequenceAt (steps, one)
        c = SequenceAt (steps, two)
        ra = Relu (a)
        sb = Add (ra, b)
        rb = Relu (sb)
        y = Add (rb, c) }""",
    "T, axis 1 of x, is declared free, but only its first 2 steps are read": """
        g (float[N,T,2] x) => (float[N,2] y) {
        zero = Constant <value = int64 {0}> ()
        one = Constant <value = int64 {1}> ()
        a = Gather <axis = 1> (x, zero)
        b = Gather <axis = 1> (x, one)
        ra = Relu (a)
        y = Add (ra, b) }""",
    "T, axis 1 of x, is declared free, but only its first 4 steps are read": """
        g (float[N,T,2] x) => (float[N,4,2] y) {
        t = Relu (x)
        start = Constant <value = int64[1] {0}> ()
        end = Constant <value = int64[1] {4}> ()
        axis = Constant <value = int64[1] {1}> ()
        y = Slice (t, start, end, axis) }""",
    "T, axis 0 of x, is declared free, but all shapes fit at 1 and 5 alone": """
        g (float[T,3] x) => (float[t,3] y) {
        p = Constant <value = float[5,1] {1, 2, 3, 4, 5}> ()
        y = Add (x, p) }""",
    "node 'Gather_2' (Gather): reads step 4 of T, axis 0 of x, however many": f"""
        g (float[T,N,3] x, {WEIGHTS}) => (float[1,N,2] y) {{
        all = {GRU} (x, W, R)
        four = Constant <value = int64 {{4}}> ()
        y = Gather <axis = 0> (all, four) }}""",
    "x: its axis of time, 0, is frozen to 3 steps, each with nodes of its own": """
        g (float[3,N,2] x, float[1,2] b) => (float[1,N,2] y) {
        R = Constant <value = float[2,2] {1, 0, 0, 1}> ()
        p, q, r = Split <axis = 0> (x)
        h = MatMul (p, R)
        i = Add (h, q)
        j = MatMul (i, R)
        k = Add (j, r)
        l = MatMul (k, R)
        y = Add (l, b) }""",
    "LSTM_1: initial_h is constant, of batch_size 1, although X has any": f"""
        g (float[T,N,3] x, float[1,8,3] W, float[1,8,2] R) => (float[T,1,N,2] y) {{
        h = Constant <value = float[1,1,2] {{0, 0}}> ()
        y = {LSTM} (x, W, R, , , h) }}""",
    "GRU_0: initial_h is the input h, of batch_size 1, although X has any": f"""
        g (float[T,N,3] x, float[1,1,2] h, {WEIGHTS}) => (float[T,1,N,2] y) {{
        y = {GRU} (x, W, R, , , h) }}""",
    "LSTM_2: initial_h and initial_c are computed for batch_size 1, although X has any": """
        g (float[N,T,3] x, float[1,8,3] W, float[1,8,2] R) => (float[N,T,1,2] y) {
        k = Constant <value = float[1,1,2] {0, 0}> ()
        h = Relu (k)
        y = LSTM <hidden_size = 2, layout = 1> (x, W, R, , , h, h) }""",
    "lens: no node reads this input": f"""
        g (float[T,N,3] x, int64[N] lens, {WEIGHTS}) => (float[T,1,N,2] y) {{
        y = {GRU} (x, W, R) }}""",
    "GRU_1: initial_h is a constant other than 0: learned, or": f"""
        g (float[T,1,3] x, {WEIGHTS}) => (float[T,1,1,2] y) {{
        h = Constant <value = float[1,1,2] {{0, 0.5}}> ()
        y = {GRU} (x, W, R, , , h) }}""",
}


@every("sentence, text", FAULTS.items(), ids=str)
def test_what_a_model_declares_of_sizes_wrongly_is_told(parse, sentence, text):
    """Each fault by itself, in one sentence that names the output and the axis."""
    (told,) = export_faults(parse(text)).sentences

    assert told.startswith(sentence)


def test_an_lstm_with_projection_is_not_evaluated(parse):
    """As torch.export's nodes with `proj_size` are: a cell that is wider than the state."""
    model = parse("""g (float[T,N,3] x, float[1,8,3] W, float[1,8,2] R) => (float[T,1,N,2] y) {
        n = Shape <start = 1, end = 2> (x)
        one = Constant <value = int64[1] {1}> ()
        five = Constant <value = int64[1] {5}> ()
        shape = Concat <axis = 0> (one, n, five)
        c = ConstantOfShape (shape)
        y = LSTM <hidden_size = 2> (x, W, R, , , , c) }""")

    ((name, operator, _, reason),) = map(astuple, export_faults(model).unevaluated)

    assert (name, operator) == ("LSTM_5", "LSTM")
    assert "hidden_size is 2, as of an LSTM with projection, which ONNX has not" in reason


@every(
    "producer, bias, is_told",
    [
        ("pytorch", 0, True),
        ("tf2onnx", 0, False),
        ("tf2onnx", 1, True),
        ("", 1, False),
    ],
    ids=str,
)
def test_a_reset_before_the_product_is_told_of_frameworks_that_reset_after_it(
    parse, producer, bias, is_told
):
    """PyTorch's GRU always does, Keras's if it has two biases."""
    zeros = ", ".join("0" * 11)
    model = parse(f"""g (float[T,1,3] x, {WEIGHTS}) => (float[T,1,1,2] y) {{
        b = Constant <value = float[1,12] {{{zeros}, {bias}}}> ()
        y = GRU <hidden_size = 2> (x, W, R, b) }}""")
    model.proto.producer_name, model.proto.producer_version = producer, "1.2"

    told = [*export_faults(model).sentences]

    assert [each[: each.index(",")] for each in told] == [
        "GRU_1: linear_before_reset is 0"
    ] * is_told


def test_a_sentence_ends_with_the_exporter_and_the_report_of_it(parse):
    """If the exporter is one of which it is known."""
    ((_, text), *_) = FAULTS.items()
    model = parse(text)
    model.proto.producer_name, model.proto.producer_version = "pytorch", "2.13.0"
    model.proto.graph.metadata_props.add(key="pkg.torch.export.ExportedProgram")

    (told,) = export_faults(model).sentences

    assert told.endswith("which is free (pytorch 2.13.0; pytorch/pytorch#191855)")


SOUND = {
    "sizes that follow": f"""g (float[T,N,3] x, {WEIGHTS}) => (float[T,1,N,2] y) {{
        y = {GRU} (x, W, R) }}""",
    "sizes that inference does not know": """
        g (float[T,3] x, int64[k] s) => (float[T,1] y) { y = Reshape (x, s) }""",
    "symbols of outputs alone": """
        g (float[T,3] x) => (float[more,3] y) { y = Concat <axis = 0> (x, x) }""",
    "formulas of symbols": """
        g (float[T,3] x, float[D,3] z) => (float[T,3] y, float[D,3] v) {
        y = Identity (x)
        v = Identity (z) }""",
    "one step that is read": """
        g (float[N,T,2] x) => (float[N,2] y) {
        zero = Constant <value = int64 {0}> ()
        y = Gather <axis = 1> (x, zero) }""",
    "steps that are read beside all": """
        g (float[N,T,2] x) => (float[N,T,2] y) {
        start = Constant <value = int64[1] {0}> ()
        end = Constant <value = int64[1] {4}> ()
        axis = Constant <value = int64[1] {1}> ()
        s = Slice (x, start, end, axis)
        m = ReduceMax <axes = [1]> (s)
        y = Add (x, m) }""",
    "nothing, of the declared size": "g (float[0,T] x) => (float[0,T] y) { y = Relu (x) }",
    "views that one layer sees": """
        g (float[N,3,2] x) => (float[N,1,2] y) {
        W = Constant <value = float[2,2] {1, 0, 0, 1}> ()
        p, q, r = Split <axis = 1> (x)
        a = MatMul (p, W)
        b = MatMul (q, W)
        c = MatMul (r, W)
        ab = Add (a, b)
        y = Add (ab, c) }""",
    "a window that a longer input fills": """
        g (float[N,1,T] x, float[1,1,5] W) => (float[N,1,t] y) { y = Conv (x, W) }""",
    "a size that several mend": """
        g (float[N,T,12] x) => (float[a,12] y) {
        shape = Constant <value = int64[2] {-1, 12}> ()
        y = Reshape (x, shape) }""",
    "a state of the batch of X": f"""
        g (float[T,N,3] x, float[1,N,2] h, {WEIGHTS}) => (float[T,1,N,2] y) {{
        y = {GRU} (x, W, R, , , h) }}""",
    "a window of channels, whose batch is that of X": """
        g (float[N,5,T] x, float[N,5,2] h, float[5,1,3] W) => (float[N,5,T] y, float[N,5,2] v) {
        y, v = CausalConvWithState (x, W, , h) }""",
    "channels that are last, likewise": """
        g (float[N,T,5] x, float[N,4,5] h, float[5,1,3] W) => (float[N,T,5] y, float[N,4,5] v) {
        y, v = com.microsoft.CausalConvWithState <dilation = 2, channels_last = 1> (x, W, , h) }""",
    "zeros of the batch of X": f"""
        g (float[T,N,3] x, {WEIGHTS}) => (float[T,1,N,2] y) {{
        n = Shape <start = 1, end = 2> (x)
        one = Constant <value = int64[1] {{1}}> ()
        two = Constant <value = int64[1] {{2}}> ()
        shape = Concat <axis = 0> (one, n, two)
        h = ConstantOfShape (shape)
        y = {GRU} (x, W, R, , , h) }}""",
}


@every("text", SOUND.values(), ids=SOUND)
def test_a_sound_model_is_not_accused(parse, text):
    """What is declared as it is, and what nobody knows."""
    model = parse(text, 27, ', "com.microsoft" : 1') if "Causal" in text else parse(text)
    for value in model.proto.graph.input:
        for size in value.type.tensor_type.shape.dim:
            if size.dim_param == "D":
                size.dim_param = "2*T + 1"

    assert export_faults(model) == ((), ())


# Model -> how its sentences begin.
DECLARED = "y: its axis 1 is declared 7, but is as long as seq, axis 1 of x"
UNROLLED = "axis 1 of x, is declared free, but only its first 7 steps are read"
REAL = {
    "lstm_dynamo": [DECLARED],
    "lstm_projection_dynamo": [DECLARED],
    "gru_reset_before_dynamo": ["node_gru__1: linear_before_reset is 0", DECLARED],
    "lstm_reversed_by_hand_dynamo": ["seq, axis 1 of x, is declared free, but all shapes fit at 7"],
    "rnn_dynamo": [f"s27, {UNROLLED}"],
    "lstm_cell_loop_ts": [f"seq, {UNROLLED}"],
    "lstm_reshape_ts": [
        "y: its axis 0 is declared batch, but is 2",
        "y: its axis 1 is declared seq",
    ],
    "lstm_batch_of_2_ts": ["batch, axis 0 of x, is declared free, but all shapes fit at 2 alone"],
    "lstm_one_tensor_twice_dynamo": ["h: no node reads this input", "y: its axis 1 is declared 9"],
    "gru_step_8_ts": ["node '/Gather' (Gather): reads step 8 of t, axis 1 of x, however many"],
    "rnn_loop_jax": ["in_0: its axis of time, 1, is frozen to 7 steps, each with nodes of its own"],
    "gru_learned_state_ts": ["/r/GRU: initial_h is a constant other than 0"],
    "gru_stateful_tf2onnx": ["GRU__485: initial_h is a constant other than 0"],
    "lstm_stateful_keras": [
        "LSTM__31: initial_h and initial_c are constant, of batch_size 2, although X has any",
        "LSTM__31: initial_h and initial_c are constants other than 0",
    ],
}


@every("name, begins", REAL.items(), ids=str)
def test_what_real_exporters_did_is_told(name, begins):
    """Of PyTorch's two exporters, tf2onnx, Keras and JAX."""
    told = export_faults(load_model(EXPORTS / f"{name}.onnx")).sentences

    assert len(told) == len(begins)
    assert all(map(str.startswith, told, begins)), told


@every("path", PATHS.values(), ids=lambda path: path.stem)
def test_real_models_that_agree_with_their_outputs_are_not_accused(path):
    """Those whose recorded outputs rnncli computes."""
    assert export_faults(load_model(path)) == ((), ())


@every(
    "nodes",
    [
        "y = Gather (x)",
        "y = Slice (x, x)",
        "y = Squeeze ()",
        "y = GRU <hidden_size = 0> (x, x, x, b)",
        "z = Transpose () y = GRU <hidden_size = 7> (x, x, x, b, , z)",
    ],
)
def test_nodes_without_sense_are_left_to_the_evaluation(parse, nodes):
    """Which says what is wrong with them."""
    model = parse(
        f"g (float[T,N,2] x) => (y) <float[1,5] b = {{1, 2, 3, 4, 5}}> {{ {nodes} }}".replace(
            "z = Transpose () y = GRU <hidden_size = 7> (x, x, x, b, , z)",
            "z = Transpose () y = GRU <hidden_size = 7> (x, x, x, b, , z)",
        )
    )

    export_faults(model)


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


def test_run_tells_the_outputs_of_another_size_than_declared(parse, tmp_path):
    """Of what inference does not know, once per output, and not again what is told already."""
    model = parse("""g (float[T,3] x, int64[2] s) => (float[5,3] y, float[4,3] z) {
        y = Reshape (x, s)
        z = Identity (x) }""")
    path, shape = tmp_path / "m.onnx", tmp_path / "s.npy"
    onnx.save(model.proto, path)
    np.save(shape, np.array([2, 3]))
    request = Request(tolerance=EXACT, dims={"T": 2}, input_files={"s": str(shape)})
    (report,) = run_all(plan([ListedTarget(str(path))], request), HERE)

    z = "z: its axis 0 is declared 4, but is as long as T, axis 0 of x, which is free"
    y = "y: is declared float32 [5, 3], but is [2, 3]"
    assert report.warnings == (f"{path}: {z}", f"{path}: {y}")
