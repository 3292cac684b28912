"""`rnncli run`: targets, inputs, outputs, batches."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from support.tables import every

from rnncli.backends.numpy_backend import NumPyBackend
from rnncli.backends.threads import threads
from rnncli.cases.library import spec_names
from rnncli.files.formats import read_tensors, write_tensors

DATA = Path(__file__).parents[1] / "data"
LSTM = DATA / "exports" / "lstm_packed_bi_ts.onnx"
PACK = Path(__file__).parents[2] / "vectors" / "core"

CONFIG = """\
op: LSTM-14
sizes: {seq_length: 4, batch_size: 2, input_size: 3, hidden_size: 5}
attributes: {clip: 0.1}
inputs: {sequence_lens: [4, 2], initial_c: ones}
"""


@pytest.fixture
def config(tmp_path):
    """A small config on disk."""
    path = tmp_path / "small.yaml"
    path.write_text(CONFIG)
    return path


def recorded(model):
    """The recorded inputs and outputs of a model of tests/data, by name."""
    tensors = read_tensors(model.with_suffix(".npz"))
    split = {"in": {}, "out": {}}
    for key, values in tensors.items():
        kind, _, name = key.partition(".")
        split[kind][name] = values
    return split["in"], split["out"]


@every("name", [n for n in spec_names() if n.startswith("ops/")])
def test_every_shipped_spec_runs_by_name(rnncli, name):
    """Each spec is a target, found by its name, and gives finite numbers."""
    outcome = rnncli("run", name)

    assert (outcome.code, outcome.err) == (0, "")
    assert {(row["nan"], row["inf"]) for row in outcome.rows} == {("0", "0")}


def test_what_has_no_outputs_has_no_heading(rnncli, tmp_path):
    """A pipe gets one heading, above the first row."""
    (tmp_path / "idle.yaml").write_text(
        "op: RNN-14\noutputs: []\n"
        "sizes: {seq_length: 2, batch_size: 1, input_size: 2, hidden_size: 2}\n"
    )
    idle = tmp_path / "idle.yaml"

    assert rnncli("run", idle).out == ""
    assert rnncli("run", idle, idle, "rnn_14").out.count("data set") == 1


def test_real_model_agrees_with_its_recorded_outputs(rnncli, tmp_path):
    """Inputs from a file in, outputs to a file out, compared by our own command."""
    inputs, outputs = recorded(LSTM)
    write_tensors(tmp_path / "in.npz", inputs)
    write_tensors(tmp_path / "wanted.npz", outputs)

    done = rnncli("run", LSTM, "--inputs", tmp_path / "in.npz", "-o", tmp_path / "got.h5")
    assert (done.code, done.err) == (0, "")

    judged = rnncli("compare", tmp_path / "got.h5", tmp_path / "wanted.npz", "--atol", "2.5e-5")
    assert judged.code == 0


def test_single_inputs_win_over_a_set(rnncli, tmp_path):
    """-i replaces one input of --inputs; --save-inputs keeps what was used."""
    inputs, _ = recorded(LSTM)
    write_tensors(tmp_path / "in.npz", inputs)
    lengths = np.array([1, 2, 7])
    np.save(tmp_path / "lengths.npy", lengths)

    outcome = rnncli(
        *("run", LSTM, "--inputs", tmp_path / "in.npz", "-i", f"lens={tmp_path / 'lengths.npy'}"),
        *("--save-inputs", tmp_path / "used.npz"),
    )

    used = read_tensors(tmp_path / "used.npz")
    assert outcome.code == 0
    assert used["lens"].tolist() == lengths.tolist()
    assert np.array_equal(used["x"], inputs["x"])


def test_inputs_may_be_written_out(rnncli, tmp_path):
    """The lengths of a model and of an operator, in their own types."""
    inputs, _ = recorded(LSTM)
    np.save(tmp_path / "x.npy", inputs["x"])
    lengths = f"lens={inputs['lens'].tolist()}"
    options = ["-i", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "out.npz"]

    assert rnncli("run", LSTM, *options, "-i", lengths).code == 0
    np.save(tmp_path / "lens.npy", inputs["lens"])
    options[-1] = tmp_path / "file.npz"
    assert rnncli("run", LSTM, *options, "-i", f"lens={tmp_path / 'lens.npy'}").code == 0
    one, other = (read_tensors(tmp_path / f"{name}.npz") for name in ("out", "file"))
    assert all(np.array_equal(one[name], other[name]) for name in one)
    done = rnncli(
        "run", "lstm_14_peepholes", "-i", "sequence_lens=[1, 1]", "-o", tmp_path / "o.npz"
    )
    assert done.code == 0
    assert not read_tensors(tmp_path / "o.npz")["Y"][1:].any()


def test_symbolic_dimensions_come_from_options(rnncli):
    """--dim gives sizes; without it they are 1, with a warning that names the option."""
    given = rnncli("run", LSTM, "--dim", "batch=3,seq=6")
    assumed = rnncli("run", LSTM)

    assert (given.rows[0]["shape"], given.err) == ("[3, 6, 40]", "")
    assert "--dim batch=N" in assumed.err
    assert "--dim seq=N" in assumed.err


def test_a_warning_names_its_model_once(rnncli, tmp_path, monkeypatch):
    """Also where the path begins with `./`, which the model's own name lacks."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(LSTM, "m.onnx")

    for target in ("m.onnx", "./m.onnx"):
        assert rnncli("run", target).err.startswith("warning: m.onnx: assumed to be 1: ")


@pytest.mark.parametrize(("value", "columns"), [("0.5", []), (".nan", ["nan"])])
def test_a_drawn_table_lacks_columns_of_zeros(rnncli, tmp_path, monkeypatch, value, columns):
    """A column of NaN or infinities stands only where there is one; a pipe gets all columns."""
    sizes = "{seq_length: 1, batch_size: 1, input_size: 1, hidden_size: 1}"
    path = tmp_path / "rnn.yaml"
    path.write_text(f"op: RNN-7\nsizes: {sizes}\ninputs: {{X: [[[{value}]]]}}\n")
    assert {"nan", "inf"} <= {*rnncli("run", path).rows[0]}
    monkeypatch.setattr("rnncli.reports.runs.is_drawn", lambda: True)
    heading = next(line for line in rnncli("run", path).out.splitlines() if "dtype" in line)

    assert heading.split() == ["output", "dtype", "shape", "min", "max", "mean", *columns]


def test_a_tensor_without_a_name_is_not_taken_for_an_input(rnncli, tmp_path):
    """The name of a .npy file is one only if the model has it; the message says how to give it."""
    np.save(tmp_path / "x2.npy", np.zeros((1, 1), np.float32))
    outcome = rnncli("run", LSTM, "--inputs", tmp_path / "x2.npy")

    assert outcome.code == 2
    assert f"-i NAME={tmp_path / 'x2.npy'} reads it as the input NAME: " in outcome.err


def test_a_real_model_runs_without_options(rnncli, tmp_path):
    """Silero's window needs 192 samples, which is said; given inputs are left as they are."""
    model = DATA / "silero-vad" / "silero_vad_16k_op15.onnx"
    outcome = rnncli("run", model)
    assert outcome.code == 0
    assert "assumed to be 1: batch (--dim batch=N)" in outcome.err
    assert "assumed to be 192: sequence (--dim sequence=N), the smallest found" in outcome.err

    np.save(tmp_path / "state.npy", np.zeros((1, 1, 128), np.float32))
    outcome = rnncli("run", model, "--dim", "sequence=576", "-i", f"state={tmp_path / 'state.npy'}")
    assert outcome.code == 2
    assert "input 'state' must be float32 [2, batch, 128], got float32 [1, 1, 128]" in outcome.err
    assert "--shape" not in outcome.err


def test_failure_on_generated_inputs_says_what_to_try(rnncli):
    """A size that was asked for is not replaced; the sentence names one that helps."""
    model = DATA / "silero-vad" / "silero_vad_16k_op15.onnx"
    outcome = rnncli("run", model, "--dim", "sequence=1")
    assert outcome.code == 2
    assert "inputs were generated for input float32 [batch, sequence]" in outcome.err
    assert "; it runs with --dim sequence=65\n" in outcome.err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--backend", "cuda"], "unknown backend 'cuda' (installed: "),
        (["--reading", "zero-lenght=zero"], "unknown reading 'zero-lenght'; did you mean"),
        (["--reading", "zero-length=nil"], "'zero-length' must be"),
    ],
)
def test_options_are_checked_before_the_model(rnncli, options, sentence):
    """What is wrong with an option is no node's fault, and shapes do not mend it."""
    outcome = rnncli("run", LSTM, *options)

    assert outcome.code == 2
    assert sentence in outcome.err
    assert "node" not in outcome.err
    assert "try --" not in outcome.err
    assert "assumed" not in outcome.err


@pytest.mark.parametrize("options", [["-i", "xx=nosuch.npy"], ["--dim", "bacth=3"]])
def test_names_are_checked_before_anything_runs(rnncli, options):
    """A misspelt input or dimension is told as such, without advice on shapes."""
    outcome = rnncli("run", LSTM, *options)

    assert outcome.code == 2
    assert "did you mean" in outcome.err
    assert "try --" not in outcome.err


def test_generated_inputs_depend_on_the_seed_alone(rnncli, tmp_path):
    """The same seed gives the same file, byte for byte; another seed another one."""
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        path = tmp_path / f"{name}.npz"
        assert rnncli("run", LSTM, "--dim", "batch=2,seq=3", "--seed", seed, "-o", path).code == 0
    a, b, c = ((tmp_path / f"{name}.npz").read_bytes() for name in "abc")

    assert a == b
    assert a != c


def test_config_written_as_test_case_runs_and_agrees(rnncli, config, tmp_path):
    """A folder is an ONNX test case: checked by onnx, and run again it compares its outputs."""
    case = tmp_path / "case"
    assert rnncli("run", config, "-o", case).code == 0

    model = onnx.load(case / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert model.opset_import[0].version == 14

    again = rnncli("run", case, "--max-ulp", 0)
    assert again.code == 0
    assert {row["data set"] for row in again.rows} == {"test_data_set_0"}


def test_a_terminal_is_told_that_outputs_are_right(rnncli, config, tmp_path, monkeypatch):
    """Where some are expected; a pipe gets the table alone, and standard error the sentence."""
    case = tmp_path / "case"
    rnncli("run", config, "-o", case)
    piped = rnncli("run", case)
    monkeypatch.setattr("rnncli.reports.runs.is_drawn", lambda: True)

    sentence = "right: 3 outputs as expected by test_data_set_0, with errors up to 0\n"
    assert rnncli("run", case).out.endswith(sentence)
    assert "right: " not in rnncli("run", config).out + piped.out
    assert piped.err == sentence


def test_a_batch_in_a_pipe_says_only_what_is_wrong(rnncli, config, tmp_path):
    """A sentence for each of many right targets would hide the others."""
    case = tmp_path / "case"
    rnncli("run", config, "-o", case)
    batch = rnncli("run", case, case)

    assert (batch.code, batch.err) == (0, "")


def test_wrong_expected_output_is_exit_1(rnncli, config, tmp_path):
    """The sentence says which output, where, by how much, and how to repeat it."""
    case = tmp_path / "case"
    rnncli("run", config, "-o", case)
    expected = case / "test_data_set_0" / "output_1.pb"
    tensor = TensorProto.FromString(expected.read_bytes())
    values = onnx.numpy_helper.to_array(tensor).copy()
    values[0, 1, 2] += 1
    expected.write_bytes(onnx.numpy_helper.from_array(values, "Y_h").SerializeToString())

    outcome = rnncli("run", case)

    assert outcome.code == 1
    assert f"FAIL {case} test_data_set_0\n  Y_h: 1 of 10 differ" in outcome.err
    assert "worst at [0,1,2]: got " in outcome.err
    assert f"repeat: rnncli run {case} --data-set 0" in outcome.err


@pytest.fixture
def outputs(rnncli, config, tmp_path):
    """The outputs of the config, and a writer of some of them, changed."""
    rnncli("run", config, "-o", tmp_path / "out.npz")
    found = read_tensors(tmp_path / "out.npz")

    def write(**changes):
        path = tmp_path / "expected.npz"
        write_tensors(path, {k: v for k, v in {**found, **changes}.items() if v is not None})
        return path

    return write


def test_expected_outputs_that_show_nothing_are_told(rnncli, config, tmp_path):
    """Any computation that ends in NaN gives them."""
    rnncli("run", config, "-o", tmp_path / "right.npz")
    right = np.load(tmp_path / "right.npz")
    np.savez(tmp_path / "nan.npz", **{name: right[name] * np.nan for name in right})

    wrong = rnncli("run", config, "--expected", tmp_path / "nan.npz")
    done = rnncli("run", config, "--expected", tmp_path / "right.npz")

    assert "what is expected shows nothing: each output is NaN throughout" in wrong.err
    assert (done.code, "shows nothing" in done.err) == (0, False)


def test_outputs_in_a_file_are_expected(rnncli, config, outputs):
    """Those in it and no others; one element that differs is exit code 1."""
    wrong = np.full((1, 2, 5), 9, np.float32)

    assert rnncli("run", config, "--expected", outputs(), "--max-ulp", 0).code == 0
    assert rnncli("run", config, "--expected", outputs(Y=None)).code == 0
    outcome = rnncli("run", config, "--expected", outputs(Y=None, Y_h=wrong))
    assert outcome.code == 1
    assert f"FAIL {config}\n  Y_h: 10 of 10 differ" in outcome.err
    assert "repeat" not in outcome.err


@every(
    ("changes", "answer"),
    [
        ({"Z": np.zeros(3, np.float32)}, (1, "Z: is missing")),
        (dict.fromkeys(("Y", "Y_h", "Y_c")), (2, "holds no tensors to expect as outputs")),
    ],
)
def test_a_file_of_other_outputs_is_no_answer(rnncli, config, outputs, changes, answer):
    """Nothing compared is nothing right."""
    code, sentence = answer
    outcome = rnncli("run", config, "--expected", outputs(**changes))

    assert outcome.code == code
    assert sentence in outcome.err


def test_data_sets_keep_their_own_outputs(rnncli, config, outputs, tmp_path):
    """Which of two expected outputs counts is never guessed."""
    rnncli("run", config, "-o", tmp_path / "case")

    outcome = rnncli("run", tmp_path / "case", "--expected", outputs())
    assert outcome.code == 2
    assert "which have outputs of their own; give inputs as well" in outcome.err


def test_cases_of_our_own_pack_agree_where_nan_is_wanted(rnncli):
    """NaN equals NaN when a test data set is compared, as in onnx.backend.test."""
    cases = [PACK / f"test_{cell}_22_nan" for cell in ("rnn", "gru", "lstm")]

    assert rnncli("run", *cases).code == 0
    assert rnncli("run", *cases, "--no-equal-nan").code == 1


def test_a_pack_is_compared_by_its_own_tolerances(rnncli, tmp_path):
    """What a pack forbids, `run` does not allow; tolerances that are given replace the pack's."""
    case = tmp_path / "case"
    shutil.copytree(PACK / "test_rnn_14_initial", case)
    path = case / "test_data_set_0" / "output_0.pb"
    ((name, values),) = read_tensors(path).items()
    write_tensors(path, {name: values + np.float32(1e-4)})

    outcome = rnncli("run", case)

    assert outcome.code == 1
    assert "60 of 60 differ" in outcome.err
    assert rnncli("run", case, "--atol", "2e-4").code == 0


def test_archive_in_model_zoo_form(rnncli, config, tmp_path):
    """A .tar.gz of a folder with model and data sets is a target."""
    rnncli("run", config, "-o", tmp_path / "case")
    with tarfile.open(tmp_path / "case.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "case", "case")

    outcome = rnncli("run", tmp_path / "case.tar.gz")

    assert outcome.code == 0
    assert [row["output"] for row in outcome.rows] == ["Y", "Y_h", "Y_c"]


@pytest.mark.parametrize("name", ["m.onnx", "m.textproto", "m.json", "m.onnxtxt"])
def test_model_of_any_form_is_written_as_test_case(rnncli, tmp_path, name):
    """The folder holds a model.onnx that gives the outputs beside it."""
    form = {"onnx": "protobuf"}.get(name[2:], name[2:])
    onnx.save(onnx.load(LSTM), tmp_path / name, format=form)

    assert rnncli("run", tmp_path / name, "--dim", "batch=2,seq=3", "-o", tmp_path / "c").code == 0
    assert rnncli("run", tmp_path / "c", "--max-ulp", 0).code == 0


def test_external_data_goes_along(rnncli, tmp_path):
    """A model that keeps its weights in another file is copied with that file."""
    onnx.save(
        onnx.load(LSTM),
        tmp_path / "m.onnx",
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=64,
    )

    assert (
        rnncli("run", tmp_path / "m.onnx", "--dim", "batch=2,seq=3", "-o", tmp_path / "c").code == 0
    )
    assert (tmp_path / "c" / "weights.bin").is_file()
    assert rnncli("run", tmp_path / "c", "--max-ulp", 0).code == 0


def test_config_on_standard_input(spawned):
    """`-` reads YAML, and errors name <stdin> with line and column."""
    assert spawned("run", "-", stdin=CONFIG).code == 0

    wrong = spawned("run", "-", stdin=CONFIG.replace("input_size", "inptu_size"))
    assert wrong.code == 2
    assert "<stdin>:2:" in wrong.err
    assert "did you mean 'input_size'?" in wrong.err


def test_readings_switch_on_the_command_line(rnncli, config, tmp_path):
    """--reading changes what the reading is about, and nothing else."""
    for choice in ("activations", "gates"):
        rnncli("run", config, "--reading", f"clip-scope={choice}", "-o", tmp_path / f"{choice}.npz")
    rnncli("run", config, "-o", tmp_path / "default.npz")
    activations, gates, default = (
        read_tensors(tmp_path / f"{name}.npz")["Y"] for name in ("activations", "gates", "default")
    )

    assert np.array_equal(activations, default)
    assert not np.array_equal(gates, default)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--reading", "clip-scop=gates"],
            "unknown reading 'clip-scop'; did you mean 'clip-scope'",
        ),
        (["--reading", "clip-scope=all"], "must be activations or gates, got 'all'"),
        (["--reading", "recurrence=literal"], "makes no difference to LSTM-14"),
        (["--reading", "clip-scope"], "expected NAME=VALUE, got 'clip-scope'"),
        (["--backend", "numpi"], "unknown backend 'numpi'; did you mean 'numpy'?"),
        (["--compute", "float16"], "is not one of 'float64', 'native'"),
        (["--shape", "X=1,2"], "--shape is for models"),
        (["--dim", "T=2"], "--dim is for models"),
        (["--dim", "T"], "expected NAME=SIZE, got 'T'"),
        (["--shape", "X=a"], "expected NAME=5,1,10, got 'X=a'"),
        (["--shape", "X=-1"], "expected NAME=5,1,10, got 'X=-1'"),
        (["--data-set", "0"], "a config has no test data sets"),
        (["-i", "X=nowhere.npy"], "nowhere.npy"),
        (["--inputs", "nowhere.npz"], "nowhere.npz"),
        (["-o", "nowhere/out.npz"], "nowhere"),
        (["--atol", "-1"], "write a number >= 0"),
        (["--seed", "x"], "'x' is not a valid integer"),
        (["--sed", "1"], "No such option '--sed'"),
    ],
)
def test_wrong_requests_are_exit_2(rnncli, config, arguments, sentence):
    """Each says what was wanted and what was given; nothing is ignored."""
    outcome = rnncli("run", config, *arguments)

    assert outcome.code == 2
    assert sentence in outcome.err
    assert "Traceback" not in outcome.err


def test_no_target_is_exit_5(rnncli, tmp_path):
    """An empty run is never a success."""
    (tmp_path / "list").write_text("\n# none\n")

    assert rnncli("run").code == 5
    assert rnncli("run", "--from", tmp_path / "list").code == 5


def test_a_list_may_give_each_model_its_own_inputs(rnncli, tmp_path):
    """One size fits none of the others."""
    shutil.copy(LSTM, tmp_path / "lstm.onnx")
    shutil.copy(DATA / "exports" / "loop_gru_script_ts.onnx", tmp_path / "loop.onnx")
    (tmp_path / "models.yaml").write_text(
        "- {model: lstm.onnx, dim: {batch: 2, seq: 5}, inputs: {lens: [5, 3]}}\n"
        "- {model: loop.onnx, shape: {h: [1, 3, 16]}}\n"
    )
    done = rnncli("run", "--from", tmp_path / "models.yaml")

    assert (done.code, done.err) == (0, "")
    assert [row["shape"] for row in done.rows] == [
        *("[2, 5, 40]", "[2, 2, 20]", "[2, 2, 20]", "[4, 3, 20]")
    ]


def test_a_list_is_a_file_of_text(rnncli, tmp_path):
    """A named pipe would block, a device never end, and Latin-1 is found by its line."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "latin").write_bytes(b"a.onnx\n\xe9.onnx\n")

    assert "pipe: is a named pipe, not a file" in rnncli("run", "--from", tmp_path / "pipe").err
    assert "is a device, not a file" in rnncli("run", "--from", "/dev/zero").err
    outcome = rnncli("run", "--from", tmp_path / "latin")
    assert outcome.code == 2
    assert "latin:2: byte 0xe9 is not UTF-8" in outcome.err


@pytest.mark.parametrize("way", ["--from <(echo small.yaml)", "--from - <<< small.yaml"])
def test_a_list_may_come_through_a_pipe(config, way):
    """What the shell opens is not a file of a stranger's."""
    script = f'exec "$0" -m rnncli run {way}'
    done = subprocess.run(
        ["bash", "-c", script, sys.executable],
        cwd=config.parent,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "small.yaml" in done.stdout


def test_unsupported_operator_is_exit_3(rnncli, tmp_path):
    """One line names node and operator."""
    node = helper.make_node("Attention", ["x"], ["y"], name="att", domain="com.microsoft")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(
        helper.make_graph([node], "g", values[:1], values[1:]), opset_imports=opsets, ir_version=8
    )
    onnx.save(model, tmp_path / "m.onnx")

    outcome = rnncli("run", tmp_path / "m.onnx")

    assert outcome.code == 3
    assert outcome.err.count("\n") == 1
    assert "'att'" in outcome.err
    assert "com.microsoft" in outcome.err


def test_batch_goes_on_after_a_failure(rnncli, config, tmp_path):
    """Every target is run; the exit code is the worst one's; outputs are told apart by name."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "small.yaml").write_text(CONFIG)
    (tmp_path / "list").write_text(f"{other / 'small.yaml'}\n")

    outcome = rnncli(
        *("run", config, tmp_path / "missing.onnx", "--from", tmp_path / "list"),
        *("-o", tmp_path / "results", "--format", "npz"),
    )

    assert outcome.code == 2
    assert f"{tmp_path / 'missing.onnx'}: no such file" in outcome.err
    assert len(outcome.rows) == 6
    assert {path.name for path in (tmp_path / "results").iterdir()} == {
        f"{tmp_path.name}_small.npz",
        "other_small.npz",
    }


def test_nothing_is_printed_of_targets_that_all_fail(rnncli, tmp_path):
    """No heading of an empty table; what failed stands on standard error."""
    outcome = rnncli("run", tmp_path / "a.onnx", tmp_path / "README.md")

    assert (outcome.code, outcome.out) == (2, "")
    assert "no such file" in outcome.err
    assert "did you mean" not in outcome.err


def test_several_targets_need_a_folder(rnncli, config, tmp_path):
    """One file cannot hold the outputs of two targets."""
    outcome = rnncli("run", config, config, "-o", tmp_path / "out.npz")

    assert outcome.code == 2
    assert "several targets need a folder" in outcome.err


def test_json_lines_in_input_order_whatever_j(spawned, config, tmp_path):
    """Two processes print the same objects in the same order as one, times aside."""
    targets = ["lstm_14", tmp_path / "missing.onnx", config, "gru_7", "rnn_1"]

    def lines(jobs):
        records = map(json.loads, spawned("run", *targets, "--json", "-j", jobs).out.splitlines())
        return [
            {**record, "runs": [{**run, "seconds": 0} for run in record["runs"]]}
            for record in records
        ]

    single, double = lines(1), lines(2)
    assert [record["target"] for record in single] == list(map(str, targets))
    assert [record["exit_code"] for record in single] == [0, 2, 0, 0, 0]
    assert single == double


def test_killed_worker_is_explained(spawned, config, monkeypatch, tmp_path):
    """A process killed from outside, as for memory, ends the run with a sentence."""
    (tmp_path / "killer.py").write_text(
        "import os\n"
        "class Killer:\n"
        "    def supports(self, recurrence, compute): os.kill(os.getpid(), 9)\n"
    )
    (tmp_path / "killer-1.dist-info").mkdir()
    (tmp_path / "killer-1.dist-info" / "METADATA").write_text("Name: killer\nVersion: 1\n")
    (tmp_path / "killer-1.dist-info" / "entry_points.txt").write_text(
        "[rnncli.backends]\nkiller = killer:Killer\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)

    outcome = spawned("run", config, config, "-j", 2, "--backend", "killer")

    assert outcome.code == 2
    assert "a worker process was killed" in outcome.err


@pytest.mark.parametrize("jobs", [1, 2])
def test_interrupted_batch_leaves_no_temporary_files(jobs, tmp_path):
    """Ctrl-C in the middle: whole entries or none, and nothing else in the folder."""
    for k in range(8):  # so that some are left when the first is reported
        config = CONFIG.replace("seq_length: 4", "seq_length: 30000").replace(
            "[4, 2]", "[30000, 2]"
        )
        (tmp_path / f"long_{k}.yaml").write_text(config)
    results = tmp_path / "results"
    command = [sys.executable, "-m", "rnncli", "run", *map(str, sorted(tmp_path.glob("*.yaml")))]
    process = subprocess.Popen(
        [*command, "lstm_14", "-j", str(jobs), "-o", str(results)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate()

    assert (process.returncode, err) == (130, "interrupted\n")
    left = list(results.iterdir()) if results.exists() else []
    assert all((entry / "test_data_set_0" / "output_2.pb").exists() for entry in left)


def test_output_survives_a_failed_run(rnncli, config, tmp_path):
    """A run that fails leaves the file of the last good one."""
    out = tmp_path / "out.npz"
    rnncli("run", config, "-o", out)
    before = out.read_bytes()
    config.write_text(CONFIG.replace("0.1", "-0.1"))

    assert rnncli("run", config, "-o", out).code == 2
    assert out.read_bytes() == before


def test_foreign_folder_is_not_overwritten(rnncli, config, tmp_path):
    """A folder with something else in it is the user's."""
    foreign = tmp_path / "mine"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("42")

    outcome = rnncli("run", config, "-o", foreign)

    assert outcome.code == 2
    assert [path.name for path in foreign.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    ("given", "variable", "wanted"), [([], "", 1), (["--threads", "3"], "", 3), ([], "2", 2)]
)
def test_backends_are_told_how_many_threads_to_use(
    rnncli, config, monkeypatch, *, given, variable, wanted
):
    """By the option, or by the environment, which stays as it is."""
    monkeypatch.setattr("rnncli.backends.threads.available", lambda: 8)
    monkeypatch.setenv("RNNCLI_THREADS", variable)
    seen, run = [], NumPyBackend.run
    monkeypatch.setattr(
        NumPyBackend, "run", lambda *given: (seen.append(threads()), run(*given))[1]
    )

    assert rnncli("run", config, *given).code == 0
    assert set(seen) == {wanted}
    assert os.environ["RNNCLI_THREADS"] == variable


def test_an_output_that_is_no_tensor_is_exit_3(rnncli, tmp_path):
    """An optional without a value can be computed, and no file holds it."""
    text = """<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (optional(float[2]) y)
    { y = Optional <type = optional(float[2])> () }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "absent.onnx")
    done = rnncli("run", tmp_path / "absent.onnx")

    assert (done.code, "the output 'y' has no value; only tensors are written" in done.err) == (
        3,
        True,
    )


@pytest.mark.parametrize("place", ["option", "environment"])
def test_a_host_evaluates_what_is_not_recurrent(rnncli, monkeypatch, tmp_path, place):
    """The outputs are those of ONNX Runtime; sizes are found as without it."""
    model = DATA / "silero-vad" / "silero_vad_16k_op15.onnx"
    if place == "environment":
        monkeypatch.setenv("RNNCLI_RUN_HOST", "onnxruntime")
    options = ["--host", "onnxruntime"] if place == "option" else []
    outcome = rnncli(
        "run", model, *options, "-o", tmp_path / "out.npz", "--save-inputs", tmp_path / "in.npz"
    )
    wanted = onnxruntime.InferenceSession(model).run(None, read_tensors(tmp_path / "in.npz"))

    assert outcome.code == 0
    assert "assumed to be 192: sequence" in outcome.err
    found = read_tensors(tmp_path / "out.npz")
    for values, other in zip(found.values(), wanted, strict=True):
        np.testing.assert_allclose(values, other, rtol=1e-4, atol=2.5e-5)


def test_a_config_has_nothing_for_a_host(rnncli, config):
    """Its one node is recurrent; another host's name is an error of the command line."""
    assert rnncli("run", config, "--host", "onnxruntime").code == 0
    assert rnncli("run", config, "--host", "nobody").code == 2
