"""Models of OpenVINO, read by openvino: alone, inside larger models, and broken."""

import sys
from pathlib import Path

import numpy as np
import openvino
import pytest
import shipped
from real_models import DATA

from rnncli.errors import RnncliError, UnreadableFile, Unsupported
from rnncli.judging.judgement import judge
from rnncli.models.evaluator import prepare, run
from rnncli.models.ir_model import read_ir
from rnncli.models.loading import IR
from rnncli.models.node_listing import recurrent_nodes
from rnncli.numerics import dtype_of
from rnncli.packs import ir_form
from rnncli.packs.vector import Attempt, Status

# OpenVINO has no LSTMSequence of its first operation set any more, and requires a bias.
READ = [
    vector
    for vector in shipped.vectors("openvino")
    if vector.record["operator"] != "LSTMSequence-1" and not vector.id.endswith("_no_bias")
]
# OpenVINO's converter refuses a Conv of silero-vad, whose rank it does not infer.
EXPORTS = sorted(path for path in DATA.rglob("*.onnx") if "silero" not in path.stem)


def written(vector, folder):
    """The model of a vector as files."""
    for name, content in ir_form.model_files(vector).items():
        (folder / name).write_bytes(content)
    return folder / ir_form.XML


def computed(path, inputs):
    """The outputs of a model of one recurrent node."""
    model = read_ir(path).single()
    evaluator = prepare(model)
    fed = {value.name: inputs[value.name] for value in model.inputs}
    return dict(zip(evaluator.output_names, run(evaluator, fed), strict=True))


@pytest.mark.filterwarnings("ignore:alpha value", "ignore:beta value")
@pytest.mark.parametrize("vector", READ, ids=lambda vector: vector.id)
def test_the_model_of_a_case_gives_its_outputs(vector, tmp_path):
    """Every output, within its tolerance; of all but float64, to the bit."""
    outputs = computed(written(vector, tmp_path), vector.inputs)

    assert set(outputs) == set(vector.answers.outputs)
    assert {dtype_of(values).name for values in outputs.values()} == {vector.record["dtype"]}
    judged = judge(vector, Attempt(Status.RAN, outputs))
    assert judged.verdict == "pass", judged
    if vector.record["dtype"] != "float64":
        for name, values in outputs.items():
            assert values.tobytes() == vector.answers.outputs[name].tobytes(), name


def test_weights_in_fewer_bits_are_widened(tmp_path):
    """As openvino stores float32 weights unless told otherwise."""
    (vector,) = (each for each in READ if each.id == "rnnsequence_5_constants")
    plain = openvino.Core().read_model(written(vector, tmp_path))
    path = tmp_path / f"narrow{IR}"
    openvino.save_model(plain, path, compress_to_fp16=True)

    narrow = {name: values.astype("f2").astype("f4") for name, values in vector.inputs.items()}
    held = {t.name: t for t in read_ir(path).single().proto.graph.initializer}

    assert len(held) == 3
    assert {np.frombuffer(tensor.raw_data, "f4").tobytes() for tensor in held.values()} == {
        narrow[name].tobytes() for name in "WRB"
    }


# The operation sets of a layer, by the row that it is. Later sets repeat the operators of earlier
# ones, and RNNCell is also in the first.
SETS = {
    "RNNSequence-5": range(5, 17),
    "GRUSequence-5": range(5, 17),
    "LSTMSequence-5": range(5, 17),
    "RNNCell-3": (1, *range(3, 17)),
    "GRUCell-3": range(3, 17),
    "LSTMCell-1": range(1, 4),
    "LSTMCell-4": range(4, 17),
}
OF_SETS = [(operator, number) for operator, numbers in SETS.items() for number in numbers]
LACKED = [
    *(
        (f"{cell}Sequence", f"opset{number}")
        for cell in ("RNN", "GRU", "LSTM")
        for number in (1, 4)
    ),
    *(("RNNCell", "opset2"), ("GRUCell", "opset1"), ("GRUCell", "opset2")),
    *((kind, "opset999") for kind in ("RNNSequence", "LSTMCell")),
    *(("AUGRUCell", "opset3"), ("AUGRUCell", "ie_internal_opset"), ("AUGRUSequence", "opset5")),
]


def of_set(folder, kind, version, like):
    """A model of one layer, said to be of a type and an operation set."""
    path = written(next(each for each in READ if each.record["operator"] == like), folder)
    own, _, number = like.partition("-")
    text, layer = path.read_text(), f'type="{own}" version="opset{number}"'
    assert layer in text
    path.write_text(text.replace(layer, f'type="{kind}" version="{version}"'))
    return path


@pytest.mark.parametrize(("operator", "number"), OF_SETS)
def test_a_layer_of_any_operation_set_is_the_row_of_its_text(operator, number, tmp_path):
    """The newest version up to that set."""
    path = of_set(tmp_path, operator.partition("-")[0], f"opset{number}", operator)
    (node,) = recurrent_nodes(read_ir(path).single())

    assert node.operator.name == operator


@pytest.mark.parametrize(("kind", "version"), LACKED)
def test_an_operator_that_openvino_lacks_is_not_supported(kind, version, tmp_path):
    """LSTMSequence-1 among them; that is no damage of the file."""
    like = next(o for o in SETS if o.startswith(kind.removeprefix("AU")))
    with pytest.raises(Unsupported, match=f"lacks an operator of it: .*{kind}"):
        read_ir(of_set(tmp_path, kind, version, like))


def operations(net):
    """The operations of a model and of the bodies of its loops."""
    for op in net.get_ops():
        yield op
        if op.get_type_name() == "Loop":
            yield from operations(op.get_function())


@pytest.mark.parametrize("path", EXPORTS, ids=lambda path: path.stem)
def test_the_recurrent_nodes_of_a_converted_model_are_listed(path, tmp_path):
    """As many as openvino's own model has, in bodies too."""
    net = openvino.convert_model(path)
    openvino.save_model(net, tmp_path / f"m{IR}")
    ir = read_ir(tmp_path / f"m{IR}")
    kinds = ("RNNSequence", "GRUSequence", "LSTMSequence", "RNNCell", "GRUCell", "LSTMCell")
    top = [op for op in operations(net) if op.get_type_name() in kinds]

    listed = list(recurrent_nodes(ir.recurrent))
    assert sorted(node.operator.type for node in listed) == sorted(o.get_type_name() for o in top)
    assert {node.attributes["hidden_size"] for node in listed} == {
        op.get_attributes()["hidden_size"] for op in top
    }
    with pytest.raises(Unsupported, match="`rnncli extract` takes recurrent nodes"):
        ir.single()


def test_every_truncation_is_one_sentence(tmp_path):
    """Of the text and of the weights; none is read as something else."""
    (vector,) = (each for each in READ if each.id == "rnnsequence_5_constants")
    path = written(vector, tmp_path)
    text, weights = path.read_bytes(), path.with_suffix(".bin").read_bytes()
    end = text.rindex(b">")

    for k in range(0, end, 97):
        path.write_bytes(text[:k])
        with pytest.raises(RnncliError) as caught:
            read_ir(path).single()
        assert str(caught.value).startswith(f"{path}: ")
        assert len(str(caught.value).splitlines()) == 1
    path.write_bytes(text)
    for k in range(0, len(weights), 29):
        path.with_suffix(".bin").write_bytes(weights[:k])
        with pytest.raises(UnreadableFile, match="Incorrect weights in bin file"):
            read_ir(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x08\x07",
        b"<",
        b"<html></html>",
        b"<net/>",
        b'<?xml version="1.0"?><net name="a" version="11"><layers>' + b"<layer>" * 9999,
        b'<!DOCTYPE a [<!ENTITY b "cccc">]><net name="&b;" version="11"><layers/></net>',
    ],
    ids=range(7),
)
def test_other_files_are_refused(content, tmp_path):
    """Also those of other formats that openvino reads, and of no node."""
    path = tmp_path / f"m{IR}"
    path.write_bytes(content)

    with pytest.raises(RnncliError) as caught:
        read_ir(path).single()
    assert len(str(caught.value).splitlines()) == 1


def test_sizes_beyond_the_weights_are_refused(tmp_path):
    """A constant of terabytes in a file of bytes."""
    (vector,) = (each for each in READ if each.id == "rnnsequence_5_constants")
    path = written(vector, tmp_path)
    text = path.read_text()
    path.write_text(text.replace('size="60"', 'size="6000000000000"', 1))

    assert text != path.read_text()
    with pytest.raises(UnreadableFile, match="Incorrect weights"):
        read_ir(path)


def test_huge_and_missing_files_are_refused(tmp_path):
    """A sparse file of a terabyte is not read."""
    with pytest.raises(UnreadableFile, match="No such file"):
        read_ir(tmp_path / f"none{IR}")
    path = tmp_path / f"m{IR}"
    with path.open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(UnreadableFile):
        read_ir(path)


def test_weights_outside_the_folder_are_refused(tmp_path):
    """A link beside the model leads elsewhere."""
    folder = tmp_path / "a"
    folder.mkdir()
    path = written(READ[0], folder)
    path.with_suffix(".bin").unlink()
    (tmp_path / "secret").write_bytes(b"x")
    path.with_suffix(".bin").symlink_to(tmp_path / "secret")

    with pytest.raises(RnncliError, match="outside"):
        read_ir(path)


def test_without_openvino_one_sentence_says_what_to_install(tmp_path, monkeypatch):
    """The line of pip, exit code 3."""
    path = written(READ[0], tmp_path)
    monkeypatch.setitem(sys.modules, "openvino", None)

    with pytest.raises(Unsupported, match=r"pip install 'rnncli\[runtimes\]'"):
        read_ir(Path(path))
