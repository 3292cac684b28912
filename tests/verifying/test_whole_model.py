"""Claims about whole models in a runtime."""

import numpy as np
import onnx
import pytest
from support.real_models import PATHS, recorded

from rnncli.errors import Unsupported
from rnncli.judging.tolerances.tolerance import DATA_SET, Tolerance
from rnncli.models.loading import load_model, model_from
from rnncli.running.execution import execute
from rnncli.running.request import Request
from rnncli.verifying.whole_model import expectation, measured_tolerance


def run_of(model, inputs, tmp_path, **options):
    """The request and the run of a model on inputs."""
    np.savez(tmp_path / "in.npz", **inputs)
    request = Request(tolerance=DATA_SET, inputs_from=str(tmp_path / "in.npz"), **options)
    return request, next(execute(model, request))


def parsed(graph):
    """A model."""
    return model_from(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {graph}'))


@pytest.mark.parametrize("name", ["lstm_packed_bi_ts", "loop_gru_script_ts"])
def test_tolerances_let_another_implementation_pass_and_no_narrower_arithmetic(name, tmp_path):
    """The recorded outputs are ONNX Runtime's; those of weights in bfloat16 are far outside."""
    inputs, theirs = recorded(PATHS[name])
    request, run = run_of(load_model(PATHS[name]), inputs, tmp_path)
    wanted, tolerance = expectation(load_model(PATHS[name]), request, run)
    narrow = load_model(PATHS[name])
    for tensor in narrow.proto.graph.initializer:
        if tensor.data_type == 1 and len(tensor.dims) > 1:
            values = onnx.numpy_helper.to_array(tensor)
            bits = (values.view(np.uint32) & 0xFFFF0000).view(np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(bits, tensor.name))
    _, coarse = run_of(narrow, inputs, tmp_path)

    for output, values in wanted.items():
        allowed = tolerance.elements[output]
        assert values.dtype == run.outputs[output].dtype
        assert np.all(np.abs(theirs[output] - values) <= allowed)
        assert np.abs(coarse.outputs[output] - values).max() > 10 * allowed.max()
        assert 0 < allowed.max() < 1e-5


def test_what_integers_and_booleans_should_be_is_exact(tmp_path):
    """They have no tolerance."""
    model = parsed("""g (float[4] X) => (int64 top, float[4] Y) {
        top = ArgMax <keepdims = 0> (X)
        Y = Exp (X)
    }""")
    request, run = run_of(model, {"X": np.array([1, 3, 2, 0], np.float32)}, tmp_path)
    wanted, tolerance = expectation(model, request, run)

    assert (wanted["top"].item(), wanted["top"].dtype) == (1, np.int64)
    assert tolerance.elements.keys() == {"Y"}


def test_tolerances_of_ones_own_are_those_of_a_comparison_with_the_run(tmp_path):
    """Then nothing is evaluated in float64, of which the model may be incapable."""
    model = load_model(PATHS["loop_gru_script_ts"])
    own = Tolerance.parse(atol=["1e-3"])
    request, run = run_of(model, recorded(PATHS["loop_gru_script_ts"])[0], tmp_path)
    request = Request(tolerance=own, own_tolerances=False)

    assert expectation(model, request, run) == (run.outputs, own)


def test_a_model_without_float64_is_refused_with_the_way_out(tmp_path):
    """The node is named."""
    model = parsed("""g (float[2, 2] X) => (float[2, 2] Y) <float[2, 2] W = {1, 2, 3, 4}> {
        Y = MatMul (X, W)
    }""")
    request, run = run_of(model, {"X": np.ones((2, 2), np.float32)}, tmp_path)
    model.proto.graph.node[0].op_type = "Nothing"  # as if it had only run in float32

    with pytest.raises(Unsupported, match=r"Nothing.*with --atol and --rtol they are yours"):
        expectation(model, request, run)


def test_a_model_that_overflows_in_its_own_types_is_not_judged(tmp_path):
    """Whatever a runtime gave would be as near to it, or as far."""
    model = parsed("""g (float[2] X) => (float[2] Y) <float a = {1e30}> {
        p = Mul (X, a)
        q = Mul (p, a)
        Y = Div (q, p)
    }""")
    request, run = run_of(model, {"X": np.array([1.5, 2.5], np.float32)}, tmp_path)

    with pytest.raises(Unsupported, match="nothing can be said of 'Y'"):
        expectation(model, request, run)


def test_a_level_beside_is_right_where_a_value_is_near_a_tie_and_there_alone(tmp_path):
    """An error of one level elsewhere, or of two near the tie, is outside the tolerance."""
    model = parsed("""g (float[8, 16] X) => (float[8, 16] Y)
        <float scale = {0.125}, uint8 zero = {128}, float three = {3.0}> {
        p = Mul (X, three)
        q = QuantizeLinear (p, scale, zero)
        Y = DequantizeLinear (q, scale, zero)
    }""")
    X = np.random.default_rng(0).uniform(-5, 5, (8, 16)).round(2).astype(np.float32)
    X[1, 4] = np.float32(0.3125 / 3)  # 2.5 levels, but for a rounding
    request, run = run_of(model, {"X": X}, tmp_path)
    _, tolerance = expectation(model, request, run)
    allowed = tolerance.elements["Y"]

    assert 0.125 <= allowed[1, 4] < 0.25
    assert np.delete(allowed, np.ravel_multi_index((1, 4), X.shape)).max() < 1e-5


def measured(values, error):
    """The tolerance of an output, of which four evaluations are off by a normal error."""
    rng = np.random.default_rng(0)
    others = [values + error * rng.normal(size=values.shape) for _ in range(4)]
    return measured_tolerance(values, others, values.astype(np.float32))


CHANNELS = np.random.default_rng(1).uniform(-1, 1, (3, 16, 4))
LOUD = np.array([3e6, 1, 1, 1])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_zeros_in_the_quiet_channels_of_an_output_are_outside_their_tolerances(axis):
    """One tolerance for the whole would be that of the loud one, wherever its axis is."""
    gain = np.moveaxis(LOUD[:, None, None], 0, axis)
    values = np.moveaxis(CHANNELS, 2, axis) * gain
    allowed = np.moveaxis(measured(values, 1e-7 * gain), axis, 2)

    assert allowed[..., 0].min() > 1
    assert allowed[..., 1:].max() < 1e-3
    assert allowed[..., 1:].min() > 1e-6


def test_what_noise_drowns_is_not_judged():
    """It is, where 5 % of the largest value of a channel, or of the whole, are within it."""
    noisy = measured(CHANNELS, np.array([1e-7, 1e-2, 1e-7, 1e-7]))

    assert np.isnan(measured(CHANNELS, 4e-3)).all()
    assert np.isnan(noisy).all((0, 1)).tolist() == [False, True, False, False]
    assert np.nanmax(noisy) < 1e-5


def test_a_channel_that_is_near_zero_by_chance_needs_no_bound_of_its_own():
    """Of single numbers, one in ten thousand is: a sound implementation is as far off as in all."""
    rng = np.random.default_rng(2)
    values = rng.normal(size=(1, 20_000))
    allowed = measured(values, 1e-7)

    assert (np.abs(2e-7 * rng.normal(size=values.shape)) <= allowed).all()


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (5, 1)], ids=str)
def test_outputs_without_channels_have_tolerances(shape):
    """They may have no axis, no element or one channel."""
    allowed = measured(np.ones(shape), 1e-7)

    assert allowed.shape == shape
    assert ((allowed > 1e-8) & (allowed < 1e-5)).all()


def test_a_shut_unit_may_be_off_by_the_error_of_its_gates(tmp_path):
    """Sigmoid is approximated to an absolute error, so a runtime may give 0 for 1e-9."""
    model = parsed("""g (float[9, 2, 1] X) => (float[9, 1, 2, 2] Y)
    <float[1, 8, 1] W = {1, 1, 1, 1, 1, 1, 1, 1},
     float[1, 8, 2] R = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
     float[1, 16] B = {0, 0, 0, -21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}> {
        Y = LSTM <hidden_size = 2> (X, W, R, B)
    }""")
    X = np.random.default_rng(0).uniform(-1, 1, (9, 2, 1)).astype(np.float32)
    wanted, tolerance = expectation(model, *run_of(model, {"X": X}, tmp_path))
    shut = np.abs(wanted["Y"][..., 1])

    assert 0 < shut.max() < 1e-7
    assert (tolerance.elements["Y"][..., 1] > shut).all()
    assert not np.isnan(tolerance.elements["Y"]).any()
