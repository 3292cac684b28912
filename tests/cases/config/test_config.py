"""Claims about configs: what they mean, and that every mistake is found and placed."""

import subprocess
import sys

import numpy as np
import pytest
import yaml
from support.tables import every

from rnncli.cases.case import least_size, size_names
from rnncli.cases.config import config
from rnncli.cases.config.config import describe, findings, load_config, parse_config
from rnncli.cases.config.keys import KEYS
from rnncli.errors import ConfigError, UnreadableFile
from rnncli.numerics import INTEGERS
from rnncli.operators import OPERATORS, evaluate
from rnncli.operators.attributes import complete

SIZES = "sizes: {seq_length: 4, batch_size: 2, input_size: 3, hidden_size: 5}\n"


LENGTHS = "\nlengths_dtype: {}"


def parse(text, op="LSTM-14", **more):
    """Read a config of the usual sizes."""
    sizes = SIZES
    if row := OPERATORS.get(str(op)):
        usual = {"seq_length": 4, "input_size": 3, "hidden_size": 5}
        own = [f"{name}: {usual.get(name, 2)}" for name in size_names(row)]
        sizes = f"sizes: {{{', '.join(own)}}}\n"
    return parse_config(f"op: {op}\n{sizes}{text}", "x.yaml", **more)


def complaints(text, op="LSTM-14"):
    """What is wrong with it, without the file's name."""
    with pytest.raises(ConfigError) as caught:
        parse(text, op)
    return [line.removeprefix("x.yaml:") for line in str(caught.value).splitlines()]


def least(row):
    """The attributes an operator requires."""
    values = {"string": "forward", "float": "0.01", "floats": "[0.01, 0.02, 0.03, 0.04]"}
    required = {
        each.name: values[each.type]
        for each in row.attributes.values()
        if each.required and each.type in values
    }
    written = ", ".join(f"{name}: {value}" for name, value in required.items())
    ends = [tensor.name for tensor in row.inputs if tensor.role == "offsets" and tensor.optional]
    given = "".join(f"inputs: {{{name}: packed}}\n" for name in ends)  # or the state has the batch
    return given + (f"attributes: {{{written}}}\n" if required else "")


@every("row", OPERATORS.values(), ids=str)
@every("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "int16"])
def test_the_least_config_of_every_operator_runs(row, dtype):
    """Sizes are enough; every required input has a default fill."""
    if dtype not in row.dtypes:
        found = "\n".join(complaints(f"dtype: {dtype}", row))
        assert f"3:8: dtype of {row.name} must be one of" in found
        return
    case = parse(least(row) + f"dtype: {dtype}", row)

    found = evaluate(case.operator, case.inputs, attributes=case.attributes, outputs=case.outputs)

    needed = row.demands(complete(row, case.attributes))
    needed |= {tensor.name: True for tensor in row.inputs if tensor.role == "offsets"}
    assert list(case.inputs) == [r.name for r in row.inputs if not r.optional or needed.get(r.name)]
    assert list(found) == [tensor.name for tensor in row.outputs if not tensor.condition]
    own = {r.dtypes[0] if len(r.dtypes) == 1 else r.types.get(dtype, dtype) for r in row.outputs}
    assert {values.dtype.name for values in found.values()} == own
    assert all(np.any(values != 0) for values in found.values())


def test_defaults():
    """What is not written."""
    case = parse("", "LSTM-14")

    assert (case.name, case.summary, case.dtype.name, case.seed) == ("x", "", "float32", 0)
    assert case.attributes == {"hidden_size": 5}
    assert case.outputs == ("Y", "Y_h", "Y_c")
    assert case.readings == dict(OPERATORS["LSTM-14"].readings)


SEQUENCES = [row for row in OPERATORS.values() if len(row.lengths_dtypes) > 1]


@every("row", SEQUENCES, ids=str)
@every("dtype", INTEGERS)
@every("text", ["", "inputs: {sequence_lengths: [4, 1]}"])
def test_lengths_of_every_integer_type_give_the_same_outputs(row, dtype, text):
    """Written, filled or of the default fill; what is described is read as the same case."""
    plain, typed = (parse(least(row) + text + more, row) for more in ("", LENGTHS.format(dtype)))
    again = parse_config(yaml.safe_dump(describe(typed)), "x.yaml")

    assert plain.inputs["sequence_lengths"].dtype == np.int32
    assert typed.inputs["sequence_lengths"].dtype.name == dtype
    assert again.inputs["sequence_lengths"].dtype.name == dtype
    found, expected = (
        evaluate(each.operator, each.inputs, attributes=each.attributes, outputs=each.outputs)
        for each in (typed, plain)
    )
    assert {name: values.tobytes() for name, values in found.items()} == {
        name: values.tobytes() for name, values in expected.items()
    }


@pytest.mark.parametrize(
    ("text", "op", "start"),
    [
        ("", "LSTM-14", "3:16: lengths_dtype of LSTM-14 must be one of int32, got 'int8'"),
        ("", "RNNCell-3", "3:16: RNNCell-3 has no sequence lengths, and so no lengths_dtype"),
        ("inputs: {sequence_lengths: [4, 128]}", "", "5:32: sequence_lengths wants an integer of"),
        ("inputs: {sequence_lengths: {constant: -129}}", "", "5:28: sequence_lengths: -129 is not"),
        ("inputs: {sequence_lengths: {file: a.npy}}", "", "5:28: sequence_lengths must be int8 by"),
    ],
)
def test_lengths_of_a_wrong_type_are_refused(text, op, start, tmp_path, monkeypatch):
    """Of the operator, of a number, of a file; said at its place."""
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.array([4, 1], np.int64))
    op = op or "GRUSequence-5"

    complaint = complaints(LENGTHS.format("int8").lstrip() + "\n" + least(OPERATORS[op]) + text, op)

    assert complaint[0].startswith(start), complaint


@pytest.mark.parametrize("text", ["", "inputs: {sequence_lengths: rising}\n"])
def test_lengths_that_do_not_fit_their_type_are_refused(text):
    """300 steps are more than an int8 counts, whether the fill is named or the default."""
    sizes = "sizes: {seq_length: 300, batch_size: 2, input_size: 3, hidden_size: 5}\n"
    config = f"op: RNNSequence-5\n{sizes}attributes: {{direction: forward}}\nlengths_dtype: int8\n"

    with pytest.raises(ConfigError, match="300 is not an integer that int8 can hold"):
        parse_config(config + text, "x.yaml")


def test_a_file_decides_the_type_of_lengths_if_no_key_does(tmp_path, monkeypatch):
    """And the case's description says which it is."""
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.array([4, 1], np.int64))
    text = "attributes: {direction: forward}\ninputs: {sequence_lengths: {file: a.npy}}"

    assert describe(parse(text, "RNNSequence-5"))["lengths_dtype"] == "int64"


def test_hidden_size_follows_from_sizes():
    """RNNSequence-5 requires the attribute; the config need not repeat it, but may."""
    for text in ("{direction: forward}", "{direction: forward, hidden_size: 5}"):
        case = parse(f"attributes: {text}", "RNNSequence-5")
        assert case.attributes == {"direction": "forward", "hidden_size": 5}


def test_null_is_not_given():
    """A key with nothing under it, an attribute or an optional input that is null."""
    case = parse("attributes: {clip: null}\ninputs: {B: null, P: ~}\nreadings:\noutputs:\nseed:\n")

    assert case.attributes == {"hidden_size": 5}
    assert list(case.inputs) == ["X", "W", "R"]
    assert len(case.outputs) == 3


def test_seed_can_be_replaced():
    """The command line's goes before the file's, and other seeds give other inputs."""
    assert parse("seed: 3").seed == 3
    assert parse("seed: 3", seed=4).seed == 4
    assert not np.array_equal(parse("seed: 3").inputs["X"], parse("seed: 4").inputs["X"])


def test_inputs_depend_on_the_contents_alone():
    """Two files of the same text have the same inputs, and so has the text on standard input."""
    text = f"op: GRU-14\n{SIZES}seed: 7\n"
    a, b, piped = (parse_config(text, name) for name in ("a.yaml", "b.yaml", "<stdin>"))

    assert (a.name, b.name, piped.name) == ("a", "b", "stdin")
    assert np.array_equal(a.inputs["W"], b.inputs["W"])
    assert np.array_equal(a.inputs["W"], piped.inputs["W"])


def test_naming_an_optional_input_changes_no_other():
    """Each input has bits of its own."""
    assert np.array_equal(parse("").inputs["X"], parse("inputs: {B: uniform}").inputs["X"])


def test_inputs_are_made_when_asked_for(monkeypatch):
    """Loading a config fills nothing; asking twice fills once."""
    made = []
    monkeypatch.setattr("rnncli.cases.case.fill", lambda *a: made.append(a) or np.zeros(1))

    case = parse("")
    assert made == []
    assert case.inputs is case.inputs
    assert len(made) == 3


WRONG = {
    "hiden: 1": "3:1: unknown key 'hiden' (there are op, summary, sizes",
    "atributes: {}": "3:1: unknown key 'atributes'; did you mean 'attributes'?",
    "direction: reverse": "3:1: unknown key 'direction'; write attributes: {direction: ...}",
    "summary: 3": "3:10: 'summary' must be text, got 3",
    "seed: -1": "3:7: 'seed' must be an integer, 0 to",
    "seed: 1.0": "3:7: 'seed' must be an integer, 0 to 9223372036854775807, got 1.0",
    "seed: 99999999999999999999": "3:7: 'seed' must be an integer",
    "dtype: bfloat16": "3:8: dtype of LSTM-14 must be one of float16, float32, float64, got"
    " 'bfloat16' (it exists from LSTM-22 on)",
    "dtype: flaot32": "3:8: dtype of LSTM-14 must be one of float16, float32, float64, got"
    " 'flaot32'; did you mean 'float32'?",
    "dtype: [float32]": "3:8: dtype of LSTM-14 must be one of",
    "attributes: [1]": "3:13: 'attributes' must be a mapping, NAME: VALUE, got a list of 1",
    "inputs: X": "3:9: 'inputs' must be a mapping, NAME: VALUE, got 'X'",
    "readings: no": "3:11: 'readings' must be a mapping, NAME: VALUE, got 'no'",
    "attributes: {clipp: 1}": "3:14: LSTM-14 has no attribute 'clipp'; did you mean 'clip'?",
    "attributes: {clip: 0}": "3:20: attribute 'clip' must be greater than 0, got 0",
    "attributes: {clip: .nan}": "3:20: attribute 'clip' must be greater than 0",
    "attributes: {clip: big}": "3:20: attribute 'clip' must be a number, got 'big'",
    "attributes: {clip: true}": "3:20: attribute 'clip' must be a number, got True",
    "attributes: {clip: {a: 1}}": "3:20: attribute 'clip' must be a number",
    "attributes: {layout: 2}": "3:22: attribute 'layout' must be one of 0, 1, got 2",
    "attributes: {layout: 1.0}": "3:22: attribute 'layout' must be an integer, got 1.0",
    "attributes: {direction: sideways}": "3:25: attribute 'direction' must be one of forward,",
    "attributes: {activations: [Tanh, Tanh]}": "3:27: activations must name 3 functions",
    "attributes: {activations: [Tanh, Tanh, Tahn]}": "3:27: unknown activation 'Tahn'",
    "attributes: {activation_alpha: [a]}": "3:32: attribute 'activation_alpha' must be a list of",
    "attributes: {output_sequence: 1}": "3:14: LSTM-14 has no attribute 'output_sequence'",
    "attributes: {hidden_size: 6}": "3:27: attribute 'hidden_size' is 6, but sizes say 5",
    "attributes: {hidden_size: five}": "3:27: attribute 'hidden_size' must be an integer",
    f"attributes: {{clip: {'9' * 399}}}": "3:20: 99999",
    f"attributes: {{activation_alpha: [1, {'9' * 399}]}}": "3:36: 99999",
    "inputs: {Q: zeros}": "3:10: LSTM-14 has no input 'Q' (its inputs are X, W, R",
    "inputs: {X: ~}": "3:13: LSTM-14 requires 'X'; leave it out for its default fill",
    "inputs: {sequence_lens: [4, 5]}": "3:25: sequence_lens[1] must be between 0 and seq_length"
    " = 4, got 5",
    "inputs: {sequence_lens: {constant: -1}}": "3:25: sequence_lens[0] must be between 0",
    "outputs: Y": "3:10: 'outputs' must be a list of names, got 'Y'",
    "outputs: [3]": "3:11: an output is a name, got 3",
    "outputs: [Y, Z]": "3:14: LSTM-14 has no output 'Z'",
    "outputs: [Y, Y]": "3:14: output 'Y' is named twice",
    "readings: {clip-scop: gates}": "3:12: unknown reading 'clip-scop'; did you mean 'clip-scope'?",
    "readings: {clip-scope: gate}": "3:24: reading 'clip-scope' must be activations or gates",
    "readings: {clip-scope: [gates]}": "3:24: reading 'clip-scope' must be",
    "readings: {clip-scope: }": "3:23: reading 'clip-scope' must be",
    "readings: {recurrence: literal}": "3:12: reading 'recurrence' makes no difference to LSTM-14",
}


@every(("text", "start"), WRONG.items(), ids=range(len(WRONG)))
def test_every_mistake_is_one_finding_at_its_place(text, start):
    """At the value that is wrong, or the key that does not exist."""
    (found,) = complaints(text)

    assert found.startswith(start)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("", "1:1: a config must be a mapping, NAME: VALUE, got null"),
        ("- a", "1:1: a config must be a mapping, NAME: VALUE, got a list of 1"),
        ("a: 1", "1:1: 'op' must name an operator, such as LSTM-14"),
        ("op: ~", "1:5: 'op' must name an operator, such as LSTM-14, got null"),
        ("op: LSTM", "1:5: unknown operator 'LSTM'"),
        ("op: LSTM14", "1:5: unknown operator 'LSTM14'; did you mean 'LSTM-14'?"),
        ("op: LSTM-17", "1:5: unknown operator 'LSTM-17': there are LSTM-1, LSTM-7"),
        ("op: GRU-7", "1:1: 'sizes' must give seq_length, batch_size, input_size, hidden_size"),
        ("op: GRU-7\nsizes: 3", "2:8: 'sizes' must be a mapping"),
        (
            "op: GRU-7\nsizes: {seq_length: 4, batch_size: 2, input_size: 3, hiden_size: 5}",
            "2:8: 'sizes' must give hidden_size",
        ),
    ],
)
def test_the_frame_of_a_config_is_checked(text, start):
    """Operator and sizes come first."""
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "<stdin>")

    assert f"<stdin>:{start}" in str(caught.value)


@pytest.mark.parametrize(
    ("size", "value", "sentence"),
    [
        ("hidden_size", "0", "'hidden_size' must be 1 to 2147483647, got 0"),
        ("seq_length", "-1", "'seq_length' must be 0 to 2147483647, got -1"),
        ("batch_size", "2.0", "'batch_size' must be an integer, got 2.0"),
        ("input_size", "true", "'input_size' must be an integer, got true"),
        ("input_size", "9" * 300, "'input_size' must be 0 to 2147483647, got 999"),
    ],
)
def test_sizes_are_small_integers(size, value, sentence):
    """Zero steps, sequences and inputs are fine; zero units are not."""
    others = dict.fromkeys(("seq_length", "batch_size", "input_size", "hidden_size"), 2)
    sizes = ", ".join(f"{name}: {value if name == size else n}" for name, n in others.items())

    with pytest.raises(ConfigError) as caught:
        parse_config(f"op: RNN-7\nsizes: {{{sizes}}}", "x")

    assert sentence in str(caught.value)


@every(
    ("row", "empty"),
    [
        (row, name)
        for row in OPERATORS.values()
        for name in size_names(row)
        if row.empty_sizes and not least_size(row, name)
    ],
    ids=str,
)
def test_empty_sizes_are_fine(row, empty):
    """The specification's shapes hold for 0 as well; not WebNN's."""
    others = dict.fromkeys(size_names(row), 2) | {empty: 0}
    case = parse_config(f"op: {row}\nsizes: {others}\n{least(row)}", "x")
    first = evaluate(row, case.inputs, attributes=case.attributes)[row.outputs[0].name]

    assert first.size in (0, 8 if "seq_length" in others and row.cell.projects else 4)


@pytest.mark.parametrize("empty", ["seq_length", "batch_size", "input_size"])
def test_webnn_has_no_empty_sizes(empty):
    """The finding is at the size, and names the least one."""
    sizes = {"seq_length": 2, "batch_size": 2, "input_size": 3, "hidden_size": 5, empty: 0}

    with pytest.raises(ConfigError, match=f"'{empty}' must be 1 to 2147483647, got 0"):
        parse_config(f"op: webnn.gru\nsizes: {sizes}\n", "x")


@pytest.mark.parametrize("operator", ["webnn.gru", "webnn.lstm"])
def test_sizes_give_the_attributes_that_state_them(operator):
    """WebNN's steps and hiddenSize, which another value contradicts; outputs follow attributes."""
    case = parse("attributes: {returnSequence: true}", operator)
    sizes = case.sizes

    assert case.attributes["steps"] == sizes["seq_length"]
    assert case.attributes["hiddenSize"] == sizes["hidden_size"]
    assert case.outputs[-1] == "outputSequence"
    assert "outputSequence" not in parse("attributes: {returnSequence: false}", operator).outputs
    with pytest.raises(ConfigError, match="attribute 'steps' is 99, but sizes say"):
        parse("attributes: {steps: 99}", operator)


def test_a_cell_is_a_step_of_no_length():
    """Its sizes have no seq_length; its case does, as of one step."""
    case = parse("", "GRUCell-3")

    assert case.sizes == {"seq_length": 1, "batch_size": 2, "input_size": 3, "hidden_size": 5}
    assert list(describe(case)["sizes"]) == ["batch_size", "input_size", "hidden_size"]
    with pytest.raises(ConfigError, match="unknown size 'seq_length'"):
        parse_config(f"op: GRUCell-3\n{SIZES}", "x")


def test_a_null_takes_away_what_the_operator_lacks():
    """A suite's defaults may give more than one of its cases has."""
    sizes = SIZES.replace("seq_length: 4", "seq_length: null")
    text = f"op: RNNCell-3\n{sizes}attributes: {{direction: null}}\ninputs: {{sequence_lens: null}}"

    assert parse_config(text, "x").sizes["seq_length"] == 1
    with pytest.raises(ConfigError, match="unknown size 'length'"):
        parse_config(text.replace("seq_length:", "length:"), "x")


@pytest.mark.parametrize("size", [10**9, 2**31 - 1])
def test_giant_sizes_allocate_nothing(size):
    """They are refused with what they need, in a process of 1 GiB."""
    text = f"op: GRU-14\\nsizes: {{seq_length: {size}, batch_size: {size}, input_size: {size}"
    program = (
        "import resource\n"
        "from rnncli.cases.config.config import parse_config\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))\n"
        f"parse_config('{text}, hidden_size: {size}}}\\ninputs: {{sequence_lens: lengths}}', 'x')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert "x:2:8: these sizes are too large: what they make takes" in done.stderr


def test_all_findings_of_a_file_come_at_once(tmp_path):
    """One of each section, in the order of the file."""
    text = (
        "op: LSTM-14\n"
        "sizes: {seq_length: 4, batch_size: 2, input_size: 3, hiden_size: 5}\n"
        "dtype: float\n"
        "attributes: {clip: -1}\n"
        "inputs: {B: unifrom, sequence_lens: [1, 2]}\n"
        "outputs: [Z]\n"
        "readings: {clip-scope: x}\n"
        "seed: x\n"
        "sumary: x\n"
    )
    path = tmp_path / "bad.yaml"
    path.write_text(text)

    found = findings(path)

    assert [place.line for place, _ in found] == [2, 2, 3, 4, 5, 6, 7, 8, 9]
    assert {place.file for place, _ in found} == {str(path)}


def test_an_input_that_is_wrong_hides_nothing_else():
    """X is not understood; lengths are checked against seq_length all the same."""
    assert len(complaints("inputs: {X: what, sequence_lens: [9, 9]}")) == 2


def test_a_good_file_has_no_findings(tmp_path):
    """And a missing one is not a finding but an error."""
    path = tmp_path / "good.yaml"
    path.write_text(f"op: GRU-7\n{SIZES}")

    assert findings(path) == []
    assert load_config(path).name == "good"
    with pytest.raises(UnreadableFile, match=r"missing\.yaml: no such file"):
        findings(tmp_path / "missing.yaml")


def test_names_of_any_length_make_short_messages():
    """One clear line."""
    (found,) = complaints(f"{'x' * 100_000}: 1")

    assert len(found) < 700


def test_public_names_are_documented():
    """Every key says what it means."""
    assert all(KEYS.values())
    assert all(getattr(config, name).__doc__ for name in config.__all__)


UNIT = """quantise:
  X: {type: uint8, scale: 0.03, zero_point: 128}
  W: {type: int8, scale: [0.02, 0.01], axis: 1}
  Y: {type: int16, scale: 0.0001}
"""


def test_a_unit_has_integers_for_inputs():
    """Those of the fills, on levels; a real number is one that its level gives again."""
    unit, plain = parse(UNIT), parse("")

    assert {n: v.dtype.name for n, v in unit.inputs.items()} == {
        "X": "uint8",
        "W": "int8",
        "R": "float32",
    }
    X = (unit.inputs["X"].astype(int) - 128) * 0.03
    np.testing.assert_allclose(X, plain.inputs["X"], atol=0.0151)
    W = unit.inputs["W"] * np.resize([0.02, 0.01], 20)[:, None]
    np.testing.assert_allclose(W, plain.inputs["W"].clip(-2.56, 2.54), atol=0.0101)


def test_a_unit_is_described_as_it_is_read():
    """With zero points, float32 scales and the axis from the end."""
    case = parse(UNIT)
    again = parse_config(yaml.safe_dump(describe(case)), "x.yaml")

    assert describe(case)["quantise"]["W"]["axis"] == -2
    assert again.unit == case.unit
    assert "quantise" not in describe(parse(""))


@every(
    ("text", "sentence"),
    [
        ("quantise: 3", "3:11: 'quantise' must be a mapping"),
        ("quantise: {X: 3}", "3:15: 'X' of 'quantise' must be a mapping"),
        ("quantise: {X: {type: int4, scale: 1}}", "3:22: 'type' must be one of uint8, int8"),
        ("quantise: {X: {type: int8}}", "3:15: 'scale' is missing"),
        ("quantise: {X: {scale: 1}}", "3:15: 'type' must be one of uint8, int8, uint16, int16"),
        ("quantise: {X: {type: int8, scale: -1}}", "3:35: 'scale' must be a positive number"),
        ("quantise: {X: {type: int8, scale: []}}", "3:35: 'scale' must be a positive number"),
        ("quantise: {X: {type: int8, scale: 1, zero: 2}}", "unknown key 'zero'"),
        ("quantise: {X: {type: int8, scale: 1, zero_point: 200}}", "must be -128 to 127"),
        ("quantise: {X: {type: int8, scale: 1, axis: 3}}", "axis of X must be -3 to 2"),
        ("quantise: {X: {type: int8, scale: [1, 2]}}", "and so needs an axis"),
        ("quantise: {Q: {type: int8, scale: 1}}", "has no tensor 'Q'"),
        ("quantise: {B: {type: int8, scale: 1}}", "B is absent, and so cannot be quantised"),
        ("quantise: {Y: {type: int8, scale: 1}}\noutputs: [Y_h]", "Y is not requested"),
        ("quantise: {Y: {type: int32, scale: 1}}", "type of Y must be one of"),
        ("quantise: {X: {type: int8, scale: 1}}\ndtype: float16", "a unit is of float32"),
    ],
)
def test_a_wrong_unit_is_found(text, sentence):
    """At the place of the mistake."""
    assert any(sentence in line for line in complaints(text)), complaints(text)


def test_a_unit_is_of_opset_21():
    """LSTM-7 is older than 16 bits."""
    assert "LSTM-7 is not an operator of opset 21 or 23" in complaints(UNIT, "LSTM-7")[0]
