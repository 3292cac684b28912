"""How far two right outputs may be apart."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from kernels.random_cases import GATES, random_case
from kernels.relations import call_of, call_of_case
from support.sound_variants import SOUND, VARIANTS

from rnncli.judging.comparing.verdict import Verdict
from rnncli.operators import evaluate
from rnncli.packs.vector import Attempt, Status
from rnncli.verifying.relations import distances
from rnncli.verifying.relations.distances import DERIVED, PERTURBED, closeness_of
from rnncli.verifying.relations.judging import Asker, judge_case
from rnncli.verifying.relations.relations import RELATIONS

SIZES = (12, 5, 9, 40)


def ordinary(cell, seed=0):
    """A node of a middle size in float32 without NaN."""
    for k in range(seed, seed + 200):
        case = random_case(cell, k, SIZES)
        floats = case.inputs["X"].dtype == np.float32 and np.abs(case.inputs["X"]).max() < 6
        if floats and "activations" not in case.attributes and "clip" not in case.attributes:
            return call_of_case(case, f"{cell}_{k}")
    raise AssertionError(cell)


def outputs_of(call):
    """The right outputs."""
    return evaluate(call.row, call.inputs, attributes=call.attributes, outputs=call.outputs)


@pytest.mark.parametrize("cell", GATES)
def test_the_cheaper_bound_is_about_as_wide(cell, monkeypatch):
    """Neither so tight that a right kernel fails, nor so wide that a bug passes."""
    call = ordinary(cell)
    outputs = outputs_of(call)
    derived = closeness_of(call, outputs, "standard")
    monkeypatch.setattr(distances, "DERIVABLE", 0)
    perturbed = closeness_of(call, outputs, "standard")
    ratios = np.concatenate(
        [(perturbed.allowed[n] / derived.allowed[n]).ravel() for n in call.outputs]
    )
    finite = ratios[np.isfinite(ratios)]

    assert (DERIVED, PERTURBED) == (derived.kind, perturbed.kind)
    assert finite.size
    assert 0.5 < np.percentile(finite, 1)
    assert np.percentile(finite, 99) < 30


@pytest.mark.parametrize("cell", GATES)
def test_padding_must_match_exactly(cell, monkeypatch):
    """By either bound."""
    call = ordinary(cell)
    ragged = call.with_input("lengths", np.arange(call.sizes["batch_size"]) + 1)
    outputs = outputs_of(ragged)
    if "Y" not in outputs:
        pytest.skip("Y is not asked for")
    for most in (distances.DERIVABLE, 0):
        monkeypatch.setattr(distances, "DERIVABLE", most)
        allowed = ragged.node.canonical("Y", closeness_of(ragged, outputs, "standard").allowed["Y"])

        assert (allowed[ragged.lengths[0] :, :, 0] == 0).all()
        assert (allowed[: ragged.lengths[0], :, 0] > 0).all()


def test_another_reading_is_granted_more():
    """Beside a trajectory that is not its own the bounds of single elements mean nothing."""
    call = ordinary("GRU")
    right = outputs_of(call)
    other = {name: values * 0.5 for name, values in right.items()}
    own, granted = (closeness_of(call, each, "standard").allowed for each in (right, other))

    for name in right:
        assert (granted[name] >= np.nanmax(own[name]) * 0.999)[own[name] > 0].all()


def test_a_stricter_profile_grants_less():
    """Bounds are those of the profile."""
    call = ordinary("LSTM")
    outputs = outputs_of(call)
    strict, standard = (
        closeness_of(call, outputs, name).allowed for name in ("strict", "standard")
    )

    for name in outputs:
        assert (strict[name] <= standard[name]).all()
        assert strict[name].max() < 0.6 * standard[name].max()


class VariantSubject:
    """A sound variant as a subject."""

    def __init__(self, name):
        self.name = name

    def attempt(self, vector):
        """Answer."""
        with np.errstate(all="ignore"):
            return Attempt(Status.RAN, VARIANTS[self.name](vector))


# Relations that change the order of sums, or what is stored on the way.
REORDERING = ("singles", "units-permuted", "inputs-permuted", "units-added", "split")


@pytest.mark.parametrize("derivable", [distances.DERIVABLE, 0], ids=[DERIVED, PERTURBED])
@pytest.mark.parametrize("name", SOUND)
def test_sound_variants_keep_relations(name, derivable, monkeypatch):
    """Within either bound, whatever the order of their sums and the formulas of their functions."""
    monkeypatch.setattr(distances, "DERIVABLE", derivable)
    asker = Asker(VariantSubject(name), lambda: None, "one thread")
    relations = [RELATIONS[each] for each in REORDERING]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calls = [ordinary("LSTM", 3), call_of("GRU", 5)]
        cases = [judge_case([call], relations, asker, "standard") for call in calls]
        found = [verdict for case in cases for _, verdict in case]

    assert [] == [verdict for verdict in found if verdict.fails]
    assert any(verdict.verdict is Verdict.PASS for verdict in found)
