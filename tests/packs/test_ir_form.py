"""OpenVINO's own models, read and run by OpenVINO."""

import json
from dataclasses import replace

import openvino
import pytest
from ml_dtypes import bfloat16
from support import shipped
from support.judged import vectors_of
from support.small_suite import small_suite

from rnncli.generating.generation import GenerationPlan, generate
from rnncli.judging.judgement import judge
from rnncli.models import evaluator
from rnncli.models.ir_model import read_ir
from rnncli.numerics import dtype_of
from rnncli.operators import openvino_rows
from rnncli.packs import ir_form, raw_form
from rnncli.packs.pack import open_pack
from rnncli.packs.vector import Attempt, Status

CORE = openvino.Core()
# OpenVINO computes float64 in float32, and has no LSTMSequence of its first operation set any more.
RUN = [
    vector
    for vector in shipped.vectors("openvino")
    if vector.record.dtype != "float64" and vector.record.operator != "LSTMSequence-1"
]


def computed(vector, folder):
    """Read the model from files, run it, and return the outputs by name."""
    for name, content in ir_form.model_files(vector).items():
        (folder / name).write_bytes(content)
    model = CORE.compile_model(
        CORE.read_model(folder / ir_form.XML), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    request = model.create_infer_request()
    fed = {port.any_name: tensor(vector.inputs[port.any_name]) for port in model.inputs}
    request.infer(fed)
    return {port.any_name: array(request.get_tensor(port)) for port in model.outputs}


def evaluated(vector, path):
    """Evaluate the model of a file as `rnncli run` does, and return the outputs by name."""
    model = read_ir(path).single()
    fed = {value.name: vector.inputs[value.name] for value in model.inputs}
    return evaluator.prepare(model).outputs(fed)


def tensor(values):
    """A tensor of OpenVINO's; of bfloat16 it takes the bits."""
    if values.dtype != bfloat16:
        return openvino.Tensor(values.copy())
    return openvino.Tensor(values.view("u2"), values.shape, openvino.Type.bf16)


def array(result):
    """The values of a tensor of OpenVINO's."""
    values = result.data.copy()
    return values.view(bfloat16) if result.element_type == openvino.Type.bf16 else values


@pytest.mark.parametrize("vector", RUN, ids=lambda vector: vector.id)
def test_openvino_reads_the_model_and_computes_the_outputs(vector, tmp_path):
    """Every output, within its tolerance, of each operator with each attribute."""
    outputs = computed(vector, tmp_path)

    assert set(outputs) == set(vector.answers.outputs)
    assert {dtype_of(values).name for values in outputs.values()} == {vector.record.dtype}
    judged = judge(vector, Attempt(Status.RAN, outputs))
    assert judged.verdict == "pass", judged


ROWS = [row for row in openvino_rows.ROWS if row.name != "LSTMSequence-1"]
SIZES = {"seq_length": 3, "batch_size": 2, "input_size": 3, "hidden_size": 4}


def with_the_required_alone(row):
    """A vector of an operator without any input that it can do without."""
    symbols = {dim.symbol for tensor in row.inputs for dim in tensor.shape()}
    sizes = {name: size for name, size in SIZES.items() if name in symbols}
    absent = {tensor.name: None for tensor in row.inputs if tensor.optional}
    turned = {"direction": "reverse"} if "direction" in row.attributes else {}
    case = {"op": row.name, "sizes": sizes, "attributes": turned, "inputs": absent}
    (vector,) = vectors_of(json.dumps(case))
    assert not vector.inputs.keys() & absent.keys()
    return vector


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_absent_inputs_are_zeros_in_a_model(row, tmp_path):
    """Its page calls B optional; its reader looks for the port all the same."""
    vector = with_the_required_alone(row)

    for outputs in (computed(vector, tmp_path), evaluated(vector, tmp_path / ir_form.XML)):
        judged = judge(vector, Attempt(Status.RAN, outputs))
        assert judged.verdict == "pass", judged


def test_constants_stand_in_the_binary_file_alone():
    """One after the other; if weights are inputs, only the zeros of absent ones do."""
    sizes = {}
    for vector in RUN:
        held = vector.record.weights == "initializers"
        content = ir_form.model_files(vector)[ir_form.BIN]
        tensors = ir_form.all_inputs(vector)
        absent = sum(tensors[name].nbytes for name in tensors.keys() - vector.inputs.keys())
        weights = sum(tensors[name].nbytes for name in "WRB" if name in vector.inputs)
        assert len(content) == absent + (weights if held else 0)
        sizes[held] = weights if held else 0

    assert sizes[False] < sizes[True]


def one_cell():
    """The plan of a pack of one case."""
    text = "suite: s\nsummary: One cell.\nseed: 1\ncases: {cell: {op: RNNCell-3, sizes: %s}}\n"
    text %= "{batch_size: 2, input_size: 3, hidden_size: 5}"
    return GenerationPlan(suite=small_suite(text), layout="ir")


def test_a_pack_of_models_is_a_raw_pack(tmp_path):
    """Its tensors are read as of the layout raw; every file has its checksum."""
    assert generate(one_cell(), tmp_path / "pack", lambda _: None).failed == ()
    pack = open_pack(tmp_path / "pack")
    (vector,) = pack.vectors()

    assert [*pack.problems()] == []
    assert raw_form.files_of(vector).items() <= ir_form.files_of(vector).items()
    assert (tmp_path / "pack" / "test_rnncell_3_cell" / "model.xml").stat().st_size > 1000


def test_another_layout_replaces_the_models(tmp_path):
    """Nothing of them is left, and nothing is foreign."""
    generate(one_cell(), tmp_path / "pack", lambda _: None)
    plan = replace(one_cell(), layout="raw")

    assert generate(plan, tmp_path / "pack", lambda _: None).warnings == ()
    assert not [*tmp_path.rglob("model.*")]
