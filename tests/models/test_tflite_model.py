"""Claims about TFLite's models and their recurrent operators."""

from contextlib import suppress

import pytest
from support import shipped
from support.real_models import DATA

from rnncli.errors import UnreadableFile, Unsupported
from rnncli.models.node_listing import recurrent_nodes

pytest.importorskip("tflite")

from rnncli.models import tflite_model
from rnncli.models.tflite_model import read_tflite
from rnncli.packs import tflite_form

MNIST = DATA / "mnist-lstm/trained_lstm_int8.tflite"
KERAS = DATA / "keras-lstm"
FLOAT = "UNIDIRECTIONAL_SEQUENCE_LSTM_FLOAT"


def written(folder, part="plain_batch_first_fresh", **changes):
    """The path of a case's model, of which some tensors are changed."""
    vector = next(v for v in shipped.vectors("tflite") if v.id.endswith(part))
    kept = tflite_form.tensors_of

    def changed(asked):
        for tensor in kept(asked):
            yield tensor._replace(**changes.get(tensor.name, {}))

    path = folder / tflite_form.MODEL
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tflite_form, "tensors_of", changed)
        path.write_bytes(tflite_form.model_of(vector))
    return path


def reason(path):
    """Why the only recurrent operator of a model is not evaluated."""
    model = read_tflite(path)
    (node,) = model.unevaluated
    with pytest.raises(Unsupported, match="cannot be evaluated here") as error:
        model.single()
    assert node.reason in str(error.value)
    return node.reason


def test_a_published_model_has_its_lstm_with_scales_and_constants():
    """What stands in the file's tensors is what the operator's attributes say."""
    model = read_tflite(MNIST)
    (node,) = recurrent_nodes(model.recurrent)

    assert node.operator.name == "tflite.UNIDIRECTIONAL_SEQUENCE_LSTM"
    assert node.attributes["input_scale"] == pytest.approx(1 / 255)
    assert (node.attributes["input_zero_point"], node.attributes["cell_clip"]) == (-128, 10)
    assert node.attributes["cell_state_scale"] == 2**-12
    assert node.attributes["hidden_scale"] is None
    assert node.inputs["recurrent_to_cell_weights"] == (20, 20)
    assert "output_state" not in node.inputs
    assert len(model.recurrent.proto.graph.initializer) == 12
    assert [value.name for value in model.interface.inputs] == ["serving_default_fixed_input:0"]


def test_lstms_of_keras_are_in_the_file_that_tf_keras_exports():
    """Two layers of trained real numbers, the second behind the first."""
    nodes = [*recurrent_nodes(read_tflite(KERAS / "tf_keras.tflite").recurrent)]

    assert {node.operator.name for node in nodes} == {f"{tflite_model.DOMAIN}.{FLOAT}"}
    assert [node.inputs["recurrent_to_cell_weights"] for node in nodes] == [(12, 12), (9, 9)]


def test_a_loop_is_told_as_what_keras_3_writes():
    """Instead of a file without anything recurrent; with the way that keeps the operator."""
    model = read_tflite(KERAS / "keras3.tflite")

    (node,) = model.unevaluated
    assert (node.operator, node.reason) == (
        "tflite::WHILE",
        "a loop, as Keras 3 writes an LSTM; tf_keras exports it whole",
    )
    assert "WHILE" not in model.others


def test_other_operators_are_named():
    """And how to get at the LSTM."""
    with pytest.raises(Unsupported, match=r"here: RESHAPE, FULLY_CONNECTED, SOFTMAX; `rnncli extr"):
        read_tflite(MNIST).single()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"input_to_input_weights": {"scale": [0.1, 0.2]}},
            "input_to_input_weights has 2 scales; one of all values is evaluated",
        ),
        ({"cell_state": {"zero_point": 3}}, "cell_state has zero point 3, not 0"),
        (
            {"recurrent_to_cell_weights": {"zero_point": -1}},
            "recurrent_to_cell_weights has zero point -1, not 0",
        ),
        ({"forget_gate_bias": {"values": None}}, "forget_gate_bias is not a constant"),
        ({"output": {"scale": 0.5}}, "output and output_state have different scales or zero point"),
        ({"cell_state": {"scale": 0.0}}, "cell_state_scale must be positive and finite, got 0.0"),
        (
            {"cell_state": {"dtype": "int32"}},
            "it has int8 inputs, int8 weights, int32 cell states; evaluated are int8 or int16",
        ),
        (
            {"input": {"dtype": "float32"}},
            "it has float32 inputs, and input_to_input_weights is of int8",
        ),
    ],
)
def test_what_is_not_evaluated_is_told_why(tmp_path, changes, told):
    """Each is a model that an interpreter loads, and that has another meaning or none."""
    assert told in reason(written(tmp_path, **changes))


def test_an_absent_bias_is_told_with_what_it_does(tmp_path, monkeypatch):
    """Each interpreter ends where one of them is absent, and refuses the others."""
    slots = {**tflite_model.SLOTS}
    del slots["cell_gate_bias"]
    monkeypatch.setattr(tflite_form, "SLOTS", slots)

    assert reason(written(tmp_path)) == (
        "no cell_gate_bias, without which neither tflite-micro nor LiteRT loads it"
    )


def test_the_scale_of_the_last_intermediate_is_an_attribute_if_it_differs(tmp_path):
    """LiteRT takes it for the output's."""
    path = written(tmp_path, hidden_intermediate={"scale": 0.5, "zero_point": 2})
    (node,) = recurrent_nodes(read_tflite(path).recurrent)

    assert (node.attributes["hidden_scale"], node.attributes["hidden_zero_point"]) == (0.5, 2)


def test_a_file_that_is_damaged_is_refused(tmp_path):
    """Wherever it is cut or changed, and no exception of the schema's classes gets out."""
    content = written(tmp_path).read_bytes()
    path = tmp_path / "damaged.tflite"
    for place in range(8, len(content), 13):
        for damaged in (
            content[:place],
            content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :],
        ):
            path.write_bytes(damaged)
            with suppress(UnreadableFile):
                assert read_tflite(path).numbers


def test_another_file_of_that_name_is_no_model(tmp_path):
    """Its first bytes say so."""
    path = tmp_path / "x.tflite"
    path.write_bytes(b"PK\x03\x04 and so on")

    with pytest.raises(UnreadableFile, match="not a model of TFLite: bytes 4 to 7 are not TFL3"):
        read_tflite(path)


def test_two_tensors_of_one_name_are_two(tmp_path):
    """A converter names them as it likes."""
    path = written(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"input_to_forget_weights", b"input_to_output_weights"))
    held = {tensor.name for tensor in read_tflite(path).recurrent.proto.graph.initializer}

    assert {"input_to_output_weights:2", "input_to_output_weights:4"} < held


def test_without_its_package_it_says_what_to_install(monkeypatch):
    """The extra `tflite`."""
    monkeypatch.setitem(__import__("sys").modules, "tflite", None)

    with pytest.raises(Unsupported, match=r"package tflite, which is not installed; .*tflite"):
        read_tflite(MNIST)
