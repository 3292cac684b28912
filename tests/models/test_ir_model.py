"""Claims about OpenVINO's models and their recurrent nodes."""

import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
import openvino
import pytest
from openvino import opset3, opset5
from support import shipped
from support.real_models import DATA, PATHS, run
from support.tables import every

from rnncli.errors import RnncliError, UnreadableFile, Unsupported
from rnncli.judging.judgement import judge
from rnncli.models.evaluator import prepare
from rnncli.models.ir_model import IrGraphReader, read_ir
from rnncli.models.loading import IR
from rnncli.models.node_listing import recurrent_nodes
from rnncli.numerics import dtype_of
from rnncli.packs import ir_form
from rnncli.packs.vector import Attempt, Status
from rnncli.talk.installing import install_line

ONES = [np.ones(shape, "f") for shape in ([5, 4], [5, 5], [5])]


class AUGRUCell(openvino.Op):
    """A cell that openvino makes inside, and neither reads nor builds."""

    def __init__(self, inputs):
        super().__init__(self, inputs)

    def validate_and_infer_types(self):
        """As its first input."""
        self.set_output_type(0, self.get_input_element_type(0), self.get_input_partial_shape(0))


def cell(x, h, activation="tanh", name="cell"):
    """A recurrent node."""
    weights = map(opset5.constant, ONES)
    return opset3.rnn_cell(x, h, *weights, 5, [activation], [], [], name=name)


def in_loop(node):
    """A model with a node in a TensorIterator, given what makes it of a step and a state."""
    loop = opset5.tensor_iterator()
    loop.set_friendly_name("loop")
    outer = opset5.parameter([2, 3, 4], np.float32, "outer")
    x, h = (opset5.parameter(shape, np.float32) for shape in ([2, 1, 4], [2, 5]))
    state = opset5.result(node(opset5.squeeze(x, opset5.constant([1])), h).output(0))
    loop.set_function(openvino.Model([state], [x, h], "body"))
    loop.set_sliced_input(x, outer.output(0), 0, 1, 1, -1, 1)
    start = opset5.constant(np.zeros([2, 5], "f"))
    loop.set_merged_input(h, start.output(0), state.output(0))
    last = loop.get_iter_value(state.output(0), -1)
    return openvino.Model([opset5.result(last)], [outer], "m")


def test_nodes_in_bodies_are_listed_by_their_path(tmp_path):
    """With the shapes of their inputs; a model of them alone is not one to run."""
    openvino.save_model(in_loop(cell), tmp_path / f"m{IR}")
    ir = read_ir(tmp_path / f"m{IR}")
    (node,) = recurrent_nodes(ir.recurrent)

    assert (node.operator.name, node.path) == ("RNNCell-3", ("graph", "loop.body", "cell"))
    assert node.inputs == {"X": (2, 4), "H": (2, 5), "W": (5, 4), "R": (5, 5), "B": (5,)}
    assert ir.unevaluated == ()
    with pytest.raises(Unsupported, match=r"has 1 recurrent node and \d+ others"):
        ir.single()


def test_a_node_that_breaks_its_specification_is_said_with_its_reason():
    """Though openvino reads it."""
    graph = IrGraphReader(in_loop(lambda x, h: cell(x, h, "hardsigmoid"))).graph()
    (node,) = graph.unevaluated

    assert (len(graph.proto.node), graph.controls) == (0, ())
    assert (node.operator, node.path) == ("RNNCell-3", ("graph", "loop.body", "cell"))
    assert "hardsigmoid" in node.reason


def test_a_node_without_names_of_activations_is_said_with_its_reason():
    """An empty list, whose type only the specification knows."""
    x, h = (opset5.parameter(shape, np.float32) for shape in ([2, 3, 4], [2, 1, 5]))
    weights = [np.ones(shape, "f") for shape in ([1, 5, 4], [1, 5, 5], [1, 5])]
    lengths = opset5.constant(np.array([3, 3]))
    node = opset5.rnn_sequence(
        *(x, h, lengths, *map(opset5.constant, weights), 5, "forward"), activations=[]
    )
    graph = IrGraphReader(openvino.Model([node], [x, h])).graph()
    (refused,) = graph.unevaluated

    assert "activations must name 1 function (f for each of 1 direction), got 0" in refused.reason


def test_an_operator_that_is_not_supported_is_listed_beside_others():
    """By its type and the set it is of."""
    x, h = (opset5.parameter(shape, np.float32) for shape in ([2, 4], [2, 5]))
    unknown = AUGRUCell([h])
    net = openvino.Model([opset5.result(cell(x, unknown).output(0))], [x, h], "m")
    graph = IrGraphReader(net).graph()
    inner = IrGraphReader(in_loop(lambda _, h: AUGRUCell([h]))).graph()

    assert [node.operator for node in graph.unevaluated] == ["extension::AUGRUCell"]
    assert [node.op_type for node in graph.proto.node] == ["RNNCell"]
    assert [node.path[:-1] for node in inner.unevaluated] == [("graph", "loop.body")]


def test_values_of_one_name_are_told_apart():
    """Openvino has names for people, which are not unique."""
    x, h = (opset5.parameter(shape, np.float32) for shape in ([2, 4], [2, 5]))
    states = [opset5.relu(h), opset5.tanh(h)]
    for each in states:
        each.set_friendly_name("state")
    results = [opset5.result(cell(x, each).output(0)) for each in states]
    graph = IrGraphReader(openvino.Model(results, [x, h], "m")).graph()
    kinds = {output.get_node().get_type_name() for output in graph.sources.values()}

    assert kinds == {"Parameter", "Relu", "Tanh"}
    assert graph.flat("m").inputs[0].name in graph.sources
    assert len({output for node in graph.proto.node for output in node.output}) == 2


@cache
def read():
    """OpenVINO's cases: it has no LSTMSequence-1 any more, and requires a bias."""
    return [
        vector
        for vector in shipped.vectors("openvino")
        if vector.record.operator != "LSTMSequence-1" and not vector.id.endswith("_no_bias")
    ]


# OpenVINO's converter refuses a Conv of silero-vad, whose rank it does not infer.
EXPORTS = sorted(
    path for path in PATHS.values() if DATA in path.parents and "silero" not in path.stem
)


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
@every("vector", read, ids=lambda vector: vector.id)
def test_the_model_of_a_case_gives_its_outputs(vector, tmp_path):
    """Every output, within its tolerance; of all but float64, to the bit."""
    outputs = computed(written(vector, tmp_path), vector.inputs)

    assert set(outputs) == set(vector.answers.outputs)
    assert {dtype_of(values).name for values in outputs.values()} == {vector.record.dtype}
    judged = judge(vector, Attempt(Status.RAN, outputs))
    assert judged.verdict == "pass", judged
    if vector.record.dtype != "float64":
        for name, values in outputs.items():
            assert values.tobytes() == vector.answers.outputs[name].tobytes(), name


def test_weights_in_fewer_bits_are_widened(tmp_path):
    """As openvino stores float32 weights unless told otherwise."""
    (vector,) = (each for each in read() if each.id == "rnnsequence_5_constants")
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
    path = written(next(each for each in read() if each.record.operator == like), folder)
    own, _, number = like.partition("-")
    text, layer = path.read_text(), f'type="{own}" version="opset{number}"'
    assert layer in text
    path.write_text(text.replace(layer, f'type="{kind}" version="{version}"'))
    return path


@every(("operator", "number"), OF_SETS)
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
    (vector,) = (each for each in read() if each.id == "rnnsequence_5_constants")
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
    (vector,) = (each for each in read() if each.id == "rnnsequence_5_constants")
    path = written(vector, tmp_path)
    text = path.read_text()
    path.write_text(text.replace('size="60"', 'size="6000000000000"', 1))

    assert text != path.read_text()
    with pytest.raises(UnreadableFile, match="Incorrect weights"):
        read_ir(path)


def test_huge_and_missing_files_are_refused(tmp_path):
    """A sparse file of a terabyte is not read."""
    with pytest.raises(UnreadableFile, match="no such file"):
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
    path = written(read()[0], folder)
    path.with_suffix(".bin").unlink()
    (tmp_path / "secret").write_bytes(b"x")
    path.with_suffix(".bin").symlink_to(tmp_path / "secret")

    with pytest.raises(RnncliError, match="outside"):
        read_ir(path)


def test_without_openvino_one_sentence_says_what_to_install(tmp_path, monkeypatch):
    """The line of pip, exit code 3."""
    path = written(read()[0], tmp_path)
    monkeypatch.setitem(sys.modules, "openvino", None)

    with pytest.raises(Unsupported, match=re.escape(install_line("runtimes"))):
        read_ir(Path(path))
