"""TFLite's own models: what is written is read back, and both interpreters take it."""

from dataclasses import replace

import numpy as np
import pytest
from support import shipped
from support.tables import every

from rnncli.models import evaluator

pytest.importorskip("tflite")

import tflite

from rnncli.generating.generation import GenerationPlan, generate
from rnncli.models.tflite_model import SLOTS, read_tflite
from rnncli.packs import tflite_form
from rnncli.packs.conversion import convert_pack
from rnncli.packs.pack import open_pack

VECTORS = shipped.vectors("tflite")


def vector(part):
    """A case, by the end of its id."""
    return next(each for each in VECTORS if each.id.endswith(part))


def graph_of(asked):
    """The only graph of a case's model, by the schema's classes."""
    model = tflite.Model.GetRootAs(tflite_form.model_of(asked))
    assert (model.Version(), model.SubgraphsLength()) == (3, 1)
    return model, model.Subgraphs(0)


@every("asked", (*VECTORS, *shipped.vectors("tflite_float")), ids=lambda vector: vector.id)
def test_the_model_is_read_back_as_the_case(asked, tmp_path):
    """Evaluated as `rnncli run` does it, it has the outputs and both states of the case.

    Integers are equal; what is certified of floats may be rounded to the next one in float64.
    """
    for call in asked.calls:
        (tmp_path / tflite_form.MODEL).write_bytes(tflite_form.model_of(call))
        model = read_tflite(tmp_path / tflite_form.MODEL).single()
        prepared = evaluator.prepare(model, readings=call.record.readings)
        outputs = prepared.outputs(tflite_form.fed_inputs(call))

        names = (row.name for row in call.node.operator.outputs)
        found = dict(zip(names, outputs.values(), strict=True))
        for name, due in call.answers.outputs.items():
            assert found[name].dtype == due.dtype
            next_one = 2.0**-22 if due.dtype.kind == "f" else 0
            np.testing.assert_allclose(found[name], due, rtol=next_one, atol=0)


def test_the_operator_is_what_a_converter_writes():
    """24 inputs, two variables and 5 intermediates, of which the last has the output's scale."""
    asked = vector("plain_batch_first_fresh")
    model, graph = graph_of(asked)
    op = graph.Operators(0)
    slots = op.InputsAsNumpy().tolist()
    names = {k: graph.Tensors(number).Name().decode() for k, number in enumerate(slots) if ~number}
    last = graph.Tensors(op.Intermediates(4)).Quantization()

    assert model.OperatorCodes(0).BuiltinCode() == 44
    assert {name: k for k, name in names.items()} == {
        name: SLOTS[name] for name in (row.name for row in asked.node.operator.inputs)
    }
    assert [graph.Tensors(slots[k]).IsVariable() for k in (0, 12, 18, 19)] == [0, 0, 1, 1]
    assert (len(slots), op.IntermediatesLength()) == (24, 5)
    assert (last.Scale(0), last.ZeroPoint(0)) == (0.00830078125, -5)
    assert graph.InputsAsNumpy().tolist() == [slots[0]]


def test_states_that_a_case_gives_are_inputs_too():
    """In C++ and in Python, an interpreter can set them."""
    _, graph = graph_of(vector("plain_batch_first_given"))
    names = [graph.Tensors(k).Name().decode() for k in graph.InputsAsNumpy()]

    assert names == ["input", "output_state", "cell_state"]


def test_constants_begin_where_interpreters_read_them_in_place():
    """At multiples of 16 bytes."""
    content = tflite_form.model_of(vector("plain_batch_first_fresh"))
    model = tflite.Model.GetRootAs(content)
    base = np.frombuffer(content, np.uint8).ctypes.data
    held = [model.Buffers(k) for k in range(model.BuffersLength())]
    places = [each.DataAsNumpy().ctypes.data - base for each in held if each.DataLength()]

    assert len(places) == 12
    assert not any(place % 16 for place in places)


def test_a_bias_has_the_product_of_two_scales_in_float32():
    """As a converter writes it; no runtime reads it."""
    asked = vector("plain_batch_first_fresh")
    _, graph = graph_of(asked)
    bias = graph.Tensors(tflite_form.numbers_of(asked)["cell_gate_bias"])

    assert bias.Quantization().Scale(0) == np.float32(0.01171875) * np.float32(0.0107421875)


def test_a_second_call_has_a_model_if_its_weights_are_others(tmp_path):
    """A converted pack is the generated one, and is read as the raw form."""
    suite = shipped.suite("tflite")
    ids = [each.id for each in suite.entries if "again_time_first_fresh" in each.id]
    chosen = replace(suite, entries=tuple(e for e in suite.entries if e.id in ids))
    generate(GenerationPlan(suite=chosen, layout="tflite"), tmp_path / "made", lambda _: None)
    generate(GenerationPlan(suite=chosen, layout="onnx"), tmp_path / "onnx", lambda _: None)
    converted = convert_pack(open_pack(tmp_path / "onnx"), tmp_path / "converted", "tflite")
    pack = open_pack(tmp_path / "made")
    (record,) = pack.cases
    folder = tmp_path / "made" / f"test_{record.id}"

    assert converted.digest == pack.manifest.digest
    assert len(list(folder.rglob("model.tflite"))) == 1
    assert list(pack.problems()) == []
    asked = pack.read(record)
    bias = {"cell_gate_bias": asked.inputs["cell_gate_bias"] + np.int32(1)}
    other = replace(asked, later=(replace(asked, call=1, inputs={**asked.inputs, **bias}),))
    assert [name for name in tflite_form.files_of(other) if name.endswith(".tflite")] == [
        "model.tflite",
        "calls/1/model.tflite",
    ]
