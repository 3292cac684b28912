"""Faults of what runs a model in a stream: each is planted in several models, found and named."""

import onnx
import pytest
from support.real_models import DATA
from support.streamed_layers import Wrapper, layers

import rnncli

SILERO = DATA / "silero-vad/silero_vad_16k_op15.onnx"
GTCRN = DATA / "gtcrn/gtcrn_simple.onnx"
PACKED = DATA / "exports/lstm_packed_bi_ts.onnx"
WINDOW = {"dims": {"sequence": 576}}
FRAME = """<ir_version: 8, opset_import: ["": 17]>
frame (float[1,1,5] x, float[1,1,3] h_in, float[1,1,3] c_in)
    => (float[1,1,1,3] y, float[1,1,3] h_out, float[1,1,3] c_out) {
    y, h_out, c_out = LSTM <hidden_size = 3> (x, W, R, , , h_in, c_in)
}"""


def unread(name, *some, part=...):
    """Units of a state, or of a part of it, are read as 0."""

    def change(inputs, _):
        inputs[name] = inputs[name].copy()
        inputs[name][part][..., some] = 0

    return Wrapper(inputs=change)


def as_it_came(begin, end, unit):
    """A unit of a state is returned as it came."""

    def change(outputs, inputs, _):
        outputs[end][..., unit] = inputs[begin][..., unit]

    return Wrapper(outputs=change)


def of_the_call_before(end, unit):
    """A unit of a state is that of the call before of the same shape."""

    def change(outputs, _, kept):
        new = outputs[end].copy()
        outputs[end][..., unit] = kept.get(new.shape, new)[..., unit]
        kept[new.shape] = new

    return Wrapper(outputs=change)


def first_result():
    """Whatever is asked, the outputs are those of the first call of these shapes."""
    return Wrapper(
        outputs=lambda outputs, inputs, kept: kept.setdefault(
            tuple(values.shape for values in inputs.values()), outputs
        )
    )


def exchanged(one, other):
    """Two states are fed to each other's input."""
    return Wrapper(inputs=lambda given, _: given.update({one: given[other], other: given[one]}))


def never_reset(begin, end):
    """A state is that after the call before of the same shape, whatever is given."""

    def change(inputs, kept):
        last = kept.get(begin, inputs[begin])
        inputs[begin] = last if last.shape == inputs[begin].shape else inputs[begin]

    return Wrapper(inputs=change, outputs=lambda made, _, kept: kept.update({begin: made[end]}))


def stale_beginning(name):
    """An output begins as that of the call before, where it has another length."""

    def change(outputs, _, kept):
        new, last = outputs[name], kept.get(name, outputs[name])
        kept[name] = new.copy()
        if last.shape != new.shape:
            both = tuple(slice(0, min(sizes)) for sizes in zip(last.shape, new.shape, strict=True))
            new[both] = last[both]

    return Wrapper(outputs=change)


def saved(folder, model):
    """Return the path of a model, which is written if it is none yet."""
    if not isinstance(model, onnx.ModelProto):
        return model
    onnx.save(model, folder / "m.onnx")
    return folder / "m.onnx"


# The model, options, what is planted, and the relations that break with what each says.
PLANTED = {
    "a unit of h is not read": (
        layers,
        {},
        lambda: unread("h_in", 1),
        dict.fromkeys(("again", "chunks-7", "states-used"), "state not used: unit 1 of h_in"),
    ),
    "two units of h are not read": (
        layers,
        {},
        lambda: unread("h_in", 0, 1),
        {"states-used": "state not used: units 0 to 1 of h_in"},
    ),
    "a unit of one frame's state is not read": (
        lambda: layers(FRAME),
        {},
        lambda: unread("c_in", 2),
        dict.fromkeys(("float64", "again", "states-used"), "state not used: unit 2 of c_in"),
    ),
    "a unit of a window's state is not read": (
        lambda: SILERO,
        WINDOW,
        lambda: unread("state", 37),
        dict.fromkeys(("float64", "states-used"), "state not used: unit 37 of state"),
    ),
    "a unit of c is not returned": (
        layers,
        {},
        lambda: as_it_came("c_in", "c_out", 2),
        {
            "states-renewed": "state not returned: c_out, which c_in continues, is returned as it"
            " came in unit 2"
        },
    ),
    "a unit of h, which is beside c, is not read": (
        lambda: SILERO,
        WINDOW,
        lambda: unread("state", 5, part=0),
        {"states-used": "state not used: unit 5 of state[0]"},
    ),
    "a unit of a window's state is not returned": (
        lambda: SILERO,
        WINDOW,
        lambda: as_it_came("state", "stateN", 37),
        {"states-renewed": "stateN, which state continues, is returned as it came in unit 37"},
    ),
    "a unit of c is that of the call before": (
        layers,
        {},
        lambda: of_the_call_before("c_out", 2),
        {
            "again": "stale buffer: the 1 wrong element of c_out are those of the call before it",
            "states-renewed": "c_out, which c_in continues, is the same after other inputs in unit"
            " 2",
        },
    ),
    "the first result is given for each shape": (
        layers,
        {},
        first_result,
        {"again": "stale result: the outputs are those of the call before, although the inputs"},
    ),
    "the first result is given for a frame": (
        lambda: layers(FRAME),
        {},
        first_result,
        {"again": "stale result: the outputs are those of the call before, although the inputs"},
    ),
    "two states are exchanged": (
        layers,
        {},
        lambda: exchanged("h_in", "c_in"),
        {
            "chunks-2": "pair swapped: outputs are right if h_in continues c_out, and c_in"
            " continues h_out"
        },
    ),
    "one of several states is not reset": (
        lambda: GTCRN,
        {},
        lambda: never_reset("tra_cache", "tra_cache_out"),
        {
            "again": "reset missing: the call begins with tra_cache as the call before it left it,"
            " not as it is given"
        },
    ),
    "h is not reset": (
        layers,
        {},
        lambda: never_reset("h_in", "h_out"),
        {
            "again": "reset missing: the call begins with h_in as the call before it left it, not"
            " as it is given"
        },
    ),
    "a buffer of another length": (
        lambda: PACKED,
        {},
        lambda: stale_beginning("153"),
        {"sizes": "stale buffer: the 40 wrong elements of 153 are those of the call before it"},
    ),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_faults_are_found_and_named(tmp_path, fault):
    """By the relations of states and sessions alone, whatever the model."""
    make, options, plant, sentences = PLANTED[fault]
    report = rnncli.stream(saved(tmp_path, make()), plant(), relation=[*sentences], **options)
    found = {case.id.partition("::")[2]: case.details for case in report.cases}

    assert {name for name, each in found.items() if each.fails} == sentences.keys(), found
    for name, sentence in sentences.items():
        assert sentence in found[name].message


def test_what_is_planted_in_is_right(tmp_path):
    """So faults are those of what is planted."""
    assert rnncli.stream(saved(tmp_path, layers()), Wrapper()).exit_code == 0


SCALED = FRAME.replace("[1,1,", "[1,N,").replace(
    "    y,", "    s = Constant <value = float[3] {3000000.0, 1.0, 1.0}> ()\n    y0,"
)
FACTORS = SCALED.replace("\n}", "\n    y = Mul (y0, s)\n}")
SHIFTED = SCALED.replace("{3000000.0, 1.0, 1.0}", "{100000.0, 100000.0, 100000.0}").replace(
    "\n}", "\n    y1 = Add (y0, s)\n    y = Sub (y1, s)\n}"
)


@pytest.mark.parametrize(
    ("text", "wrong", "verdict", "said"),
    [
        (FACTORS, lambda y: y * [1, 0, 0], "differs", ", 1]: -0, and transformed"),
        (SHIFTED, lambda y: y + 0.05, "skipped", "36 of 36 of y cannot be judged: zeros might"),
    ],
    ids=["channels of other sizes", "a large number added and taken away"],
)
def test_bounds_wider_than_values_pass_nothing(tmp_path, text, wrong, verdict, said):
    """Channels have bounds of their own; what is lost in rounding is not judged, and said."""
    change = Wrapper(outputs=lambda made, *_: made.update(y=wrong(made["y"]).astype("f")))
    report = rnncli.stream(saved(tmp_path, layers(text)), change, relation=["float64"])

    (case,) = report.cases
    assert case.details.verdict == verdict
    assert said in case.details.message
