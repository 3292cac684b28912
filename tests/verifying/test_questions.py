"""Claims about questions to implementations: a pretended device is found again by its refusals."""

import os

import pytest
from support.tables import every

import rnncli
from rnncli.errors import InvalidRequest, NothingSelected
from rnncli.judging.comparing.requirements import Requirements
from rnncli.judging.device import admitted_sizes, parse_device
from rnncli.verifying import questions

NPU = """
version=14, weights=initializers, hidden_size%16=0, hidden_size<=256, seq_length<=8, batch_size=1|4,
dtype=float16, direction=forward|bidirectional, clip=never, inputs!=sequence_lens|P,
outputs==Y|Y+Y_h
"""
FOUND = """
version=14 dtype=float16 weights=initializers clip=never direction!=reverse inputs!=sequence_lens|P
outputs!=Y_c,outputs>=Y seq_length<=8 batch_size=1|4 hidden_size%16=0,hidden_size<=256
"""
CHUNKED = "dtype=float16 update_rule=gated_delta inputs!=past_state seq_length%16=0 key_size=64"
MIXED = "dtype!=float32 inputs>=past_state mixed_dtypes=1 states_dtype=float32"
DEVICES = [
    # What a device takes, the operators that are asked, and the requirements that are found
    ("", "GRU", ""),
    ("op=LSTM|GRU", "LSTM RNN", ""),
    (NPU, "LSTM", FOUND),
    (
        "input_size+hidden_size<=500, hidden_size%4=0, inputs>=B, calls=1",
        "GRU",
        "inputs>=B calls=1 hidden_size%4=0 input_size+hidden_size<=500",
    ),
    (
        "hidden_size%2=1, batch_size<=3, open_sizes=0, layout=0, activations=Tanh|Relu",
        "RNN",
        "activations=Relu|Tanh layout=0 open_sizes=0 batch_size<=3 hidden_size%2=1",
    ),
    (
        "hidden_size[LSTM]<=100, linear_before_reset=1, version<=7",
        "GRU LSTM",
        "version<=7 linear_before_reset=1 hidden_size[LSTM]<=100",
    ),
    (
        "linear_before_reset=0, gate_order=zrn, inputs!=recurrentBias, input_size>=20",
        "webnn.gru",
        "linear_before_reset=0 gate_order=zrn inputs!=recurrentBias input_size>=20",
    ),
    (
        "inputs==none|initial_h+initial_c",
        "LSTM",
        "inputs==none|initial_h+initial_c",
    ),
    ("direction=forward, clip=never", "LSTMSequence", "direction=forward clip=never"),
    ("", "LinearAttention com.microsoft.CausalConvWithState", ""),
    (CHUNKED, "LinearAttention", f"{CHUNKED} mixed_dtypes=0 states_dtype=float16"),
    (
        "seq_length=1 inputs>=past_state mixed_dtypes=0 group_size=1",
        "LinearAttention",
        "seq_length=1 inputs>=past_state mixed_dtypes=0 group_size=1",
    ),
    (
        "dtype!=float32 states_dtype=float32 key_size=64 group_size=1|2|4 kv_num_heads<=32",
        "LinearAttention",
        f"{MIXED} key_size=64 group_size=1|2|4 kv_num_heads<=32",
    ),
    (
        "share_size<=2 kv_num_heads%2=0",
        "com.microsoft.LinearAttention",
        "share_size<=2 kv_num_heads%2=0",
    ),
    (
        "update_rule!=linear|delta decay_form=per_head beta_form=per_head seq_length>=1",
        "LinearAttention",
        "update_rule=gated_delta|gated decay_form=per_head beta_form=per_head seq_length>=1",
    ),
    (
        "activation=silu kernel_size<=4 channels%8=0 inputs>=bias dtype=float16",
        "CausalConvWithState",
        "activation=silu kernel_size<=4 channels%8=0 inputs>=bias dtype=float16",
    ),
    (
        "dtype=int8 cell_state_scale=6.103515625e-05|0.000244140625 input_zero_point=0",
        "tflite.UNIDIRECTIONAL_SEQUENCE_LSTM",
        "dtype=int8 cell_state_scale=6.103515625e-05|0.000244140625 input_zero_point=0",
    ),
]


def of_device(requirement):
    """The terms of a device, joined by commas or blanks."""
    return requirement.replace(",", " ").split()


def pretending(requirement):
    """A function that refuses what a device does not take."""
    needs = Requirements.parse(of_device(requirement))

    def function(vector):
        if reason := needs.reason(vector.record):
            raise ValueError(reason)
        return dict(vector.answers.outputs)

    return function


@every("requirement, operators, found", DEVICES)
def test_a_pretended_device_is_found_again(requirement, operators, found, monkeypatch):
    """The same sizes and features; what it takes of several settings is taken as well."""
    monkeypatch.setattr(questions, "COMBINATIONS", 8)
    probed = rnncli.probe(operators.split(), pretending(requirement))

    first, *others = probed.device.require
    needs = Requirements.parse(others)
    wanted = Requirements.parse(of_device(requirement))
    assert sorted(others) == sorted(found.split())
    assert first == f"op={'|'.join(each.operator for each in probed.answers if each.base)}"
    for name in ("hidden_size", "input_size", "seq_length", "batch_size"):
        assert admitted_sizes(needs, name, "LSTM") == admitted_sizes(wanted, name, "LSTM")
    assert not [each.together for each in probed.answers if each.together]
    assert parse_device(probed.text, "device.yaml") == probed.device


def test_what_is_refused_only_together_is_told():
    """No requirement says it, so it is beside the device."""

    def function(vector):
        if vector.record.requirements.direction == "reverse" and "B" in vector.inputs:
            raise NotImplementedError("no bias backwards")
        return dict(vector.answers.outputs)

    probed = rnncli.probe("GRU", function)
    (answers,) = probed.answers
    ((settings, message),) = answers.together
    assert probed.device.require == ["op=GRU"]
    assert settings.startswith("direction=reverse, inputs==B")
    assert message == "no bias backwards"
    assert f"refused together: {settings}: no bias backwards" in probed.text
    assert any("taken alone, refused together" in line for line in probed.sentences)


def test_a_crash_limits_nothing_and_is_told():
    """Nor does a wrong output, of which nothing is told."""

    def function(vector):
        if vector.record.dtype == "float64":
            os._exit(3)
        if vector.record.sizes["hidden_size"] > 100:
            raise RuntimeError("segment")
        return {name: values + 1 for name, values in vector.answers.outputs.items()}

    probed = rnncli.probe("RNN", function)
    assert probed.device.require == ["op=RNN"]
    assert probed.refusals == 0
    told = [line for line in probed.sentences if "limits nothing here" in line]
    assert [line.partition(": crashed")[0] for line in told] == [
        "RNN: dtype=float64",
        "RNN: hidden_size=1024",
    ]
    assert "#   dtype=float64: crashed" in probed.text


def test_what_is_known_is_not_asked_and_part_of_the_device():
    """It is where a case is found that is taken."""
    function = pretending("hidden_size=100, batch_size=7, seq_length<=5")

    with pytest.raises(NothingSelected, match="GRU: requires hidden_size 100, has 16"):
        rnncli.probe("GRU", function)
    probed = rnncli.probe("GRU", function, require="hidden_size=100,batch_size=7")
    known, found = "hidden_size=100,batch_size=7", "seq_length<=5"
    assert probed.device.require == ["op=GRU", known, found]


def test_units_are_asked_if_a_term_is_about_their_tensors(monkeypatch):
    """Types, zero points and features of quantised units."""
    monkeypatch.setattr(questions, "COMBINATIONS", 4)
    known = "X.type=uint8|int8|uint16"
    wanted = "X.type=uint8, W.type=int8|uint8, Y.zero_point=0, outputs==Y+Y_h, hidden_size<=64"

    probed = rnncli.probe("LSTM", pretending(wanted), require=known)
    first, told, *others = probed.device.require
    assert (first, told) == ("op=LSTM", known)
    assert sorted(others) == sorted(wanted.split(", "))


def test_only_what_can_be_asked_is_asked(tmp_path):
    """Operators by their names without versions, and nobody who is not there."""
    with pytest.raises(InvalidRequest, match="--operator LSTM-14: expected one of RNN, GRU"):
        rnncli.probe("LSTM-14", pretending(""))
    with pytest.raises(InvalidRequest, match="--results are recorded"):
        rnncli.probe("LSTM", rnncli.Implementation(results=str(tmp_path)))


def probed_until(last):
    """What a probe of two operators finds that is interrupted at a question."""
    asked = []

    def kernel(vector):
        asked.append(vector)
        if len(asked) == last:
            raise KeyboardInterrupt
        if vector.record.dtype != "float32":
            raise NotImplementedError("float32 alone")
        return vector.answers.outputs

    with pytest.raises(KeyboardInterrupt) as caught:
        rnncli.probe(["RNN", "GRU"], kernel)
    return caught.value


def test_an_interrupted_probe_keeps_what_was_answered():
    """And says what was not asked, in the device and by itself."""
    stopped = probed_until(30)
    device = parse_device(stopped.found.text, "device")

    assert device.require == ["op=RNN", "dtype=float32"]
    assert str(stopped).startswith("not asked: ")
    assert str(stopped).endswith("hidden_size of RNN; GRU")
    assert "It was interrupted and did not" in stopped.found.text
    assert stopped.found.questions == 28


def test_a_probe_that_is_interrupted_before_any_answer_has_none():
    """It is an interrupt like any other."""
    assert not hasattr(probed_until(1), "found")
