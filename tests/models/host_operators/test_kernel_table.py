"""The table of host operators is sound, and what onnx's own cases say of its operators holds."""

from collections import defaultdict
from itertools import product

import numpy as np
import onnx
import pytest
from onnx.backend.test.case.node import collect_testcases
from onnx.reference.op_run import OpRun
from support.one_node import CONTESTED, assert_same, model_of, ours
from support.tables import every

from rnncli.errors import Unsupported
from rnncli.models.host_operators import contrib
from rnncli.models.host_operators.kernel_table import HOST_OPERATORS
from rnncli.models.implementations import host_operator

ROWS = [row for rows in HOST_OPERATORS.values() for row in rows]
NEWEST = onnx.defs.onnx_opset_version()
VERSIONS = {
    (schema.domain, schema.name, schema.since_version): schema
    for schema in (*onnx.defs.get_all_schemas_with_history(), *contrib.schemas().values())
}


def versions(row):
    """List the versions of an operator that a row serves."""
    for (domain, name, version), schema in VERSIONS.items():
        if (domain, name) == (row.domain, row.op_type) and row.first <= version <= (
            row.last or version
        ):
            yield schema


@every("row", ROWS, ids=str)
def test_row_serves_something(row):
    """A row is for an operator that exists, from a version that exists."""
    served = [schema.since_version for schema in versions(row)]
    assert min(served, default=None) == row.first


@every("rows", HOST_OPERATORS.values(), ids=HOST_OPERATORS)
def test_rows_do_not_overlap(rows):
    """No opset is served twice."""
    for opset, domain in product(range(1, NEWEST + 1), {row.domain for row in rows}):
        assert (
            sum(row.first <= opset <= (row.last or opset) for row in rows if row.domain == domain)
            <= 1
        )


@every("row", ROWS, ids=str)
def test_class_has_the_defaults_of_its_version(row):
    """Every class carries the schema of its own version: Softmax-11 has axis 1, Softmax-13 -1."""
    for schema in versions(row):
        served = host_operator(row.domain, row.op_type, schema.since_version)
        if schema.deprecated:
            continue
        assert served is not None
        assert issubclass(served, OpRun)
        assert served.op_schema.since_version == schema.since_version


@every("row", ROWS, ids=str)
def test_kernel_takes_every_attribute(row):
    """What is inert in a row is an attribute of some version of its operator."""
    declared = {name for schema in versions(row) for name in schema.attributes}
    assert set(row.inert) <= declared


@every("name", contrib.schemas())
def test_declaration_is_the_one_of_onnxruntime(name):
    """Names, types and attributes of ONNX Runtime's own operators; layers take float64, too."""
    state = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")
    own = contrib.schemas()[name]
    (theirs,) = (
        each
        for each in state.get_all_operator_schema()
        if (each.domain, each.name) == (own.domain, name)
    )
    assert [(i.name, i.type_str, i.option.name) for i in own.inputs] == [
        (i.name, i.typeStr, i.option.name) for i in theirs.inputs
    ]
    wider = {contrib.DOUBLE} if name in contrib.LAYERS else set()
    assert {c.type_param_str: {*c.allowed_type_strs} - wider for c in own.type_constraints} == {
        c.type_param_str: {*c.allowed_type_strs} - wider for c in theirs.type_constraints
    }
    assert {n: a.required for n, a in own.attributes.items()} == {
        n: a.required for n, a in theirs.attributes.items()
    }


def test_classes_are_made_once():
    """Opsets of one version share a class."""
    assert host_operator("", "Softmax", 11) is host_operator("", "Softmax", 12)
    assert host_operator("", "Softmax", 12) is not host_operator("", "Softmax", 13)


def test_other_operators_are_left_alone():
    """What is not in the table, or not yet defined, is None."""
    assert host_operator("", "Abs", 13) is None
    assert host_operator("", "DequantizeLinear", 9) is None
    assert host_operator("com.microsoft", "Softmax", 13) is None


def test_ai_onnx_is_the_default_domain():
    """The default domain has two names."""
    assert host_operator("ai.onnx", "Softmax", 13) is host_operator("", "Softmax", 13)


def test_too_many_outputs():
    """A node that names more outputs than a kernel has is refused."""
    with pytest.raises(Unsupported, match="only 1 of the 2 outputs"):
        ours(*model_of("LogSoftmax", 13, [[1.0, 2.0]], {}, outputs=2))


@pytest.fixture(scope="module")
def published():
    """Collect onnx's own cases of one node, by operator: most operators have some."""
    by_operator = defaultdict(list)
    with np.errstate(all="ignore"):
        for case in collect_testcases(None):
            (node, *more), outputs = case.model.graph.node, case.model.graph.output
            opsets = {imported.domain: imported.version for imported in case.model.opset_import}
            if more or any(value.type.HasField("optional_type") for value in outputs):
                continue  # an optional's elements are published as if they were the outputs
            if node.op_type == "Bernoulli" or case.name in CONTESTED:
                continue  # the former is published as it happened to be drawn
            if host_operator(node.domain, node.op_type, opsets.get(node.domain, 0)):
                by_operator[node.op_type].append(case)
    assert len(by_operator) > len(HOST_OPERATORS) * 3 // 5
    return by_operator


@pytest.mark.parametrize("op_type", HOST_OPERATORS)
def test_published_cases(published, op_type):
    """Our kernels pass every case that onnx publishes for their operators."""
    for case in published.get(op_type, ()):
        names = [value.name for value in case.model.graph.input]
        for inputs, outputs in case.data_sets:
            got = ours(case.model, dict(zip(names, map(_array, inputs), strict=True)))
            assert_same(got, [_array(value) for value in outputs], case.rtol)


def _array(value):
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return value if value is None or isinstance(value, list) else np.asarray(value)
