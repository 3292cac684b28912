"""Claims about results that were computed elsewhere."""

import dataclasses
import os
import shutil

import numpy as np
import pytest
from support.small_suite import small_suite

from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.files.formats import pb, write_tensors
from rnncli.generating.generation import GenerationPlan, generate
from rnncli.generating.production import make_vectors
from rnncli.judging.comparing.rule import Rule
from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.judgement import judge
from rnncli.packs.pack import open_pack
from rnncli.packs.vector import Attempt, Status
from rnncli.subjects import results
from rnncli.subjects.implementation import Implementation
from rnncli.subjects.results import results_subject

Y = np.arange(6, dtype=np.float32).reshape(2, 3)
Y_h = np.ones(3, np.float32)


@pytest.fixture
def asked(core):
    """A vector called `case` that asks for Y and Y_h."""
    vector = core("rnn_7_plain")
    assert vector.record.outputs == ["Y", "Y_h"]
    return dataclasses.replace(vector, id="case")


@pytest.fixture
def folder(tmp_path):
    """A folder with results of another case, and the case's own folder."""
    for case in ("case", "other"):
        (tmp_path / f"test_{case}" / "test_data_set_0").mkdir(parents=True)
    return tmp_path / "test_case" / "test_data_set_0"


def test_the_file_of_a_pack_is_no_result(tmp_path):
    """Its outputs are the expected ones; another file beside it is one, or one of its name."""
    plan = GenerationPlan(suite=small_suite(), selection="id:lstm_14_clip", layout="npz")
    generate(plan, tmp_path / "pack", lambda _: None)
    for name in ("pack/mine.npz", "vectors.npz"):
        write_tensors(tmp_path / name, {"Y": Y})

    in_packs = {
        name: Implementation(results=str(tmp_path / name)).is_in_a_pack
        for name in ("pack", "pack/vectors.npz", "pack/mine.npz", "vectors.npz", ".")
    }
    assert [name for name, is_in in in_packs.items() if is_in] == ["pack", "pack/vectors.npz"]


def attempted(folder, vector):
    """What the results are for a vector."""
    return results_subject(folder.parents[1]).attempt(vector)


def test_a_folder_is_read_by_the_names_in_its_files(folder, asked):
    """Also where their order is another."""
    (folder / "output_0.pb").write_bytes(pb.serialize("Y_h", Y_h))
    (folder / "output_1.pb").write_bytes(pb.serialize("Y", Y))
    outputs = attempted(folder, asked).outputs

    assert outputs["Y"].tolist() == Y.tolist()
    assert outputs["Y_h"].tolist() == Y_h.tolist()


def test_tensors_without_names_are_named_by_position(folder, asked):
    """A device need not know the names; position K is that of the outputs asked for."""
    (folder / "output_1.pb").write_bytes(pb.serialize("", Y_h))
    (folder / "output_2.pb").write_bytes(pb.serialize("", Y))
    (folder / "output_0.txt").write_text("not a tensor")

    assert {n: v.shape for n, v in attempted(folder, asked).outputs.items()} == {
        "Y_h": (3,),
        "output_2": (2, 3),
    }


def test_raw_files_have_the_dtype_and_shape_of_what_is_expected(folder, asked):
    """If they have its size; else they are so many bytes, and both sizes are told."""
    outputs = folder.parent / "outputs"
    outputs.mkdir()
    wanted = asked.answers.outputs
    (outputs / "Y.bin").write_bytes(wanted["Y"].tobytes())
    (outputs / "Y_h.bin").write_bytes(bytes(8))
    (outputs / "Y_c.bin").write_bytes(b"123")
    (outputs / "notes.txt").write_text("not an output")
    got = attempted(folder, asked).outputs

    assert np.array_equal(got["Y"], wanted["Y"])
    assert {name: (str(values.dtype), values.nbytes) for name, values in got.items()} == {
        "Y": ("float32", wanted["Y"].nbytes),
        "Y_h": ("|V1", 8),
        "Y_c": ("uint8", 0),  # which is not asked for
    }
    told = {each.name: each.problem for each in judge(asked, Attempt(Status.RAN, got)).outputs}
    assert told["Y_h"] == f"has 8 bytes, wanted {wanted['Y_h'].nbytes}"


def zeros_as_raw(folder, count):
    """Write so many float32 zeros to a raw file."""
    (folder.parent / "outputs").mkdir()
    (folder.parent / "outputs" / "Y.bin").write_bytes(bytes(4 * count))


def zeros_as_pb(folder, count):
    """Write so many float32 zeros to a `.pb`, in what other outputs have left."""
    (folder / "output_0.pb").write_bytes(pb.serialize("Y_h", Y_h))
    (folder / "output_1.pb").write_bytes(pb.serialize("Y", np.zeros(count, np.float32)))


@pytest.mark.parametrize("write", [zeros_as_raw, zeros_as_pb])
def test_a_wrong_shape_is_shown_and_a_giant_file_is_not_read(folder, asked, write):
    """A file of more than 1 MiB, and 8 times what is expected, is refused by its size."""
    room = results.room_for(sum(values.nbytes for values in asked.answers.outputs.values()))
    assert room == results.LEAST_ROOM
    write(folder, room // 8)

    assert attempted(folder, asked).outputs["Y"].nbytes == 4 * (room // 8)

    shutil.rmtree(folder.parent)
    folder.mkdir(parents=True)
    write(folder, room // 4 + 1)
    attempt = attempted(folder, asked)

    assert attempt.status is Status.CRASHED
    assert f"; the limit is {room - Y_h.nbytes * (write is zeros_as_pb)}" in attempt.message


def test_an_output_that_nobody_asked_for_is_not_read(folder, asked):
    """Its name alone is wrong."""
    outputs = folder.parent / "outputs"
    outputs.mkdir()
    with (outputs / "Y_c.bin").open("wb") as stream:
        stream.truncate(1 << 28)

    assert attempted(folder, asked).outputs["Y_c"].size == 0


def test_the_room_of_results_follows_the_outputs_of_a_pack(core_pack):
    """The sizes in a manifest give the bytes of all expected outputs, in every call."""
    for record in core_pack.manifest.cases:
        calls = core_pack.read(record).calls
        outputs = [values for vector in calls for values in vector.answers.outputs.values()]

        assert results.expected_bytes(record) == sum(values.nbytes for values in outputs)


@pytest.mark.parametrize("extension", ["npz", "h5"])
def test_a_giant_file_of_results_is_refused_before_it_is_read(tmp_path, core_pack, extension):
    """The pack says how much it could hold; what is missing is missing."""
    path = tmp_path / f"results.{extension}"
    with path.open("wb") as stream:
        stream.truncate(results.LEAST_ROOM_OF_A_FILE)

    results.require_room(path, core_pack.manifest.cases)
    with path.open("ab") as stream:
        stream.write(b"1")
    with pytest.raises(UnreadableFile, match="has at least 268435457 bytes; the limit is"):
        results.require_room(path, core_pack.manifest.cases)
    with pytest.raises(UnreadableFile, match="no such file"):
        results.require_room(tmp_path / "missing", core_pack.manifest.cases)


@pytest.mark.parametrize("case_id", ["missing", "other"])
def test_a_case_without_results_is_missing(folder, asked, case_id):
    """Nobody knows whether it was refused or never run; an empty folder is nothing, too."""
    attempt = attempted(folder, dataclasses.replace(asked, id=case_id))
    wanted = "wanted outputs/Y.bin or test_data_set_0/output_0.pb, there is nothing"

    assert attempt.status is Status.MISSING
    assert attempt.message == f"no results for it: {wanted}".removesuffix(
        f": {wanted}" if case_id == "missing" else ""
    )


def test_results_in_another_place_are_shown_where_they_lie(folder, asked):
    """A file beside `outputs`, or of another kind, is what one mends."""
    outputs = folder.parents[1] / "test_elsewhere" / "outputs"
    outputs.mkdir(parents=True)
    (outputs / "Y.npy").touch()
    (outputs.parent / "Y.bin").touch()

    assert attempted(folder, dataclasses.replace(asked, id="elsewhere")).message.endswith(
        "wanted outputs/Y.bin or test_data_set_0/output_0.pb, there is Y.bin, outputs/Y.npy"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "the results say that it was refused"),
        (b"\n\x1b[31mlayout 1\nmore", "[31mlayout 1"),
        (b"\xff" * 10**6, "\ufffd" * 300 + "..."),
    ],
)
def test_a_device_says_that_it_refused_a_case(folder, asked, text, message):
    """By a file beside the folder of outputs, with or without a reason."""
    folder.with_name("refused.txt").write_bytes(text)
    attempt = attempted(folder, asked)

    assert (attempt.status, attempt.message) == (Status.REFUSED, message)


def test_what_was_refused_has_no_outputs(folder, asked):
    """Results that say both are garbage."""
    folder.with_name("refused.txt").write_text("layout 1")
    (folder / "output_0.pb").write_bytes(pb.serialize("Y", Y))
    attempt = attempted(folder, asked)

    assert attempt.status is Status.CRASHED
    assert attempt.message.startswith(
        "gave garbage: the results say that it was refused, and hold Y"
    )


def damage_nothing_left(path):
    """Empty the file."""
    path.write_bytes(b"")


def damage_half(path):
    """Cut the file."""
    path.write_bytes(path.read_bytes()[:-5])


def damage_noise(path):
    """Overwrite the file."""
    path.write_bytes(b"\x1b[31m" * 20)


def damage_pipe(path):
    """Replace the file by a pipe, which nobody writes to."""
    path.unlink()
    os.mkfifo(path)


def damage_folder(path):
    """Replace the file by a folder."""
    path.unlink()
    path.mkdir()


def damage_twin(path):
    """Give another output the same name."""
    path.with_name("output_1.pb").write_bytes(path.read_bytes())


@pytest.mark.parametrize(
    "damage",
    [damage_nothing_left, damage_half, damage_noise, damage_pipe, damage_folder, damage_twin],
)
def test_results_that_cannot_be_read_are_a_crash_of_that_case(folder, asked, damage):
    """The others are judged."""
    path = folder / "output_0.pb"
    path.write_bytes(pb.serialize("Y", Y))
    damage(path)
    attempt = attempted(folder, asked)

    assert attempt.status is Status.CRASHED
    assert attempt.message.startswith("gave garbage: ")
    assert attempt.message.isprintable()


@pytest.mark.parametrize("extension", ["npz", "h5"])
@pytest.mark.parametrize("prefix", ["case/", "case/outputs/"])
def test_a_file_is_read_by_id_and_name(tmp_path, asked, extension, prefix):
    """In both ways of writing it."""
    path = tmp_path / f"results.{extension}"
    write_tensors(path, {f"{prefix}Y": Y, f"{prefix}Y_h": Y_h, "other/Y": Y})
    subject = results_subject(path)
    outputs = subject.attempt(asked).outputs

    assert list(outputs) == ["Y", "Y_h"]
    assert outputs["Y"].tolist() == Y.tolist()
    assert list(subject.attempt(dataclasses.replace(asked, id="other")).outputs) == ["Y"]
    missing = subject.attempt(dataclasses.replace(asked, id="missing"))
    assert (missing.status, missing.message) == (Status.MISSING, "no results for it")


@pytest.mark.parametrize("extension", ["npz", "h5"])
def test_a_file_says_what_was_refused(tmp_path, asked, extension):
    """By a tensor of that name, whatever it holds."""
    path = tmp_path / f"results.{extension}"
    write_tensors(path, {"case/refused": np.zeros(0, np.int8)})

    assert results_subject(path).attempt(asked).status is Status.REFUSED


@pytest.mark.parametrize("layout", ["onnx", "npz", "h5"])
def test_a_pack_is_its_own_result(tmp_path, layout):
    """Inputs, tolerances and answers under other readings are no outputs."""
    pack = tmp_path / "pack"
    generate(GenerationPlan(suite=small_suite(), layout=layout), pack, lambda _: None)
    subject = results_subject(pack if layout == "onnx" else pack / f"vectors.{layout}")

    for vector in open_pack(pack).vectors():
        attempt = subject.attempt(vector)
        wanted = vector.answers.outputs
        assert {n: v.tobytes() for n, v in attempt.outputs.items()} == {
            n: v.tobytes() for n, v in wanted.items()
        }
        expected = Status.RAN if wanted else Status.MISSING
        assert attempt.status is expected
        assert [v.dtype for v in attempt.outputs.values()] == [v.dtype for v in wanted.values()]


def test_names_without_an_id_are_those_of_the_only_case(tmp_path, asked):
    """Of several, it is told how results are named."""
    write_tensors(tmp_path / "plain.npz", {"Y": Y, "Y_h": Y_h})
    subject = results_subject(tmp_path / "plain.npz")
    subject.check(["case"], ["case", "other"])

    assert list(subject.attempt(asked).outputs) == ["Y", "Y_h"]
    with pytest.raises(
        InvalidRequest, match="'Y' says no case, of 2: results are named ID/Y, such"
    ):
        subject.check(["case", "other"], ["case", "other"])


@pytest.mark.parametrize("name", ["folder", "file.npz"])
def test_results_of_another_pack_are_refused(tmp_path, name):
    """In one sentence that shows what was expected; one case of the pack is enough."""
    if name == "folder":
        (tmp_path / name / "test_else").mkdir(parents=True)
        wanted = "folder/test_a/test_data_set_0/output_0.pb or .*folder/test_a/outputs/Y.bin$"
    else:
        write_tensors(tmp_path / name, {"else/Y": Y})
        wanted = "results are named ID/Y, such as a/Y$"
    subject = results_subject(tmp_path / name)
    subject.check(["a"], ["a", "b", "else"])

    with pytest.raises(
        InvalidRequest, match=f"has none of the pack's cases, but .*else; .*{wanted}"
    ):
        subject.check(["a"], ["a", "b"])


def test_a_place_without_results_is_an_error(tmp_path):
    """It is the wrong place, not a device that refuses everything."""
    write_tensors(tmp_path / "inputs.npz", {"case/inputs/X": Y})

    for path in (tmp_path, tmp_path / "inputs.npz"):
        with pytest.raises(InvalidRequest, match="holds no results, which are"):
            results_subject(path)


def test_a_file_that_is_damaged_or_missing_is_an_error(tmp_path):
    """Nothing of it can be judged."""
    (tmp_path / "cut.npz").write_bytes(b"PK\3\4half")

    for name in ("cut.npz", "missing.h5", "missing"):
        with pytest.raises((UnreadableFile, InvalidRequest), match=name):
            results_subject(tmp_path / name)


def test_no_vector_is_needed_twice(tmp_path, asked):
    """A subject keeps nothing between vectors, and tells where it reads."""
    write_tensors(tmp_path / "r.npz", {"case/Y": Y})
    subject = results_subject(tmp_path / "r.npz")

    assert subject.attempt(asked).outputs == subject.attempt(asked).outputs
    assert subject.describe() == {"results": str(tmp_path / "r.npz")}
    assert subject.close() is None


def test_the_suite_has_a_case_that_must_be_refused():
    """So the claims above hold of one."""
    vectors = make_vectors(list(small_suite().select("shape")))

    assert [vector.record.expect for vector in vectors] == ["rejection"]


def test_a_folder_has_the_results_of_each_call_in_its_data_set(folder, asked):
    """That of the second call is none of the first's; what is not there is missing."""
    second = folder.with_name("test_data_set_1")
    second.mkdir()
    (second / "output_0.pb").write_bytes(pb.serialize("Y", Y))

    assert attempted(folder, asked).status is Status.MISSING
    assert attempted(folder, dataclasses.replace(asked, call=1)).outputs["Y"].tolist() == Y.tolist()
    assert attempted(folder, dataclasses.replace(asked, call=2)).status is Status.MISSING


@pytest.mark.parametrize("extension", ["npz", "h5"])
def test_a_file_has_the_results_of_each_call_in_a_group(tmp_path, asked, extension):
    """With or without `outputs/`; a case that was refused was refused at every call."""
    path = tmp_path / f"results.{extension}"
    write_tensors(
        path,
        {
            "case/Y": Y,
            "case/calls/1/Y": Y + 1,
            "case/calls/1/outputs/Y_h": Y_h,
            "case/calls/1/inputs/X": Y,
            "other/refused": Y_h,
        },
    )
    subject = results_subject(path)
    first, second, third = (subject.attempt(dataclasses.replace(asked, call=k)) for k in range(3))

    assert list(first.outputs) == ["Y"]
    assert sorted(second.outputs) == ["Y", "Y_h"]
    assert second.outputs["Y"].tolist() == (Y + 1).tolist()
    assert third.status is Status.MISSING
    refused = dataclasses.replace(asked, id="other", call=1)
    assert subject.attempt(refused).status is Status.REFUSED


@pytest.fixture(scope="module")
def stepped(tmp_path_factory):
    """A raw pack with the signals of every step."""
    folder = tmp_path_factory.mktemp("stepped") / "pack"
    suite = small_suite(ONE_LSTM).with_steps()
    generate(GenerationPlan(suite=suite, layout="raw"), folder, lambda _: None)
    return open_pack(folder)


ONE_LSTM = """
suite: stepped
summary: One LSTM.
cases: {plain: {op: LSTM-14, sizes: {seq_length: 3, batch_size: 2, input_size: 2, hidden_size: 2}}}
"""


def recorded(vector, folder, form, signals):
    """Write a vector's outputs and some signals as a device records them; the path to judge."""
    if form == "npz":
        tensors = {f"{vector.id}/{name}": v for name, v in vector.answers.outputs.items()}
        tensors |= {f"{vector.id}/steps/{name}": values for name, values in signals.items()}
        write_tensors(folder / "results.npz", tensors)
        return folder / "results.npz"
    for place, tensors in (("", vector.answers.outputs), ("steps/", signals)):
        outputs = folder / f"test_{vector.id}" / f"{place}outputs"
        data = folder / f"test_{vector.id}" / (place or "test_data_set_0")
        for each in (outputs, data):
            each.mkdir(parents=True, exist_ok=True)
        for k, (name, values) in enumerate(tensors.items()):
            if form == "raw":
                (outputs / f"{name}.bin").write_bytes(values.tobytes())
            else:
                (data / f"output_{k}.pb").write_bytes(pb.serialize(name, values))
    return folder


@pytest.mark.parametrize("form", ["raw", "pb", "npz"])
def test_signals_that_a_device_records_are_judged(stepped, form, tmp_path):
    """All or some of them; one that is wrong, or that the pack does not store, differs."""
    (vector,) = stepped.vectors()
    right = dict(vector.steps.outputs)
    some = {"gate_f": right["gate_f"]}
    wrong = {**right, "gate_f": right["gate_f"] + np.float32(1e-3)}
    strange = {"gate_q": right["gate_f"]}
    found = {}
    for name, signals in {"right": right, "some": some, "wrong": wrong, "more": strange}.items():
        folder = tmp_path / name
        folder.mkdir()
        attempt = results_subject(recorded(vector, folder, form, signals)).attempt(vector)
        verdict = judge(vector, attempt)
        found[name] = [o.name for o in verdict.outputs if o.verdict is Verdict.DIFFERS]
        assert len(verdict.outputs) == len(vector.answers.outputs) + len(signals)
        assert verdict.verdict is (Verdict.DIFFERS if found[name] else Verdict.PASS)

    assert found == {"right": [], "some": [], "wrong": ["steps/gate_f"], "more": ["steps/gate_q"]}


def test_the_room_of_results_has_room_for_signals(stepped):
    """Each has the size of an output of every step."""
    (record,) = stepped.manifest.cases
    (vector,) = stepped.vectors()
    tensors = [*vector.answers.outputs.values(), *vector.steps.outputs.values()]

    assert results.expected_bytes(record) == sum(values.nbytes for values in tensors)


def test_signals_are_judged_by_the_rule_of_the_run(stepped, tmp_path):
    """A profile's tolerances are derived for them, too; given ones apply to them."""
    (vector,) = stepped.vectors()
    off = {n: v + np.float32(1e-3) for n, v in vector.steps.outputs.items()}
    attempt = results_subject(recorded(vector, tmp_path, "raw", off)).attempt(vector)

    assert judge(vector, attempt, Rule(atol=1e-2)).verdict == "pass"
    assert judge(vector, attempt, Rule(atol=1e-4)).verdict == "differs"
    wide, narrow = (
        Rule(profile=name).signals(vector).tolerances["gate_f"] for name in ("four-ulp", "strict")
    )
    assert (narrow < vector.steps.tolerances["gate_f"]).all()
    assert (wide > vector.steps.tolerances["gate_f"]).all()


def test_signals_do_not_make_an_answer(stepped, tmp_path):
    """Without outputs the case is missing."""
    (vector,) = stepped.vectors()
    bare = dataclasses.replace(vector, answers=dataclasses.replace(vector.answers, outputs={}))
    path = recorded(bare, tmp_path, "raw", dict(vector.steps.outputs))

    assert results_subject(path).attempt(vector).status is Status.MISSING
