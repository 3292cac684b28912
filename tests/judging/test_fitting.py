"""Claims about requirements that fit answers: the simplest that takes what was taken, no more."""

from support.tables import every

from rnncli.judging.fitting import fits, shown_value, simplest, term_of

SETS = [["Y"], ["Y_h"], ["Y_c"], ["Y", "Y_h"], ["Y", "Y_c"], ["Y_h", "Y_c"], ["Y", "Y_h", "Y_c"]]
ANSWERS = {
    # The requirement -> field, what was taken, and what was refused
    "": ("hidden_size", [1, 2], []),
    "hidden_size<=3": ("hidden_size", [1, 2, 3], [4, 5, 100]),
    "hidden_size>=16": ("hidden_size", [16, 17, 100], [1, 15]),
    "hidden_size%16=0": ("hidden_size", [16, 32, 48, 1024], [1, 8, 17, 31]),
    "hidden_size%2=1": ("hidden_size", [1, 3, 5, 17, 31], [2, 8, 48]),
    "hidden_size%16=0,hidden_size<=256": (
        "hidden_size",
        [16, 32, 48, 64, 256],
        [1, 2, 17, 257, 512],
    ),
    "batch_size=1|4": ("batch_size", [1, 4], [2, 3, 5, 7, 8, 16]),
    "batch_size=1": ("batch_size", [1], [2, 3]),
    "version<=14": ("version", [1, 7, 14], [22]),
    "layout=0": ("layout", [0], [1]),
    "clip=never": ("clip", ["never"], [2.5]),
    "dtype=float32": ("dtype", ["float32"], ["float16", "float64"]),
    "dtype!=bfloat16": ("dtype", ["float32", "float16", "float64"], ["bfloat16"]),
    "inputs!=P": ("inputs", [[], ["B"]], [["P"], ["B", "P"]]),
    "inputs>=B": ("inputs", [["B"], ["B", "initial_h"]], [[], ["initial_h"]]),
    "inputs==none": ("inputs", [[]], [["B"], ["P"]]),
    "inputs==none|initial_h+initial_c": (
        "inputs",
        [[], ["initial_h", "initial_c"]],
        [["initial_h"], ["initial_c"]],
    ),
    "outputs!=Y_c": ("outputs", [SETS[0], SETS[1], SETS[3]], [*SETS[4:], SETS[2]]),
    "outputs==Y": ("outputs", SETS[:1], SETS[1:]),
    "outputs==Y|Y_h": ("outputs", SETS[:2], SETS[2:]),
    "activations==Sigmoid+Tanh": ("activations", [["Sigmoid", "Tanh"]], [["Sigmoid"], ["Relu"]]),
}


@every("requirement, answers", ANSWERS.items(), ids=str)
def test_the_simplest_requirement_fits_all_answers(requirement, answers):
    """What was taken meets it, what was refused does not, and a reader understands it."""
    field, taken, refused = answers

    assert simplest(field, taken, refused) == requirement
    assert not requirement or fits(requirement, field, taken, refused)


def test_what_was_not_answered_limits_nothing():
    """A crash is among the values of a list, as it was not refused."""
    assert simplest("dtype", ["float32"], ["float16"], ["float64"]) == "dtype!=float16"
    assert (
        simplest("direction", ["forward"], ["reverse"], ["bidirectional"]) == "direction!=reverse"
    )
    assert simplest("batch_size", [1, 4], [2, 3, 5, 7, 16], [8]) == "batch_size=1|4|8"


def test_values_are_written_as_requirements_have_them():
    """Sets by +, of which the empty one has a name."""
    assert [term_of("outputs", ["Y", "Y_h"]), term_of("clip", 2.5)] == [
        "outputs==Y+Y_h",
        "clip=2.5",
    ]
    assert [shown_value([]), shown_value(0)] == ["none", "0"]
