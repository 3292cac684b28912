"""Claims about the action that judges in CI: its steps run here, as a runner would run them."""

from pathlib import Path

import pytest
from support.github_action import ACTION, REFERENCE, ROOT, ROWS, Runner
from support.small_suite import TEXT

FEW = "-k 'id:gru_14_clip or id:lstm_14_clip'"


def test_every_reference_is_to_something_that_there_is():
    """Inputs are declared; outputs are of steps that have that id."""
    text = (ACTION / "action.yml").read_text("utf-8")
    names = {match.split(".")[1] for match in REFERENCE.findall(text) if match.startswith("inputs")}
    steps = {match.split(".")[1] for match in REFERENCE.findall(text) if match.startswith("steps")}

    assert names == set(ROWS["inputs"])
    assert steps <= {step.get("id") for step in ROWS["runs"]["steps"]}


def test_a_pack_is_judged_and_reported(tmp_path):
    """The summary of the job is the Markdown; the reports are uploaded; no cache is asked."""
    inputs = {"pack": str(ROOT / "vectors/core"), "subject": "--backend numpy", "args": FEW}
    job = Runner(tmp_path, inputs | {"extras": "numba"}).run()
    summary = (tmp_path / "summary.md").read_text("utf-8")

    assert job.code == 0
    assert job.values["steps.verify.outputs.exit-code"] == "0"
    assert "2 cases" in summary
    assert {path.name for path in (tmp_path / "rnncli-reports").iterdir()} == {
        *("verify.md", "verify.html", "verify.xml")
    }
    assert job.used == ["actions/setup-python", "actions/upload-artifact"]
    path, bracket, extras = job.installed.partition("[")
    assert Path(path).resolve() == ROOT
    assert bracket + extras == "[report,numba]"


def test_a_pack_that_the_repository_has_is_taken_by_its_name(tmp_path):
    """Nothing is made, nothing more is installed, and the report names the folder."""
    job = Runner(tmp_path, {"subject": "--backend numpy", "args": FEW}).run()

    assert job.code == 0
    assert job.values["steps.pack.outputs.folder"] == str(ROOT / "vectors/core")
    assert "actions/cache" not in job.used
    assert job.installed.endswith("[report]")


def test_a_wrong_implementation_fails_the_job_with_its_reports(tmp_path):
    """Of two cases one is known to fail; the other is named in the summary."""
    (tmp_path / "known.txt").write_text("gru_14_clip  clip comes later\n")
    subject = "--backend mutant:clip-ignored"
    pack = str(ROOT / "vectors/core")
    inputs = {"pack": pack, "subject": subject, "args": FEW, "xfails": "known.txt"}
    job = Runner(tmp_path, inputs | {"python-version": ""}).run()
    summary = (tmp_path / "summary.md").read_text("utf-8")

    assert job.code == 1
    assert job.values["steps.verify.outputs.exit-code"] == "1"
    assert "1 of 2 cases fail" in summary
    assert "lstm_14_clip" in summary
    assert job.used == ["actions/upload-artifact"]


@pytest.mark.parametrize("subject", ["--backend numpy", "--backend numpy 'open", '"'])
@pytest.mark.parametrize("args", ["-k 'id:gru_14_clip --min-cases 60", "don't", '-k "two\nlines"'])
def test_a_quote_that_does_not_end_on_its_line_is_not_green(tmp_path, subject, args):
    """No option behind it is dropped: nothing is judged."""
    job = Runner(tmp_path, {"subject": subject, "args": args}).run()

    assert (job.code, job.values["steps.verify.outputs.exit-code"]) == (2, "2")
    assert not (tmp_path / "rnncli-reports/verify.md").exists()


@pytest.mark.parametrize("pack", ["missing/pack", "vectors; touch pwned", "../vectors/core", ".."])
def test_nothing_in_an_input_is_run(tmp_path, pack):
    """Words are split as by a shell, but no command stands in them."""
    subject = "--backend '$(touch pwned); `touch pwned`' ; touch pwned && touch pwned"
    job = Runner(tmp_path, {"pack": pack, "subject": subject}, hit=True).run()

    assert job.code == 2
    assert not (tmp_path / "pwned").exists()


def test_the_pack_of_a_suite_is_made_unless_the_cache_has_it(tmp_path):
    """The name in the cache depends on the suite; what is cached is not made again."""
    keys = []
    for name, text, hit in (
        ("first", TEXT, False),
        ("cached", TEXT, True),
        ("other", TEXT.replace("seed: 11", "seed: 12"), True),
    ):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "small.yaml").write_text(text)
        inputs = {"pack": "small.yaml", "subject": "--backend numpy", "args": "-k clip"}
        job = Runner(folder, inputs, hit=hit).run()
        keys.append(job.values["steps.pack.outputs.key"])
        made = (folder / "temp" / "rnncli-pack" / "manifest.json").is_file()
        assert made == (not hit)
        assert job.code == (2 if hit else 0)  # this cache only says that it has the pack
        assert "actions/cache" in job.used
        assert job.installed.endswith("[report,certified]")

    assert keys[0] == keys[1] != keys[2]


def test_a_run_that_judges_nothing_is_not_green(tmp_path):
    """Options that only print something leave no report; one of earlier stays, and is not it."""
    earlier = tmp_path / "rnncli-reports/verify.md"
    earlier.parent.mkdir()
    earlier.write_text("## all pass")
    job = Runner(tmp_path, {"pack": str(ROOT / "vectors/core"), "subject": "--help"}).run()

    assert (job.code, job.values["steps.verify.outputs.exit-code"]) == (5, "5")
    assert not (tmp_path / "summary.md").exists()
    assert earlier.read_text("utf-8") == "## all pass"
