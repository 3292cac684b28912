"""Claims about `rnncli report`: it says of a run what `rnncli verify` said."""

from __future__ import annotations

from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "vectors" / "core"
FILES = {"junit": "xml", "markdown": "md", "html": "html"}


def files(folder):
    """The options that write a report of each kind into a folder."""
    folder.mkdir()
    return [word for kind, end in FILES.items() for word in (f"--{kind}", folder / f"run.{end}")]


@pytest.fixture
def judged(rnncli, tmp_path):
    """Judge a backend by a few cases: the file of its lines, and what was said."""

    def judge(backend, *more):
        path = tmp_path / f"{backend.replace(':', '_')}.jsonl"
        run = "verify", CORE, "--backend", backend, "-k", "gru_14_clip", "--json"
        outcome = rnncli(*run, *more)
        path.write_text(outcome.out)
        return path, outcome

    return judge


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("numpy",), 0),
        (("mutant:clip-ignored",), 1),
        (("mutant:clip-ignored", "--diagnose"), 1),
        (("numpy", "--max-ulp", "1e30"), 5),
    ],
)
def test_a_run_is_reported_as_it_was(rnncli, judged, tmp_path, words, code):
    """With its exit code, its words, its lines and the same bytes of every file."""
    path, said = judged(*words, *files(tmp_path / "first"))
    again = rnncli("report", path, "--json", *files(tmp_path / "again"))

    assert (again.code, again.out, again.err) == (said.code, said.out, said.err)
    assert said.code == code
    for end in FILES.values():
        first, second = (tmp_path / name / f"run.{end}" for name in ("first", "again"))
        assert second.read_bytes() == first.read_bytes()


def test_without_json_it_is_the_text_of_verify(rnncli, judged):
    """Failures with their reasons, and the counts."""
    path, said = judged("mutant:clip-ignored")
    again = rnncli("report", path)

    assert again.rows[-1]["fails"] != "0"
    assert "FAIL gru_14_clip\n  Y: " in again.err
    assert again.err.endswith(said.err)


def test_of_several_runs_the_worst_decides(rnncli, judged, tmp_path):
    """Each is printed; a file is written of one."""
    paths = [judged(backend)[0] for backend in ("mutant:clip-ignored", "numpy")]
    both = rnncli("report", *paths)
    written = rnncli("report", *paths, "--junit", tmp_path / "run.xml")

    assert both.code == 1
    assert both.err.count("against") == 2
    assert written.code == 2
    assert "--junit is written of one run, and there are 2; `rnncli site`" in written.err
    assert not (tmp_path / "run.xml").exists()


def test_shards_are_one_run(rnncli, tmp_path):
    """With the cases of both, in the pack's order; each alone is an error."""
    shards = [tmp_path / f"{k}.jsonl" for k in (1, 2)]
    for k, path in enumerate(shards, 1):
        run = "verify", CORE, "--backend", "numpy", "-k", "gru_14_clip", "--shard", f"{k}/2"
        path.write_text(rnncli(*run, "--json").out)
    whole, half = rnncli("report", *shards), rnncli("report", shards[0])
    every = rnncli("verify", CORE, "--backend", "numpy", "-k", "gru_14_clip")

    assert whole.code == 0
    assert whole.rows == every.rows
    assert half.code == 2
    assert "lacks shard 2/2" in half.err


def test_a_plot_is_drawn_of_margins(rnncli, judged, tmp_path):
    """Errors over time are not in the lines."""
    assert rnncli("report", judged("numpy")[0], "--plot", tmp_path / "run.svg").code == 0
    assert (tmp_path / "run.svg").read_text("utf-8").count("<svg") == 1
