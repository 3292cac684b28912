"""Relations hold for what is right, and each is broken by what it is there to find."""

from __future__ import annotations

import random
import warnings
from functools import cache

import numpy as np
import pytest
from kernels.bug import TUNING
from kernels.random_cases import GATES
from kernels.relations import KernelSubject, call_of, caught_by, failures
from kernels.switch_table import BUGS, KERNELS
from support.quantised_lstm import FORMS, LSTM, node
from support.second_calls import Process, right
from support.small_linear import attention, convolution
from support.tables import every
from support.valid_nodes import valid_node

from rnncli.judging.comparing.verdict import Verdict
from rnncli.operators import evaluate, operator_named
from rnncli.packs.vector import Attempt, Status
from rnncli.talk.words import counted
from rnncli.verifying.node_call import H, NodeCall
from rnncli.verifying.relations.judging import BIT, Asker, judge_case
from rnncli.verifying.relations.relations import RELATIONS, relations_of

CASES = 4


def subject_of(backend, compute):
    """A backend of this package, in this process."""

    def session(operator, attributes, inputs, outputs):
        asked = {"attributes": attributes, "outputs": outputs}
        return evaluate(operator, inputs, **asked, backend=backend, compute=compute)

    return KernelSubject(session)


def judged(subject, call, *names):
    """The verdicts of some relations, or of all, by name; "" is the case itself."""
    asker = Asker(subject, lambda: subject)
    relations = [RELATIONS[name] for name in names] or relations_of(call.row)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dict(judge_case([call], relations, asker, "standard"))


@cache
def calls():
    """Random nodes of many sizes and features."""
    return [call_of(cell, seed) for cell in GATES for seed in range(CASES)]


@pytest.mark.parametrize("operator", ["webnn.gru", "webnn.lstm", "webnn.gruCell", "webnn.lstmCell"])
def test_relations_hold_for_webnn(operator):
    """Those that apply to any node do; steps and hiddenSize follow the sizes of a changed call."""
    attributes, inputs = valid_node(operator, direction="bidirectional")
    row = operator_named(operator)
    outputs = tuple(output.name for output in row.outputs)
    call = NodeCall(operator, operator, attributes, inputs, outputs, row.readings)
    verdicts = judged(subject_of("numpy", "float64"), call)
    found = {name: verdict.verdict for name, verdict in verdicts.items()}

    assert set(found.values()) == {Verdict.PASS, Verdict.SKIPPED}
    assert found["units-added"] is Verdict.PASS
    assert found["longer"] is Verdict.SKIPPED
    assert operator.endswith("Cell") or found["split"] is Verdict.PASS


@pytest.mark.parametrize("name", ["units-added", "units-added-149"])
def test_units_of_weight_zero_are_not_added_where_an_input_is_infinite(name):
    """They would be 0 times infinity."""
    call = plain("GRU-14")
    call.inputs["X"][0, 0, 0] = np.inf

    verdict = judged(subject_of("numpy", "float64"), call, name)[name]

    assert verdict.verdict is Verdict.SKIPPED
    assert "0 times infinity is NaN" in verdict.message


@pytest.mark.parametrize(("backend", "compute"), [("reference", "float64"), ("numpy", "native")])
def test_backends_keep_every_relation(backend, compute):
    """On random nodes, of which every relation applies to some, but those whose padding is NaN."""
    subject = subject_of(backend, compute)
    found = [pair for call in calls() for pair in judged(subject, call).items()]

    assert [] == [pair for pair in found if pair[1].fails]
    passing = {name for name, v in found if v.verdict is Verdict.PASS}
    asked = {row.name for call in calls() for row in relations_of(call.row)}
    assert asked - passing == {"nan-padding"}
    unchanged = {v.message for name, v in found if name == "nan-padding" and "shows" in v.message}
    assert unchanged == {"nan-padding shows nothing: its calls are the case's own"}


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_quantised_nodes_keep_those_that_apply_to_them(form):
    """Where values share a scale, others would be broken by what is right."""
    attributes, inputs = node(form)
    outputs = ("Y", "Y_h", "Y_c")
    call = NodeCall("quantised", LSTM.name, attributes, inputs, outputs, LSTM.readings)
    found = judged(subject_of("numpy", "float64"), call)

    assert not any(verdict.fails for verdict in found.values())
    for name, row in RELATIONS.items():
        if not row.quantised:
            assert found[name].verdict is Verdict.SKIPPED
            assert "share a scale" in found[name].message
    assert found["sequences-permuted"].verdict is Verdict.PASS


@pytest.mark.parametrize("kernel", KERNELS)
def test_right_kernels_keep_every_relation(kernel):
    """No alarm for the kernels that planted bugs are measured with."""
    assert [] == [*failures(KERNELS[kernel](), GATES, CASES)]


def test_first_difference_is_named():
    """By time, direction, sequence and unit, with both values and the bound."""
    call = plain("LSTM-14", T=3, N=2)

    class ThirdStepOfTheSecond:
        def attempt(self, vector):
            outputs = right(vector)
            if vector.record.sizes["batch_size"] == 1:
                outputs["Y"] = outputs["Y"].copy()
                outputs["Y"][2, 0, 0, 3] += 0.5
            return Attempt(Status.RAN, outputs)

    verdict = judged(ThirdStepOfTheSecond(), call, "singles")["singles"]
    (first,) = (each for each in verdict.outputs if each.name == "Y")
    worst = first.worst

    assert verdict.verdict is first.verdict is Verdict.DIFFERS
    assert (first.differing, first.size) == (2, 3 * 2 * call.size(H))
    assert worst.index in {(2, 0, 0, 3), (2, 0, 1, 3)}
    assert worst.got == pytest.approx(worst.wanted + 0.5)
    assert 0 < worst.tolerance < 1e-4
    assert verdict.message.startswith("Y at t 2, direction 0, sequence 0, unit 3: ")
    assert verdict.message.endswith("e-07 apart (derived)")


# Bugs of the tuning half, of which anything may be known.
PLANTED = ["units:tail-not-clipped", "units:pack-r-remainder-dropped", "units:last-panel-overlaps"]


@pytest.mark.parametrize("bug_id", [each for each in PLANTED if BUGS[each].half == TUNING])
def test_planted_bugs_are_found(bug_id):
    """Bugs of blocks and tails, without any expected output."""
    assert caught_by(CASES, bug_id)[1]


def plain(operator, T=4, N=3, I=2, H=5, **attributes):  # noqa: E741
    """A node without optional inputs."""
    rng = np.random.default_rng(1)
    row = operator_named(operator)
    sizes = {"seq_length": T, "batch_size": N, "input_size": I, "hidden_size": H}
    sizes["num_directions"] = 1 + (attributes.get("direction") == "bidirectional")
    inputs = {
        r.name: rng.uniform(-1, 1, [d.multiple * sizes[d.symbol] for d in r.shape()]).astype("f4")
        for r in row.inputs[:3]
    }
    outputs = tuple(r.name for r in row.outputs)
    return NodeCall("plain", operator, attributes, inputs, outputs, dict(row.readings))


class Broken:
    """Right but for one thing."""

    def __init__(self, change):
        self.change, self.calls = change, 0

    def attempt(self, vector):
        """Answer."""
        self.calls += 1
        outputs = {name: values.copy() for name, values in right(vector).items()}
        return Attempt(Status.RAN, self.change(self, vector, outputs) or outputs)


def ragged(**changes):
    """A batch of which one sequence has padding."""
    return plain("GRU-14", **changes).with_input("lengths", np.array([4, 2, 3]))


def off(where=lambda *_: True, output="Y", place=...):
    """An output, or a place in it, is wrong for the vectors and outputs that a function finds."""

    def change(_, vector, outputs):
        if where(vector, outputs):
            outputs[output][place] += 1

    return change


def off_by_size(name, is_wrong):
    """The last unit of Y is wrong where a size is as a function says."""
    return off(lambda vector, _: is_wrong(vector.record.sizes[name]), place=(..., -1))


def drift(self, _, outputs):
    """A little more at each call."""
    outputs["Y"] += np.float32(self.calls * 2.0**-20)


def padding_counts(_, vector, outputs):
    """What stands in the padding shows."""
    outputs["Y_h"] += np.nan_to_num(vector.inputs["X"][-1].mean())


def first_inputs(_, vector, outputs):
    """What the first input does is done twice."""
    outputs["Y"] += vector.inputs["X"][:, None, :, :1]


def no_initial(_, vector, outputs):
    """Initial states are left out."""
    kept = {name: values for name, values in vector.inputs.items() if "initial" not in name}
    return evaluate(vector.record.operator, kept, attributes=vector.attributes)


def alone_wrong(_, __, outputs):
    """An output that is asked for alone is wrong."""
    return {name: values + 1 for name, values in outputs.items()} if len(outputs) == 1 else None


def nan_spreads(_, vector, outputs):
    """NaN anywhere in X makes everything zero."""
    whole = np.isfinite(vector.inputs["X"]).all()
    return {name: values * whole for name, values in outputs.items()}


def nan_spreads_over(name):
    """NaN anywhere in an input makes all outputs of steps zero."""

    def change(_, vector, outputs):
        whole = np.isfinite(vector.inputs[name]).all()
        outputs["output"] = np.where(whole, outputs["output"], np.float32(0))

    return change


def bounded(_, __, outputs):
    """No output is above a half."""
    outputs["output"] = np.minimum(outputs["output"], np.float32(0.5))


def linear_off(name, is_wrong):
    """All outputs of steps are wrong where a size is as a function says."""
    return off(lambda vector, _: is_wrong(vector.record.sizes[name]), "output")


first_column = off(output="output", place=(..., 0))
first_row = off(output="present_state", place=np.s_[:, :, 0])
first_channel = off(output="output", place=np.s_[:, 0])
first_unit, last_row = off(place=(..., 0)), off(place=np.s_[:, :, -1])
in_reverse = off(lambda vector, _: vector.attributes.get("direction") == "reverse")
y_h_only = off(lambda _, outputs: "Y_h" in outputs, "Y_h")
in_layout_1 = off(lambda vector, _: vector.attributes.get("layout"), "Y_h")
with_initializers = off(lambda vector, _: vector.record.weights == "initializers")

BREAKING = {
    "again": (drift, plain("RNN-14")),
    "padding": (padding_counts, ragged()),
    "nan-padding": (nan_spreads, ragged()),
    "longer": (off_by_size("seq_length", lambda T: T > 9), plain("RNN-14")),
    "longer-259": (off_by_size("seq_length", lambda T: T > 255), plain("RNN-14")),
    "cut": (off_by_size("seq_length", lambda T: T == 3), ragged()),
    "singles": (off_by_size("batch_size", lambda N: N == 1), plain("RNN-14")),
    "tiles": (off_by_size("batch_size", lambda N: N == 2), plain("LSTM-14")),
    "sequences-permuted": (last_row, plain("RNN-14", N=4)),
    "sequences-repeated": (off_by_size("batch_size", lambda N: N > 16), plain("GRU-14")),
    "sequences-repeated-261": (off_by_size("batch_size", lambda N: N > 256), plain("GRU-14")),
    "units-permuted": (first_unit, plain("LSTM-14")),
    "units-added": (off_by_size("hidden_size", lambda H: H > 16), plain("GRU-14", H=1)),
    "units-added-149": (off_by_size("hidden_size", lambda H: H > 128), plain("GRU-14", H=1)),
    "inputs-permuted": (first_inputs, plain("RNN-14", I=3)),
    "inputs-added": (off_by_size("input_size", lambda size: size > 16), plain("GRU-14", I=1)),
    "inputs-added-293": (off_by_size("input_size", lambda size: size > 256), plain("GRU-14", I=1)),
    "split": (no_initial, plain("LSTM-14", direction="bidirectional")),
    "reversed": (in_reverse, plain("GRU-14")),
    "directions": (in_reverse, plain("LSTM-14", direction="bidirectional")),
    "last-state": (y_h_only, plain("GRU-14", direction="reverse")),
    "outputs": (alone_wrong, plain("LSTM-14")),
    "layout": (in_layout_1, plain("LSTM-14")),
    "weights": (with_initializers, plain("RNN-14")),
    "steps": (linear_off("seq_length", lambda T: T == 1), attention()),
    "continued": (linear_off("seq_length", lambda T: T > 9), convolution()),
    "continued-259": (linear_off("seq_length", lambda T: T > 255), attention()),
    "nan-sequences": (nan_spreads_over("value"), attention()),
    "heads": (linear_off("kv_num_heads", lambda K: K == 1), attention()),
    "heads-permuted": (first_column, attention()),
    "heads-repeated": (linear_off("kv_num_heads", lambda K: K > 16), attention()),
    "nan-heads": (nan_spreads_over("value"), attention()),
    "channels": (linear_off("channels", lambda C: C == 1), convolution()),
    "channels-permuted": (first_channel, convolution()),
    "channels-repeated": (linear_off("channels", lambda C: C > 16), convolution()),
    "nan-channels": (nan_spreads_over("input"), convolution()),
    "columns-permuted": (first_column, attention()),
    "rows-permuted": (first_row, attention()),
    "scaled": (bounded, convolution()),
}


@pytest.mark.parametrize("name", [name for name in RELATIONS if name != "threads"])
def test_relation_finds_its_bug(name):
    """Each relation is broken by a bug of its kind; what is right keeps it on the same node."""
    change, call = BREAKING[name]
    wrong = judged(Broken(change), call, name)[name]
    sound = judged(Broken(lambda *_: None), call, name)[name]
    count = sum(output.size for output in sound.outputs)

    assert (Verdict.DIFFERS, Verdict.PASS) == (wrong.verdict, sound.verdict)
    assert sum(output.differing for output in wrong.outputs) > 0
    assert sound.message.startswith(f"{count} of {counted(count, 'element')} compared")


def test_threads_are_those_of_another_subject():
    """Wrong with several threads alone; one without such a setting is told by name."""
    call = plain("RNN-14")
    good, bad = Broken(lambda *_: None), Broken(first_unit)
    threads = [RELATIONS["threads"]]
    ((_, broken),) = judge_case([call], threads, Asker(good, lambda: bad), "standard")
    asker = Asker(good, lambda: bad, "the program has no setting for threads")
    ((_, other),) = judge_case([call], threads, asker, "standard")

    assert broken.verdict is Verdict.DIFFERS
    assert other.verdict is Verdict.SKIPPED
    assert other.message == "threads does not apply: the program has no setting for threads"


def without_lengths(_, vector, __):
    """Lengths are ignored, in the arithmetic of the tensors."""
    kept = {name: v for name, v in vector.inputs.items() if name != "sequence_lens"}
    asked = {"attributes": vector.attributes, "outputs": vector.record.outputs}
    return evaluate(vector.record.operator, kept, **asked, compute="native")


def test_what_is_wrong_everywhere_alike_breaks_its_own_relations_only():
    """Who takes padding for steps agrees with itself where only the order of sums changes."""
    call = ragged(I=40)
    verdicts = judged(Broken(without_lengths), call)
    found = {name: verdict.verdict for name, verdict in verdicts.items()}
    broken = {name for name, verdict in found.items() if verdict is Verdict.DIFFERS}

    padding = {"padding", "nan-padding", "longer", "longer-259"}
    assert padding | {"cut", "split", "reversed", "last-state"} == broken
    assert {found[name] for name in ("units-permuted", "inputs-permuted", "singles")} == {
        Verdict.PASS
    }


class Remembering(Process):
    """Right, but a session adds what its last call had."""

    def session(self, vectors, _):
        """Answer in turn."""
        attempts = super().session(vectors)
        for attempt in attempts[1:]:
            attempt.outputs["Y"] += attempts[0].outputs["Y"]
        return attempts


def test_again_is_asked_of_one_session():
    """Calls that have sessions of their own would not see what one keeps."""
    verdict = judged(Remembering(), plain("RNN-14"), "again")["again"]

    assert verdict.verdict is Verdict.DIFFERS
    assert verdict.message.endswith("they must be equal (bit)")


@pytest.mark.parametrize(("share", "unstable"), [(0.0, False), (0.15, True), (1.0, False)])
def test_again_tells_chance_from_what_is_always_wrong(share, unstable):
    """A kernel that is wrong now and then breaks it; one that is always wrong alike does not."""
    chance = random.Random(1)  # noqa: S311 -- nothing is kept secret

    def session(operator, attributes, inputs, outputs):
        found = evaluate(operator, inputs, attributes=attributes, outputs=outputs)
        off = chance.random() < share
        return {name: values + values.dtype.type(off) for name, values in found.items()}

    kernel = KernelSubject(session)
    found = [judged(kernel, call, "again")["again"].verdict for call in calls()]

    assert (Verdict.DIFFERS in found) == unstable
    assert {*found} <= {Verdict.PASS, Verdict.DIFFERS}


def test_only_what_every_kernel_promises_is_bit_for_bit():
    """What no sum is added in another order for."""
    assert {n for n, row in RELATIONS.items() if row.equality == BIT} == {
        *("again", "padding", "nan-padding")
    }


class Ending:
    """Gives nothing where a size is too large, or another output."""

    def __init__(self, status, outputs=None):
        self.status, self.outputs = status, outputs

    def attempt(self, vector):
        """Answer, or not."""
        if vector.record.sizes["batch_size"] > 4:
            return Attempt(self.status, self.outputs or {}, "too many")
        return Attempt(Status.RAN, right(vector))


@every(
    "status, wanted",
    [
        *((Status[name], Verdict[name]) for name in ("REFUSED", "CRASHED", "TIMEOUT")),
        (Status.RAN, Verdict.DIFFERS),
    ],
)
def test_a_transformed_call_without_an_answer_fails(status, wanted):
    """It is no proof that the relation holds; a missing output is not one either."""
    found = judged(Ending(status), plain("RNN-14"), "sequences-repeated")
    verdict = found["sequences-repeated"]

    assert (wanted, True, ()) == (verdict.verdict, verdict.fails, verdict.outputs)


def test_a_case_without_an_answer_is_one_verdict():
    """Nothing is asked of it any more."""
    subject = Ending(Status.REFUSED)
    found = judged(subject, plain("RNN-14", N=5), "singles", "tiles", "padding")

    assert [("", "refused"), ("padding", "skipped")] == [
        (name, verdict.verdict) for name, verdict in found.items()
    ]


def test_outputs_without_an_element_are_not_judged():
    """Nothing agrees with nothing."""
    call = plain("RNN-14", N=1)
    empty = call.with_changes({"X": call.inputs["X"][:, :0]})
    verdict = judged(Broken(lambda *_: None), empty, "weights")["weights"]

    assert (Verdict.SKIPPED, ()) == (verdict.verdict, verdict.outputs)
    assert verdict.message == "weights shows nothing: no output has an element"


def test_outputs_of_one_number_show_nothing():
    """A program that writes zeros keeps every relation."""
    zeros = Broken(lambda _, __, outputs: {name: values * 0 for name, values in outputs.items()})
    found = judged(zeros, ragged())

    assert {Verdict.SKIPPED} == {verdict.verdict for verdict in found.values()}
    assert "tiles shows nothing: each output is one number" in found["tiles"].message


def test_sequences_that_are_alike_do_not_show_one_in_place_of_another():
    """What is wrong in the last place alone still is."""
    call = plain("GRU-14", N=3)
    alike = call.with_changes({"X": np.repeat(call.inputs["X"][:, :1], 3, axis=1)})
    names = ("singles", "tiles", "sequences-permuted", "sequences-repeated", "units-permuted")
    found = judged(Broken(lambda *_: None), alike, *names)

    def last_is_zero(_, __, outputs):
        outputs["Y"][:, :, 2:] = 0

    assert [found[name].verdict for name in names] == [Verdict.SKIPPED] * 4 + [Verdict.PASS]
    assert found["tiles"].message.startswith("tiles shows nothing: all sequences give the same")
    assert judged(Broken(last_is_zero), alike, "tiles")["tiles"].verdict is Verdict.DIFFERS
    assert judged(Broken(lambda *_: None), call, "tiles")["tiles"].verdict is Verdict.PASS


def test_chaos_is_not_judged():
    """Where two right outputs may be as far apart as two wrong ones, nothing is said."""
    call = plain("RNN-14", T=200)
    wild = call.with_changes({"R": call.inputs["R"] * 40, "X": call.inputs["X"] * 0.01})
    verdict = judged(Broken(lambda *_: None), wild, "units-permuted")["units-permuted"]
    compared = sum(output.size for output in verdict.outputs)
    of = sum(call.empty_output(output.name).size for output in verdict.outputs)

    assert verdict.verdict is Verdict.PASS
    assert 0 < compared < of
    assert verdict.message == f"{compared} of {of} elements compared (derived)"
