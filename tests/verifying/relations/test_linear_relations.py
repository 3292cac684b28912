"""Relations of linear recurrences hold for what is sound, and see its bugs."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
from kernels.relations import KernelSubject
from support.linear_kernels import CHUNKED, CONVOLUTIONS, SEQUENTIAL
from support.linear_nodes import CONTRIB, INPUTS, random_nodes
from support.shipped import suite
from support.small_linear import attention, call_of, convolution
from support.tables import every

from rnncli.judging.comparing.verdict import Verdict
from rnncli.mutants.catalogue import mutant_named
from rnncli.operators import evaluate, operator_named
from rnncli.packs.vector import Attempt, Status
from rnncli.verifying.node_call import NodeCall
from rnncli.verifying.relations import distances
from rnncli.verifying.relations.distances import DERIVED, PERTURBED, closeness_of
from rnncli.verifying.relations.judging import AnsweredCall, Asker, judge_case
from rnncli.verifying.relations.relations import RELATIONS, relations_of

BOTH = ("output", "present_state")
INTEGERS, FLOATS = (f"tflite.UNIDIRECTIONAL_SEQUENCE_LSTM{form}" for form in ("", "_PROJECTED"))


class Kernel:
    """What runs a recurrence, as a subject."""

    def __init__(self, run):
        self.run = run

    def attempt(self, vector):
        """Answer."""
        with np.errstate(all="ignore"):
            result = self.run(vector.node.recurrence(vector.inputs))
        return Attempt(Status.RAN, vector.node.outputs_of(result))


def backend(name, compute="float64"):
    """A backend of this package, in this process."""

    def session(operator, attributes, inputs, outputs):
        asked = {"attributes": attributes, "outputs": outputs}
        return evaluate(operator, inputs, **asked, backend=name, compute=compute)

    return KernelSubject(session)


def judged(subject, call, *names, profile="standard"):
    """The verdicts of some relations, or of all that are asked of the operator, by name."""
    asker = Asker(subject, lambda: subject)
    rows = [RELATIONS[name] for name in names] or relations_of(call.row)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dict(judge_case([call], rows, asker, profile))


@cache
def calls(count=48):
    """Random nodes of every form and type."""
    return [
        NodeCall(f"random_{k}", n.operator, n.attributes, n.inputs, BOTH, dict(row.readings))
        for k, n in enumerate(random_nodes(count, 3, (*INPUTS, *CONTRIB)))
        for row in [operator_named(n.operator)]
    ]


@pytest.mark.parametrize(("name", "compute"), [("reference", "float64"), ("numpy", "native")])
def test_backends_keep_every_relation(name, compute):
    """Of ONNX's and ONNX Runtime's, in all types; each relation that can apply to one does."""
    found = [pair for call in calls() for pair in judged(backend(name, compute), call).items()]
    passing = {name for name, verdict in found if verdict.verdict is Verdict.PASS}

    assert [] == [pair for pair in found if pair[1].fails]
    assert {name for name, _ in found} - passing == {
        *("padding", "nan-padding", "longer", "longer-259", "cut", "units-permuted"),
        *("units-added", "units-added-149", "inputs-permuted", "inputs-added"),
        *("inputs-added-293", "reversed", "directions", "last-state", "outputs", "layout"),
    }


SOUND = {
    **{name: (kernel, attention, "standard") for name, kernel in SEQUENTIAL.items()},
    **{name: (kernel, attention, "chunked") for name, kernel in CHUNKED.items()},
    **{name: (kernel, convolution, "standard") for name, kernel in CONVOLUTIONS.items()},
}


@pytest.mark.parametrize("derivable", [distances.DERIVABLE, 0], ids=[DERIVED, PERTURBED])
@every("name", SOUND)
def test_sound_kernels_keep_every_relation(name, derivable, monkeypatch):
    """Within either bound, in orders and formulas of their own; chunks at once by their profile."""
    monkeypatch.setattr(distances, "DERIVABLE", derivable)
    kernel, make, profile = SOUND[name]
    found = [
        verdict
        for dtype in ("float32", "float16")
        for verdict in judged(
            Kernel(kernel.run), make(seq_length=37, dtype=dtype), profile=profile
        ).values()
    ]

    assert [] == [verdict for verdict in found if verdict.fails]
    assert any(verdict.verdict is Verdict.PASS for verdict in found)


def test_perturbed_bounds_are_about_as_wide():
    """Neither so tight that a right kernel fails, nor so wide that a bug passes."""
    call = attention(seq_length=40, key_size=16)
    outputs = evaluate(call.row, call.inputs, attributes=call.attributes)
    narrow = closeness_of(call, outputs, "standard")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distances, "DERIVABLE", 0)
        wide = closeness_of(call, outputs, "standard")
    ratios = np.concatenate([(wide.allowed[n] / narrow.allowed[n]).ravel() for n in BOTH])

    assert (narrow.kind, wide.kind) == (DERIVED, PERTURBED)
    assert np.percentile(ratios, 1) > 0.4
    assert np.percentile(ratios, 99) < 30


@pytest.mark.parametrize("states", ["float32", "float16", "bfloat16"])
def test_a_state_may_be_rounded_between_calls(states):
    """Steps in calls of their own are granted a rounding each, of the type of states alone."""
    call = attention(seq_length=60, states_dtype=states, readings={"state-round": "end"})
    split = judged(backend("numpy"), call, "split", "steps")
    asked = AnsweredCall(call, backend("numpy").attempt(call.vector()).outputs, "standard")
    ratio = asked.closeness_in_calls.allowed["output"] / asked.closeness.allowed["output"]

    assert {verdict.verdict for verdict in split.values()} == {Verdict.PASS}
    assert (np.nanmedian(ratio) > 3) == (states != "float32")


def readers(operator):
    """The relations of an operator that others are not asked."""
    gated = relations_of(operator_named("LSTM-14"))
    return {row.name for row in relations_of(operator_named(operator)) if row not in gated}


def test_each_operator_is_asked_its_own():
    """Gated cells have neither heads nor channels; the rest is asked of all."""
    of_both = {"steps", "continued", "continued-259", "nan-sequences", "scaled"}
    of_heads = {"heads", "heads-permuted", "heads-repeated", "nan-heads"}
    of_channels = {name.replace("heads", "channels") for name in of_heads}

    assert readers("LSTM-22") == set()
    assert readers("LinearAttention-27") == of_both | of_heads | {
        "columns-permuted",
        "rows-permuted",
    }
    assert readers("CausalConvWithState-27") == of_both | of_channels
    assert readers(INTEGERS) == {"steps", "continued", "continued-259"}
    assert readers(FLOATS) == of_both - {"scaled"}


@every("entry", suite("tflite_float").entries[::5])
def test_an_lstm_with_a_projection_keeps_every_relation(entry):
    """It is no linear recurrence, although it multiplies X itself."""
    found = judged(backend("numpy"), NodeCall.of_case(entry.case(), "inputs"))

    assert {verdict.verdict for verdict in found.values()} == {Verdict.PASS, Verdict.SKIPPED}


@every("entry", suite("tflite").entries[::9])
def test_integers_are_equal_in_every_relation(entry):
    """Not within a tolerance: another unit of the last place fails."""
    call = NodeCall.of_case(entry.case(), "initializers")
    subject = backend("numpy")
    found = judged(subject, call)
    outputs = subject.attempt(call.vector()).outputs
    outputs["output"] += outputs["output"].dtype.type(1)

    assert {verdict.verdict for verdict in found.values()} == {Verdict.PASS, Verdict.SKIPPED}
    assert not closeness_of(call, outputs, "standard").allowed["output"].any()


SEEN = {
    "past-state-ignored": "split steps",
    "past-state-of-batch-before": "singles tiles split steps",
    "past-state-heads-before-batch": "tiles heads",
    "present-state-of-step-before": "split steps",
    "nan-of-a-head-in-all": "nan-heads",
    "nan-of-a-sequence-in-all": "nan-sequences",
    "groups-tiled": "heads heads-permuted",
    "state-transposed-for-query": "columns-permuted rows-permuted",
    "decay-of-first-key": "rows-permuted",
    "beta-of-head-0": "heads heads-permuted",
    "last-head-not-computed": "heads heads-permuted",
    "state-saturates-in-float16": "scaled",
    "partial-chunk-dropped-16": "continued steps",
    "chunk-state-not-carried-16": "split steps",
    "past-window-off-by-one": "split steps",
    "present-window-zero-of-short-calls": "steps",
    "taps-of-channel-0": "channels channels-permuted",
    "nan-of-a-channel-in-all": "nan-channels",
    "channels-mixed": "channels nan-channels",
    "shared-queries-tiled": "heads heads-repeated",
    "shared-keys-tiled": "heads heads-repeated",
    "dilation-not-in-state": "split steps",
    "single-step-ignores-dilation": "steps",
}
APART = {"seq_length": 9, "batch_size": 3, "channels": 4, "kernel_size": 3, "dilation": 2}


@every("bug", SEEN)
def test_bugs_are_seen(bug):
    """Without any expected output, each by the relations that are there for its kind."""
    call = convolution()
    if "LinearAttention" in mutant_named(bug).cells:
        heads = {"q_num_heads": 6, "kv_num_heads": 3, "value_size": 3}
        call = attention(seq_length=21, **heads, decay_form="per_key")
    if "shared" in bug:
        heads = {"q_num_heads": 2, "kv_num_heads": 6, "key_form": "shared"}
        call = attention(op="com.microsoft.LinearAttention", **heads)
    if "dilation" in bug:
        call = call_of("com.microsoft.CausalConvWithState", APART, inputs={"past_state": "normal"})
    if "saturates" in bug:
        call = call.with_input("value", call.inputs["value"] * 70000)
    found = judged(backend(f"mutant:{bug}"), call)
    seen = {name for name, verdict in found.items() if verdict.verdict is Verdict.DIFFERS}

    assert {*SEEN[bug].split()} <= seen


def test_a_place_is_told_by_step_sequence_head_and_column():
    """The first step that differs, whatever the order of axes."""
    call = attention()
    wrong = np.zeros(call.empty_output("output").shape, np.bool_)
    wrong[0, 3, 1] = wrong[2, 1, 5] = True

    assert call.place("output", wrong) == ((2, 1, 5), "t 1, sequence 2, head 2, column 1")
