"""`vectors/judge.c` says what `rnncli verify --results` says, and is never green by mistake."""

import hashlib
import json
import re
import shutil
from contextlib import nullcontext
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest
from support import judge_c
from support.biased_kernels import biased
from support.forged_packs import resealed
from support.random_units import suite_of
from support.second_calls import SHAPES, TEXT
from support.small_suite import small_suite

import rnncli
from rnncli.cases.suite.suite import parse_suite
from rnncli.errors import UnreadableFile
from rnncli.generating.generation import GenerationPlan, generate
from rnncli.judging.comparing.rule import Rule
from rnncli.judging.judgement import judged
from rnncli.mutants.catalogue import EVERY as MUTANTS
from rnncli.operators import operator_named
from rnncli.packs.conversion import convert_pack
from rnncli.packs.manifest import MANIFEST, read_manifest
from rnncli.packs.pack import open_pack
from rnncli.reports.verification import biased_sentences
from rnncli.subjects.implementation import Implementation
from rnncli.subjects.results import results_subject

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")

CORE = Path(__file__).parents[2] / "vectors" / "core"
RIGHT = "numpy"
WRONG = (
    *("input-weights-columns-first", "recurrent-bias-dropped", "biases-shifted-by-a-gate"),
    *("last-states-of-first-direction", "padding-flipped", "hidden-tail-4", "clip-of-h"),
    *("hard-sigmoid", "activation-f-missing", "x-first-step-twice", "gate-order-rhz-in-b"),
    *("reset-ignored", "peepholes-dropped-from-o", "gate-order-fcio", "gates-f-c-swapped-in-r"),
    *("c-reset-every-4-steps", "computed-in-bfloat16", "sums-in-float16", "layout-of-y-ignored"),
    *("y-one-step-late", "fast-exp"),
)
"""Plain, data-dependent and numerical bugs: from all elements wrong to a few just beyond."""


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    """The program as the how-to compiles it, without a warning."""
    return judge_c.compiled(tmp_path_factory.mktemp("judge"), "-O2")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """The program with sanitizers, which end it at the first access out of bounds."""
    return judge_c.compiled(tmp_path_factory.mktemp("guarded"), *judge_c.SANITIZED)


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    """The committed pack in the layout raw, and its vectors."""
    folder = tmp_path_factory.mktemp("core") / "raw"
    convert_pack(open_pack(CORE), folder, "raw")
    return folder, [*open_pack(folder).vectors()]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small raw pack with second calls and other readings, and right results for it."""
    root = tmp_path_factory.mktemp("small")
    text = TEXT.replace("    calls: 1\n", "    calls: 1\n    outputs: [Y_h]\n")
    plan = GenerationPlan(suite=small_suite(text), layout="raw")
    assert generate(plan, root / "pack", lambda _: None).failed == ()
    judge_c.write_all(root / "right", [*open_pack(root / "pack").vectors()], RIGHT)
    return root


@pytest.fixture
def copy(small, tmp_path):
    """Copies of both to be spoilt."""
    for name in ("pack", "right"):
        shutil.copytree(small / name, tmp_path / name)
    return tmp_path


def test_it_agrees_on_every_case_of_core(judge, core, tmp_path):
    """The verdict and the worst margin, as printed, of right outputs."""
    pack, vectors = core
    judge_c.write_all(tmp_path, vectors, RIGHT)

    said = judge_c.run(judge, pack, tmp_path)
    assert said.cases == judge_c.judged(tmp_path, vectors)
    assert said.code == 0


@pytest.mark.parametrize("name", WRONG)
def test_it_agrees_on_every_bug(judge, core, tmp_path, name):
    """What is not of its cells is judged above, as right."""
    pack, vectors = core
    cells = MUTANTS[name].cells
    some = [
        vector for vector in vectors if operator_named(vector.record.operator).cell.name in cells
    ]
    judge_c.write_all(tmp_path, some, f"mutant:{name}")

    said = judge_c.run(judge, pack, tmp_path, *(vector.id for vector in some))
    assert said.cases == judge_c.judged(tmp_path, some)
    assert said.code == 1


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("states truncated by 1 bit", ()),
        ("functions 1 ulp too large", ("--max-bias", "5")),
        ("16-bit results truncated", ("--max-bias", "100")),
    ],
)
def test_it_says_how_errors_lean(judge, core, tmp_path, name, options):
    """The sentences of rnncli, and its exit code where it is to fail."""
    pack, vectors = core
    for vector in vectors:
        for call in vector.calls:
            judge_c.write_outputs(tmp_path, call, biased(name)(call))
    asked = {"max_bias": int(options[1])} if options else {}
    report = rnncli.verify(pack, Implementation(results=str(tmp_path)), **asked)

    said = judge_c.run(judge, *options, pack, tmp_path)
    lines = [line for line in said.out.splitlines() if line.startswith("biased")]
    assert sorted(lines) == sorted(biased_sentences(report))
    assert bool(lines) is (options != ("--max-bias", "100"))
    assert said.code == report.exit_code


def test_it_does_not_pass_if_no_bias_can_be_measured(judge, small):
    """As rnncli, with exit code 5."""
    said = judge_c.run(judge, "--max-bias", "5", small / "pack", small / "right")
    assert (said.code, "no dtype has 20 calls" in said.err) == (5, True)
    refused = judge_c.run(judge, "--max-bias", "x", small / "pack", small / "right")
    assert (refused.code, refused.err) == (2, "judge: --max-bias x: expected a number >= 1\n")


@pytest.fixture(scope="module")
def units(tmp_path_factory):
    """A raw pack of quantised units, and its vectors."""
    folder = tmp_path_factory.mktemp("units") / "raw"
    suite = parse_suite(suite_of(range(24)), "units.yaml", Path())
    assert generate(GenerationPlan(suite=suite, layout="raw"), folder, lambda _: None).failed == ()
    return folder, [*open_pack(folder).vectors()]


@pytest.mark.parametrize(
    "given",
    [{"atol": 2.0**-12 * 1.005}, {"rtol": 1e-3, "atol": 1e-4}, {"atol": 0.0}, {"atol": 10.0}],
    ids=str,
)
def test_it_agrees_on_tolerances_that_are_given(judge, core, units, tmp_path, given):
    """Of outputs in fixed point, which are right to one unit; too wide ones judge nobody."""
    rule = Rule(**given)
    words = [f"{number}" for name, bound in given.items() for number in (f"--{name}", bound)]
    for pack, vectors in (core, units):
        results = tmp_path / pack.parent.name
        for call in (call for vector in vectors for call in vector.calls):
            fixed = {
                name: (np.rint(values.astype(np.float64) * 4096) / 4096).astype(values.dtype)
                for name, values in call.answers.outputs.items()
            }
            judge_c.write_outputs(results, call, fixed)

        said = judge_c.run(judge, *words, pack, results)
        assert said.cases == judge_c.judged(results, vectors, rule)
        assert f" by {rule.text}: " in said.out
        assert {verdict for verdict, _ in said.cases.values()} >= {"pass"}


@pytest.mark.parametrize("words", [("--atol", "1e"), ("--rtol", "-1"), ("--atol", "inf")])
def test_what_is_no_tolerance_is_refused(judge, small, words):
    """As by rnncli: a slip must not judge."""
    said = judge_c.run(judge, *words, small / "pack", small / "right")
    assert (said.code, said.out) == (2, "")
    assert said.err == f"judge: {' '.join(words)}: expected a number >= 0, such as 1e-5\n"


DECLARED = (None, "requantise=state", "requantise=gates", "round=truncate", "state-type=int16")


@pytest.mark.parametrize("of", DECLARED, ids=str)
@pytest.mark.parametrize("by", DECLARED, ids=str)
def test_it_agrees_on_units_by_what_a_device_declares(judge, units, tmp_path, of, by):
    """Levels of each reading, judged by each; those of another are wrong where they differ."""
    pack, vectors = units
    own, rule = (Rule(reading=dict([each.split("=")]) if each else None) for each in (of, by))
    held = [own.declared(vector) for vector in vectors]
    judge_c.write_all(tmp_path, held, RIGHT)

    said = judge_c.run(judge, *(["--reading", by] if by else []), pack, tmp_path)
    assert said.cases == judge_c.judged(tmp_path, vectors, rule)
    assert said.code == (of != by)
    named = set(re.findall("gives what ([a-z0-9-]+=[a-z0-9-]+) gives: --reading", said.out))
    assert bool(of and not by) == bool(named)


@pytest.mark.parametrize(
    ("reading", "sentence"),
    [
        ("requantise=stat", "choice is 'outputs', not 'stat'"),
        ("requantize=state", "no case has a reading to declare by that name"),
        ("clip-scope=gates", "no case has a reading to declare by that name"),
        ("round", "expected NAME=CHOICE"),
    ],
)
def test_it_refuses_what_nobody_can_declare(guarded, units, tmp_path, reading, sentence):
    """So that a misspelt reading is not the default."""
    pack, vectors = units
    judge_c.write_all(tmp_path, vectors, RIGHT)

    said = judge_c.run(guarded, "--reading", reading, pack, tmp_path)
    assert (said.code, sentence in said.err) == (2, True)


def output(results, case_id, name="Y", call=""):
    """The file of an output."""
    return results / f"test_{case_id}" / call / "outputs" / f"{name}.bin"


def fill(path, value, dtype="<f4"):
    """Replace the elements of a file."""
    path.write_bytes(np.full(path.stat().st_size // np.dtype(dtype).itemsize, value, dtype))


def swap(path):
    """Exchange the first half of a file and the second."""
    content = path.read_bytes()
    path.write_bytes(content[len(content) // 2 :] + content[: len(content) // 2])


def refuse(results, case_id):
    """Say that the device refused a case."""
    shutil.rmtree(results / f"test_{case_id}")
    (results / f"test_{case_id}").mkdir()
    (results / f"test_{case_id}" / "refused.txt").write_text("no room\n")


ID = "lstm_14_given"
SPOILT = {
    "NaN": lambda r: fill(output(r, ID), np.nan),
    "infinity": lambda r: fill(output(r, ID), np.inf),
    "zeros": lambda r: fill(output(r, ID), 0),
    "nearly right": lambda r: fill(output(r, ID, "Y_h"), 1e-3),
    "halves swapped": lambda r: swap(output(r, ID, "Y_c")),
    "a second call wrong": lambda r: fill(output(r, ID, call="calls/1"), 1),
    "a second call missing": lambda r: shutil.rmtree(r / f"test_{ID}" / "calls"),
    "an output missing": lambda r: output(r, ID, "Y_c").unlink(),
    "a case missing": lambda r: shutil.rmtree(r / f"test_{ID}"),
    "too short": lambda r: output(r, ID).write_bytes(b"1234"),
    "too long": lambda r: output(r, ID).write_bytes(bytes(4096)),
    "no whole element": lambda r: output(r, ID).write_bytes(b"12345"),
    "empty": lambda r: output(r, ID).write_bytes(b""),
    "not requested": lambda r: output(r, "gru_14_single").write_bytes(b""),
    "refused": lambda r: refuse(r, ID),
    "refused with outputs": lambda r: (r / f"test_{ID}" / "refused.txt").write_text(""),
}


@pytest.mark.parametrize("name", SPOILT)
def test_it_agrees_on_results_that_are_not_whole(judge, copy, name):
    """Missing, misshapen, refused: nothing is green, and the verdicts are ours."""
    SPOILT[name](copy / "right")
    vectors = [*open_pack(copy / "pack").vectors()]

    said = judge_c.run(judge, copy / "pack", copy / "right")
    wanted = judge_c.judged(copy / "right", vectors)
    assert said.cases == wanted
    assert (said.code == 0) == all(verdict == "pass" for verdict, _ in wanted.values())


def test_it_says_why(judge, copy):
    """The first line of a refusal; that an output which nobody asked for is all that is wrong."""
    refuse(copy / "right", ID)
    SPOILT["not requested"](copy / "right")
    out = judge_c.run(judge, copy / "pack", copy / "right").out.splitlines()

    assert f"refused\t{ID}\t0\tno room" in out
    (line,) = (line for line in out if line.startswith("differs\tgru_14_single\t"))
    assert line.endswith(" was not requested; the requested outputs are right")


@pytest.mark.parametrize(
    ("name", "ids", "ends"),
    [
        ("a second call missing", [ID], "no results for it: no calls/1/outputs/Y.bin"),
        ("a case missing", [], "no results for it: no outputs/Y.bin"),
        ("too long", [], "Y has too many bytes: wanted {bytes}, got more than 1536"),
        ("too short", [], "Y has too few bytes: wanted {bytes}, got 4"),
    ],
)
def test_it_says_what_lacks(judge, copy, name, ids, ends):
    """The first file that is missing, also of a later call alone; sizes in bytes."""
    size = output(copy / "right", ID).stat().st_size
    SPOILT[name](copy / "right")

    out = judge_c.run(judge, copy / "pack", copy / "right", *ids).out.splitlines()
    (line,) = (line for line in out if f"\t{ID}\t" in line)
    assert ends.format(bytes=size) in line


@pytest.mark.parametrize("layout", ["ir", "wpt", "tflite", "cmsis"])
def test_layouts_with_models_are_judged_as_raw_is(judge, copy, layout):
    """What lies beside case.json and the tensors is for others."""
    manifest = read_manifest(copy / "pack")
    changed = replace(manifest, header={**manifest.header, "layout": layout})
    (copy / "pack" / "manifest.json").write_bytes(changed.contents()["manifest.json"])

    said = judge_c.run(judge, copy / "pack", copy / "right")
    assert (said.code, {verdict for verdict, _ in said.cases.values()}) == (0, {"pass"})


def write_reading(results, vector, reading, calls):
    """Write the answers under another reading for some calls, and the case's own for others."""
    for number, call in enumerate(vector.calls):
        is_other = number in calls and reading in call.alternatives
        found = call.alternatives[reading] if is_other else call.answers
        judge_c.write_outputs(results, call, found.outputs)


@pytest.mark.parametrize(("calls", "verdict"), [((0, 1), "acceptable"), ((0,), "differs")])
def test_all_calls_follow_one_reading(judge, copy, calls, verdict):
    """Another reading is acceptable if every call has it."""
    vector = open_pack(copy / "pack").read(open_pack(copy / "pack").case("lstm_14_clip"))
    write_reading(copy / "right", vector, "clip-scope=gates", calls)

    said = judge_c.run(judge, copy / "pack", copy / "right", "lstm_14_clip")
    assert said.cases == judge_c.judged(copy / "right", [vector])
    assert said.cases["lstm_14_clip"][0] == verdict


@pytest.mark.parametrize("name", [RIGHT, "mutant:lengths-ignored"])
def test_it_agrees_on_calls_of_other_sizes(judge, tmp_path, name):
    """Each data set has shapes of its own."""
    plan = GenerationPlan(suite=small_suite(SHAPES), layout="raw")
    assert generate(plan, tmp_path / "pack", lambda _: None).failed == ()
    vectors = [*open_pack(tmp_path / "pack").vectors()]
    judge_c.write_all(tmp_path / "results", vectors, name)

    said = judge_c.run(judge, tmp_path / "pack", tmp_path / "results")
    assert said.cases == judge_c.judged(tmp_path / "results", vectors)
    assert said.code == int(name != RIGHT)


@pytest.fixture(scope="module")
def invalid(tmp_path_factory):
    """A raw pack whose cases must be refused."""
    folder = tmp_path_factory.mktemp("invalid") / "pack"
    plan = GenerationPlan(suite=small_suite(), selection="lstm_14_shape", layout="raw")
    assert generate(plan, folder, lambda _: None).failed == ()
    return folder


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        ("refused.txt", ("pass", 0)),
        ("outputs/Y.bin", ("accepted", 1)),
        ("outputs/Y_h.bin", ("accepted", 1)),
    ],
)
def test_a_case_that_must_be_refused_passes_if_it_is(judge, invalid, tmp_path, file, wanted):
    """An output of any name says that it ran."""
    path = tmp_path / "test_lstm_14_shape" / file
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")

    said = judge_c.run(judge, invalid, tmp_path)
    assert (said.cases["lstm_14_shape"][0], said.code) == wanted
    assert ("does not refuse everything" in said.err) == (wanted == ("pass", 0))


def test_options_allow_what_they_name(judge, copy):
    """A refusal and a case that was not run; a run in which nothing is judged is not green."""
    refuse(copy / "right", ID)
    shutil.rmtree(copy / "right" / "test_gru_14_single")
    run = [copy / "pack", copy / "right"]

    assert judge_c.run(judge, *run).code == 1
    assert judge_c.run(judge, "--allow-missing", *run).code == 1
    assert judge_c.run(judge, "--allow-missing", "--allow-refused", *run).code == 0
    assert judge_c.run(judge, "--allow-refused", *run, ID).code == 5


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["*"], lambda name: True),
        (["gru_*"], lambda name: name.startswith("gru_")),
        (["*_14_*", "nothing*14*"], None),
        (["*r*n*_1*4*", ID], lambda name: fnmatchcase(name, "*r*n*_1*4*") or name == ID),
        (["gru"], None),
        (["gru_14_single?"], None),
    ],
)
def test_patterns_choose_cases(judge, copy, words, wanted):
    """`*` is any characters, and all else itself; a pattern that no case has is an error."""
    paths = (copy / "pack", copy / "right")
    every_id = judge_c.run(judge, *paths).cases
    said = judge_c.run(judge, *paths, *words)

    if wanted:
        assert [*said.cases] == [name for name in every_id if wanted(name)]
    else:
        assert (said.code, "has no case" in said.err) == (2, True)


def test_usage_says_where_results_go(judge):
    """On request, with 0; without arguments or with an unknown option, with 2."""
    assert "RESULTS/test_ID/outputs/Y.bin" in judge_c.run(judge, "--help").out
    assert [judge_c.run(judge, *words).code for words in (("--help",), (), ("--bogus", "1"))] == [
        0,
        2,
        2,
    ]


def sealed(pack, changed_id=ID):
    """Give a changed manifest and a changed case the checksums that they now have."""
    path = pack / MANIFEST
    text = path.read_text()
    case = pack / f"test_{changed_id}" / "case.json"
    if case.is_file():
        digest = hashlib.sha256(case.read_bytes()).hexdigest()
        text = re.sub(rf'("test_{changed_id}/case.json": ")[0-9a-f]*', rf"\g<1>{digest}", text)
    entries = re.sub(r',\n"digest": "[0-9a-f]*"\n}\n$', "\n}\n", text)
    digest = hashlib.sha256(entries.encode()).hexdigest()
    body = entries.removesuffix("\n}\n")
    path.write_text(f'{body},\n"digest": "{digest}"\n}}\n')


def test_levels_that_every_answer_meets_judge_nobody(judge, units, tmp_path):
    """Under a reading that is declared, too: the case is skipped, and the run is not green."""
    source, vectors = units
    name = "round=truncate"
    vector = next(each for each in vectors if name in each.alternatives)
    pack = shutil.copytree(source, tmp_path / "pack")
    path = pack / f"test_{vector.id}" / "case.json"
    case = json.loads(path.read_text())
    for output in case["data_sets"][0]["other_readings"][name]:
        if output["dtype"] != "float32":
            every = np.iinfo(output["dtype"])
            wide = np.full(output["shape"], every.max - every.min, np.float32).tobytes()
            output["tolerance"] = file = f"readings/{name}/wide_{output['name']}.bin"
            (path.parent / file).write_bytes(wide)
            output["tolerance_sha256"] = hashlib.sha256(wide).hexdigest()
    path.write_text(json.dumps(case))
    sealed(pack, vector.id)
    judge_c.write_all(
        tmp_path / "results", [Rule(reading={"round": "truncate"}).declared(vector)], RIGHT
    )

    said = judge_c.run(judge, "--reading", name, pack, tmp_path / "results", vector.id)
    assert [each[0] for each in said.cases.values()] == ["skipped"]
    assert said.code != 0


def case_of(pack):
    """The content of `case.json`."""
    return json.loads((pack / f"test_{ID}" / "case.json").read_text())


def put_case(pack, case):
    """Replace `case.json`."""
    text = case if isinstance(case, bytes) else json.dumps(case).encode()
    (pack / f"test_{ID}" / "case.json").write_bytes(text)


def changed(change):
    """Return a function that lets another change the content of `case.json`."""

    def spoil(pack):
        case = case_of(pack)
        change(case["data_sets"][0]["outputs"][0], case)
        put_case(pack, case)

    return spoil


def replaced(*parts):
    """Return a function that replaces a text of the manifest."""

    def spoil(pack):
        path = pack / MANIFEST
        assert parts[0] in path.read_text()
        path.write_text(path.read_text().replace(*parts))

    return spoil


HOSTILE = {
    "a path out": (changed(lambda o, _: o.update(file="../../x")), 2, "leaves the case's folder"),
    "an absolute path": (changed(lambda o, _: o.update(file="/etc/passwd")), 2, "leaves"),
    "an empty path": (changed(lambda o, _: o.update(file="")), 2, "leaves"),
    "an escape in a path": (changed(lambda o, _: o.update(file="a\x1b[31m")), 2, "leaves"),
    "a huge shape": (changed(lambda o, _: o.update(shape=[1 << 62] * 4)), 2, "too large"),
    "an overflowing shape": (changed(lambda o, _: o.update(shape=[10**30])), 2, "whole number"),
    "a negative shape": (changed(lambda o, _: o.update(shape=[-4])), 2, "whole number"),
    "another shape": (changed(lambda o, _: o.update(shape=[4])), 2, "has more than"),
    "many dimensions": (changed(lambda o, _: o.update(shape=[1] * 33)), 2, "dimensions"),
    "a text for a shape": (changed(lambda o, _: o.update(shape="4")), 2, "'shape'"),
    "an unknown dtype": (changed(lambda o, _: o.update(dtype="int64")), 3, "dtype int64"),
    "another checksum": (changed(lambda o, _: o.update(sha256="0" * 64)), 2, "checksum"),
    "no checksum": (changed(lambda o, _: o.pop("sha256")), 2, "'sha256'"),
    "a tolerance of 1": (changed(lambda o, _: o.update(tolerance=1)), 2, "must be a text"),
    "no tolerance": (changed(lambda o, _: o.pop("tolerance")), 2, "must be a text"),
    "a long name": (changed(lambda o, _: o.update(name="Y" * 999)), 2, "cannot name"),
    "a name with a slash": (changed(lambda o, _: o.update(name="../Y")), 2, "cannot name"),
    "many outputs": (changed(lambda o, c: c["data_sets"][0].update(outputs=[o] * 99)), 3, "many"),
    "no data sets": (changed(lambda _, c: c.update(data_sets=[])), 2, "no data sets"),
    "another id": (changed(lambda _, c: c.update(id="x")), 2, "id is 'x'"),
    "another format": (changed(lambda _, c: c.update(format="x")), 2, "format is 'x'"),
    "neither result nor rejection": (changed(lambda _, c: c.update(expect="")), 2, "expect"),
    "deep": (lambda p: put_case(p, b"[" * 10**5), 2, "levels"),
    "deep objects": (lambda p: put_case(p, b'{"a":' * 10**5), 2, "levels"),
    "a key twice": (lambda p: put_case(p, b'{"id": 1, "id": 2}'), 2, "twice"),
    "a key twice, escaped": (lambda p: put_case(p, b'{"id": 1, "\\u0069d": 2}'), 2, "twice"),
    "NaN": (lambda p: put_case(p, b'{"id": NaN}'), 2, "a value is wanted"),
    "a long number": (lambda p: put_case(p, b"[" + b"1" * 99 + b"]"), 2, "too long"),
    "a truncated text": (lambda p: put_case(p, b'{"id": "lst'), 2, "without an end"),
    "a truncated escape": (lambda p: put_case(p, b'{"id": "\\u00'), 2, "escape"),
    "half a surrogate": (lambda p: put_case(p, b'["\\ud800"]'), 2, "surrogate"),
    "not UTF-8": (lambda p: put_case(p, b'["\xc0\x80"]'), 2, "UTF-8"),
    "a truncated character": (lambda p: put_case(p, b'["\xe2\x82'), 2, "UTF-8"),
    "more after the end": (lambda p: put_case(p, b"{} {}"), 2, "after the end"),
    "nothing": (lambda p: put_case(p, b""), 2, "is wanted"),
    "an array for a case": (lambda p: put_case(p, b"[]"), 2, "object is wanted"),
    "a NUL": (lambda p: put_case(p, b'{"format": "\\u0000"}'), 2, "NUL"),
    "a case that is lost": (lambda p: shutil.rmtree(p / f"test_{ID}"), 2, "is missing"),
    "a tensor that is lost": (lambda p: output(p, ID).unlink(), 2, "is missing"),
    "a tensor that was altered": (lambda p: swap(output(p, ID)), 2, "checksum"),
    "an id out of the pack": (replaced(f'"id": "{ID}"', '"id": "../x"'), 2, "cannot name a case"),
    "another layout": (replaced('"layout": "raw"', '"layout": "onnx"'), 2, "convert PACK OUT"),
    "another manifest": (replaced('"rnncli-pack-1"', '"rnncli-pack-9"'), 2, "rnncli-pack-9"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pack_is_refused(guarded, copy, name):
    """In one line without control characters; no access out of bounds, no undefined behaviour."""
    spoil, code, words = HOSTILE[name]
    spoil(copy / "pack")
    sealed(copy / "pack")

    said = judge_c.run(guarded, copy / "pack", copy / "right", ID)
    if "id out" in name:
        said = judge_c.run(guarded, copy / "pack", copy / "right")
    assert (said.code, said.err.count("\n")) == (code, 1)
    assert words in said.err
    assert "\x1b" not in said.err


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_a_tolerance_that_accepts_anything_is_refused(guarded, copy, value):
    """Even if its checksum is right."""
    path = copy / "pack" / f"test_{ID}" / "tolerances" / "Y.bin"
    fill(path, value)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    changed(lambda o, _: o.update(tolerance_sha256=digest))(copy / "pack")
    sealed(copy / "pack")

    said = judge_c.run(guarded, copy / "pack", copy / "right", ID)
    assert (said.code, "negative, infinite or NaN" in said.err) == (2, True)


@pytest.mark.parametrize(("part", "code"), [(0.0499, 0), (0.0501, 2), (100, 2)])
def test_a_tolerance_wider_than_generation_allows_is_refused(guarded, copy, part, code):
    """As by rnncli: it may have 5 % of the largest value."""
    folder = copy / "pack" / f"test_{ID}"
    path = folder / "tolerances" / "Y.bin"
    fill(path, part * np.abs(np.fromfile(folder / "outputs" / "Y.bin", "<f4")).max())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    changed(lambda o, _: o.update(tolerance_sha256=digest))(copy / "pack")
    sealed(copy / "pack")
    resealed(copy / "pack")
    pack = open_pack(copy / "pack")

    said = judge_c.run(guarded, copy / "pack", copy / "right", ID)
    assert (said.code, "too wide" in said.err) == (code, code == 2)
    with pytest.raises(UnreadableFile, match="too wide") if code else nullcontext():
        pack.read(pack.case(ID))


@pytest.mark.parametrize(
    ("tag", "reading"),
    [("reading:zero-length", "clip-scope=gates"), ("reading:clip-scope", "clip-scope=activations")],
    ids=["without a tag", "its own"],
)
def test_a_reading_that_the_case_does_not_contest_is_refused(guarded, copy, tag, reading):
    """As by rnncli: another reading has a tag, and is not the case's own."""
    folder = copy / "pack" / "test_lstm_14_clip"
    case = json.loads((folder / "case.json").read_text())
    for call in case["data_sets"]:
        call["other_readings"] = dict.fromkeys([reading], *call["other_readings"].values())
    (folder / "case.json").write_text(json.dumps(case))
    resealed(copy / "pack")
    path = copy / "pack" / MANIFEST
    path.write_text(path.read_text().replace("reading:clip-scope", tag))
    sealed(copy / "pack")

    said = judge_c.run(guarded, copy / "pack", copy / "right", "lstm_14_clip")
    assert (said.code, "does not contest" in said.err) == (2, True)


def test_a_pack_that_was_changed_is_refused(guarded, copy):
    """The digest covers the manifest, which covers each case, which covers each tensor."""
    replaced('"suite": "twice"', '"suite": "thrice"')(copy / "pack")
    assert "digest" in judge_c.run(guarded, copy / "pack", copy / "right").err
    sealed(copy / "pack")
    assert judge_c.run(guarded, copy / "pack", copy / "right").code == 0
    put_case(copy / "pack", case_of(copy / "pack"))
    assert "checksum in the manifest" in judge_c.run(guarded, copy / "pack", copy / "right").err


@pytest.mark.parametrize("words", [("pack", "nowhere"), ("nowhere", "right"), ("right", "right")])
def test_a_wrong_path_is_an_error(guarded, copy, words):
    """No results at all are a wrong path, not missing cases."""
    assert judge_c.run(guarded, *[copy / word for word in words]).code == 2


def test_a_wrong_path_is_all_that_is_told(judge, copy):
    """Before any case; an option behind the pack is said to be one."""
    said = judge_c.run(judge, copy / "pack", copy / "nowhere")
    assert (said.out, said.err) == ("", f"judge: {copy / 'nowhere'}: no such folder\n")
    late = judge_c.run(judge, copy / "pack", copy / "right", "--allow-missing")
    assert late.err.endswith("has no case '--allow-missing'; options come before PACK\n")


def test_a_pack_is_not_judged_by_itself(guarded, copy):
    """Its outputs are the expected ones: all would pass, and nothing was computed."""
    for results in ("pack", "other"):
        if results == "other":
            shutil.copytree(copy / "pack", copy / "other")
        said = judge_c.run(guarded, copy / "pack", copy / results)
        assert (said.code, said.out) == (2, "")
        assert "is a pack, whose outputs are the expected ones" in said.err


def test_right_and_wrong_results_touch_nothing_out_of_bounds(guarded, copy):
    """The same run as without sanitizers."""
    assert judge_c.run(guarded, copy / "pack", copy / "right").code == 0
    fill(output(copy / "right", ID), np.nan)
    assert judge_c.run(guarded, copy / "pack", copy / "right").code == 1
    assert judge_c.run(guarded, copy / "pack", copy / "right", "no_such_case").code == 2


@pytest.fixture(scope="module")
def stepped(tmp_path_factory):
    """A raw pack with the signals of every step, and right outputs for it."""
    root = tmp_path_factory.mktemp("stepped")
    plan = GenerationPlan(suite=small_suite(TEXT).with_steps(), layout="raw")
    assert generate(plan, root / "pack", lambda _: None).failed == ()
    judge_c.write_all(root / "results", [*open_pack(root / "pack").vectors()], RIGHT)
    return root


@pytest.mark.parametrize("error", [0, 1e-7, 1e-3, np.nan])
@pytest.mark.parametrize("chosen", ["every", "some", "none"])
def test_it_agrees_on_signals_of_every_step(guarded, stepped, tmp_path, chosen, error):
    """Those that a device has recorded; of each call, beside its outputs."""
    pack = stepped / "pack"
    shutil.copytree(stepped / "results", tmp_path / "results")
    vectors = [*open_pack(pack).vectors()]
    for vector in vectors:
        for call in vector.calls:
            kept = {"every": [*call.steps.outputs], "some": ["state_H"], "none": []}[chosen]
            signals = {name: call.steps.outputs[name].copy() for name in kept}
            for values in signals.values():
                values.flat[0] += np.float32(error)
            judge_c.write_signals(tmp_path / "results", call, signals)
    said = judge_c.run(guarded, pack, tmp_path / "results")

    assert said.cases == judge_c.judged(tmp_path / "results", vectors), said.err
    is_wrong = chosen != "none" and not abs(error) < 1e-6
    assert said.code == int(is_wrong)
    assert ("steps/state_H[0,0,0,0]: got" in said.out) >= is_wrong


def test_it_names_the_first_wrong_signal(guarded, stepped, tmp_path):
    """By the time of its direction, then by order of evaluation, as `verify` does."""
    pack = stepped / "pack"
    shutil.copytree(stepped / "results", tmp_path / "results")
    vectors = [*open_pack(pack).vectors()]
    for vector in vectors:
        signals = {name: each.copy() for name, each in vector.steps.outputs.items()}
        early, late = [*signals][:2]
        last = len(signals[late]) - 1
        signals[early][1:last] += np.float32(1)
        signals[late][[0, last], :, -1, 1] += np.float32(1e-2)
        judge_c.write_signals(tmp_path / "results", vector, signals)
    said = judge_c.run(guarded, pack, tmp_path / "results")
    subject = results_subject(tmp_path / "results")
    messages = [judged(vector, subject.attempt(vector)).verdict.message for vector in vectors]

    for vector, message in zip(vectors, messages, strict=True):
        late = [*vector.steps.outputs][1]
        direction = ", direction 0" * (len(vector.recurrence.directions) > 1)
        assert message == (
            f"the first wrong signal is {late} at t=0{direction}, sequence 2, unit 1"
        )
        assert f"{message}; " in said.out


def test_a_damaged_list_of_signals_is_refused(guarded, stepped, tmp_path):
    """As any other part of a case is."""
    pack = Path(shutil.copytree(stepped / "pack", tmp_path / "pack"))
    case = case_of(pack)
    case["data_sets"][0]["steps"] = {"pre_i": 1}
    put_case(pack, case)
    sealed(pack)

    assert judge_c.run(guarded, pack, stepped / "results").code == 2
