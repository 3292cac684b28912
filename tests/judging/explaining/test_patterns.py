"""Claims about patterns: what failures have in common, and where they are wrong."""

from dataclasses import replace

import numpy as np
from support.judged import core
from support.shipped import vectors

from rnncli.judging.comparing.margins import MeasuredAttempt
from rnncli.judging.explaining.patterns import (
    Features,
    Places,
    conditions,
    features_of,
    patterns_of,
    places_of,
)
from rnncli.judging.explaining.single_steps import steps_of


def cases(*words, hidden=(), count=1):
    """Cases with some words, and with hidden sizes."""
    sizes = [
        dict.fromkeys(("seq_length", "batch_size", "input_size"), 3) | {"hidden_size": h}
        for h in hidden or [5] * count
    ]
    return [Features({word: word for word in words}, size) for size in sizes]


def sentences(failing, passing, places=()):
    """The patterns in words."""
    return [each.sentence for each in patterns_of(failing, passing, places)]


def test_what_all_failures_have_and_few_others_is_a_pattern():
    """With its counts."""
    failing, passing = cases("clip", "P", count=4), [*cases("P", count=5), *cases(count=9)]

    assert sentences(failing, passing) == ["all 4 failures occur with clip; none of 14 passes does"]


def test_two_conditions_are_a_pattern_where_one_leaves_too_many():
    """Either alone has many cases that pass."""
    failing = cases("clip", "P", count=4)
    passing = [*cases("P", count=8), *cases("clip", count=8)]

    assert sentences(failing, passing) == [
        "all 4 failures occur with clip and with P; none of 16 passes does"
    ]


def test_sizes_beyond_an_edge_are_a_pattern():
    """The edge lies between the largest that passes and the smallest that fails."""
    failing, passing = cases(hidden=[17, 18, 33]), cases(hidden=[1, 5, 8, 15, 16, 16, 7, 3])
    (found,) = patterns_of(failing, passing, ())

    assert found.topics == ("units",)
    assert found.where == "where hidden_size > 16"


def test_what_chance_gives_is_no_pattern():
    """One failure, or what most passing cases have, too."""
    assert sentences(cases("clip"), cases("P", count=30)) == []
    assert sentences(cases("clip", count=3), [*cases("clip", count=9), *cases()]) == []


def places(*wrong, axis="units", size=20):
    """Cases that are wrong at some indices of an axis."""
    return [Places({axis: (indices, size)}, (("Y",), 1)) for indices in wrong]


def test_units_from_an_edge_on_are_a_pattern():
    """Of steps that are wrong by themselves."""
    assert sentences((), (), places((16, 17), (18, 19), (16, 19))) == [
        "units are wrong from unit 16 on, in 3 cases"
    ]
    assert sentences((), (), places((0, 17), (18, 19), (4, 19))) == []


def test_of_one_failure_a_few_places_are_told():
    """Nothing else is known of it."""
    assert sentences((), (), places((19,))) == ["only the last unit is wrong, in 1 case"]
    assert sentences((), (), places(tuple(range(12, 20)))) == [
        "units are wrong from unit 12 on, in 1 case"
    ]


def test_the_first_wrong_steps_may_have_a_pattern_that_all_steps_lack():
    """Errors spread from there."""
    spread = [
        replace(each, first={"units": ((18, 19), 20)}) for each in places((0, 5, 18, 19), (1, 19))
    ]

    assert sentences((), (), spread) == [
        "units are wrong from unit 18 on, in 2 cases, at the first wrong step"
    ]


def test_outputs_are_a_pattern_if_any_differs():
    """Where signals alone are wrong, none does."""
    some, none = Places(outputs=(("Y_h",), 3)), Places(outputs=((), 3))

    assert sentences((), (), [some] * 3) == ["only Y_h differs, in 3 cases"]
    assert sentences((), (), [none] * 3) == []


def test_the_last_of_an_axis_is_a_pattern():
    """Whatever its size."""
    assert sentences((), (), [*places((19,)), *places((4,), size=5)]) == [
        "only the last unit is wrong, in 2 cases"
    ]


def test_conditions_hold_in_some_cases_only():
    """What all have tells nothing."""
    found = {each.phrase for each in conditions([*cases("clip", "P"), *cases("P")])}

    assert found == {"with clip", "without clip"}


def test_attributes_are_features_by_their_roles():
    """WebNN's layout is an order of gates; its steps and hiddenSize say nothing."""
    (vector,) = (each for each in vectors("webnn") if each.id == "webnn_gru_layout_rzn")
    words = features_of(vector).words

    assert "layout" in words
    assert not {"steps", "hiddenSize", "direction"} & words.keys()


def test_features_are_what_a_case_has():
    """Attributes, inputs, what its lengths are."""
    words = features_of(core()["gru_14_ragged"]).words

    assert {"sequence_lens", "padding", "Tanh", "Y requested", "dtype float32"} <= words.keys()
    assert words["padding"] == "lengths"
    assert "clip" not in words
    assert "padding in all sequences" in words
    assert "padding in all sequences" not in features_of(core()["gru_14_reversed"]).words


def test_places_are_those_of_steps_wrong_by_themselves():
    """One unit of one sequence in one step, whatever follows from it."""
    vector = core()["rnn_14_initial"]
    got = {name: values.copy() for name, values in vector.answers.outputs.items()}
    got["Y"][1, 0, 2, 3] += 0.01  # the next step does not follow from it
    measured = MeasuredAttempt(vector, got)
    found = places_of(measured, steps_of(measured))

    assert found.outputs == (("Y",), 2)
    assert 3 in found.wrong["units"][0]
    assert found.wrong["rows"] == ((2,), 3)


def test_padding_alone_is_a_place_of_its_own():
    """Nothing that was computed is wrong."""
    vector = core()["gru_14_ragged"]
    got = {name: values.copy() for name, values in vector.answers.outputs.items()}
    lengths = vector.recurrence.lengths
    row = int(np.argmin(lengths))
    got["Y"][lengths[row] :, :, row] = 1
    measured = MeasuredAttempt(vector, got)
    found = places_of(measured, steps_of(measured))

    assert found.only_padding
    assert sentences((), (), [found]) == ["only padding of Y is wrong, in 1 case"]


def wrong(axis, *known):
    """Places of cases of which some indices of an axis are wrong, of how many."""
    return [Places({axis: (tuple(indices), size)}) for indices, size in known]


def test_what_blocks_leave_over_is_a_pattern():
    """At several sizes; at one, an edge says as much."""
    tails = wrong("units", ([16, 17], 18), ([8, 12], 13), ([8], 9))
    bodies = wrong("rows", (range(4), 5), (range(8), 11))

    assert sentences([], [], tails) == ["only units after whole blocks of 8 are wrong, in 3 cases"]
    assert sentences([], [], [*bodies, *bodies]) == [
        "only sequences in whole blocks of 4 are wrong, in 4 cases"
    ]


def test_indices_between_two_edges_are_a_pattern():
    """Units 16 to 20 of 40."""
    found = wrong("units", (range(16, 21), 40), ((16, 20), 33))

    assert sentences([], [], found) == ["only units 16 to 20 are wrong, in 2 cases"]


def test_a_few_indices_that_are_the_same_in_all_cases_are_a_pattern():
    """Where steps 16 and 32 are wrong, a case of 17 steps has the first alone."""
    found = wrong("steps", ([16, 32], 40), ([16], 17), ([16], 20))

    assert sentences([], [], found) == ["only steps 16 and 32 are wrong, in 3 cases"]


def test_conditions_that_are_as_good_are_all_said():
    """Failures with clip that have many units as well; either may be what it takes."""
    failing = [replace(each, words={"clip": "clip"}) for each in cases(hidden=[17, 18, 33])]
    passing = cases(hidden=[1, 5, 8, 15, 16, 16, 7, 3])

    assert sentences(failing, passing) == [
        "all 3 failures occur with clip; none of 8 passes does",
        "all 3 failures occur where hidden_size > 16; none of 8 passes does",
    ]
