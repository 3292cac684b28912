"""Recurrent nodes in graphs of openvino: in bodies, refused, unknown, and of like names."""

import numpy as np
import openvino
import pytest
from openvino import opset3, opset5

from rnncli.errors import Unsupported
from rnncli.models.ir_graph import IrGraphReader
from rnncli.models.ir_model import read_ir
from rnncli.models.loading import IR
from rnncli.models.node_listing import recurrent_nodes

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
