"""For how many steps cases see an input, and that a case which claims more is refused."""

import numpy as np
import pytest
from msgspec import UNSET
from support.small_suite import small_suite

from rnncli.cases.suite.suite import suite_findings
from rnncli.errors import InvalidRequest
from rnncli.files.described import jsonable
from rnncli.generating.production import make_vectors
from rnncli.packs.manifest import read_record
from rnncli.packs.record import VisibleSteps

# h keeps what it has, and of x takes a little: an input is visible for ever, and exactly so.
KEEPING = "R: {constant: 1}, W: {constant: 0.25}, B: null"
# Of h a sixteenth is left from step to step.
LOSING = "R: {constant: 0.0625}, W: {constant: 0.25}, B: null"
TEXT = """\
suite: long
summary: One long case.
seed: 5
cases:
  case:
    op: RNN-14
    sizes: {{seq_length: 40, batch_size: 3, input_size: 1, hidden_size: 1}}
    attributes: {{activations: [{activations}], direction: {direction}}}
    inputs: {{X: {{uniform: [-0.25, 0.25]}}, {weights}, sequence_lens: {lengths}}}
    horizon: {horizon}
    {more}
"""


def made(weights=KEEPING, horizon="all", **more):
    """The vector of the case, or why there is none."""
    direction = more.pop("direction", "forward")
    activations = ", ".join(["Affine"] * (1 + (direction == "bidirectional")))
    filled = {"lengths": "null", "more": "", **more}
    text = TEXT.format(
        weights=weights, horizon=horizon, direction=direction, activations=activations, **filled
    )
    (vector,) = make_vectors(small_suite(text).entries)
    return vector


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_a_state_that_keeps_all_sees_every_step(direction):
    """Both ends of a bidirectional case; the manifest says so."""
    vector = made(direction=direction)

    assert vector.record.horizon == VisibleSteps(40, 40)
    assert read_record(jsonable(vector.record), "it") == vector.record


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_a_case_that_forgets_is_refused(direction):
    """Named, with what it claims and what was measured."""
    error = made(LOSING, direction=direction)

    first = "reverse" if direction == "reverse" else "forward"
    assert isinstance(error, InvalidRequest)
    assert str(error).startswith("rnn_14_case: claims a horizon of all steps, but the first input")
    assert f"sequence 0 that {first} reads is visible for" in str(error)
    assert str(error).endswith("of 40")


def test_the_steps_are_those_of_a_scalar_recurrence():
    """An input of size s moves h by s/4, and by a sixteenth of that at every further step."""
    vector = made(LOSING, horizon=1)
    X = vector.inputs["X"].astype(np.float64)
    moves = np.sqrt(np.mean(X**2)) / 4 / 16.0 ** np.arange(40)
    tolerance = vector.answers.tolerances["Y"][:, 0, :, 0]
    seen = [40 - int(np.argmax((moves > tolerance[:, k])[::-1])) for k in range(3)]

    assert vector.record.horizon == VisibleSteps(1, min(seen))
    assert isinstance(made(LOSING, horizon=min(seen)), type(vector))
    assert isinstance(made(LOSING, horizon=max(seen) + 1), InvalidRequest)


@pytest.mark.parametrize(
    ("R", "alpha", "B"), [(0.0625, 16, -0.03113), (1, 0.0625, -0.03137)], ids=["down", "up"]
)
def test_an_input_that_is_kept_one_way_alone_is_seen(R, alpha, B):
    """What moves beyond zero stays there for hundreds of steps; the other way it fades in five."""
    text = TEXT.replace("{{uniform: [-0.25, 0.25]}}", "{{constant: 0.25}}")
    text = text.replace("[{activations}]", f"[LeakyRelu], activation_alpha: [{alpha}]")
    weights = f"R: {{constant: {R}}}, W: {{constant: 0.25}}, B: {{constant: {B}}}"
    filled = {"weights": weights, "direction": "forward", "lengths": "null", "more": ""}
    (vector,) = make_vectors(small_suite(text.format(horizon="all", **filled)).entries)

    assert vector.record.horizon == VisibleSteps(40, 40)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_every_sequence_is_asked_for_its_own_length(direction):
    """Those as long as is wanted are measured, shorter ones see all they have."""
    vector = made(direction=direction, lengths="[7, 40, 20]", horizon=20)

    assert vector.record.horizon == VisibleSteps(20, 20)
    assert made(lengths="[7, 39, 0]").record.horizon == VisibleSteps(39, 39)


@pytest.mark.parametrize(
    ("lengths", "horizon"), [("null", 41), ("[7, 9, 5]", 10), ("zeros", "all")]
)
def test_nobody_sees_more_than_there_is(lengths, horizon):
    """Refused, with the longest sequence."""
    error = made(lengths=lengths, horizon=horizon)

    assert isinstance(error, InvalidRequest)
    assert "but its longest sequence has" in str(error)


def test_a_case_that_claims_a_horizon_asks_for_every_step(tmp_path):
    """`lint` finds it, and `generate` refuses."""
    error = made(more="outputs: [Y_h]")
    text = TEXT.format(
        weights=KEEPING,
        horizon="all",
        direction="forward",
        activations="Affine",
        lengths="null",
        more="outputs: [Y_h]",
    )
    (finding,) = suite_findings(text, "long.yaml", tmp_path)

    assert "a case that claims a horizon must ask for Y, which shows every step" in str(error)
    assert "must ask for Y" in finding[1]


@pytest.mark.parametrize("horizon", ["0", "-3", "1.5", "every", "true"])
def test_other_horizons_are_refused(horizon):
    """A positive number of steps, or all."""
    with pytest.raises(InvalidRequest, match="'horizon' must be a positive integer or all"):
        made(horizon=horizon)


def test_a_case_that_claims_nothing_says_nothing():
    """Its record has the fields that it always had."""
    assert made(horizon="null").record.horizon is UNSET


def test_the_second_call_is_measured_too():
    """One whose only sequence is shorter then sees less than is claimed, and is refused."""
    vector = made(more="calls: 2")
    text = TEXT.replace("batch_size: 3", "batch_size: 1")
    text = text.format(
        weights=KEEPING,
        horizon=40,
        direction="forward",
        activations="Affine",
        lengths="lengths",
        more="calls: 2",
    )
    (error,) = make_vectors(small_suite(text).entries)

    assert vector.record.horizon == VisibleSteps(40, 40)
    assert "call 2: claims a horizon of 40 steps, but its longest sequence has 20" in str(error)
