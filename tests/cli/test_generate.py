"""Claims about `rnncli bench generation`; the rest is transcripts/generate.txt."""

import json

from rnncli.cli.group import COMMANDS


def test_the_benchmark_measures_every_way(spawned, tmp_path):
    """Each way makes its cases and has a rate; what it wrote is gone."""
    done = spawned(
        *("bench", "generation", "--cases", 30, "--rounds", 1, "--scratch", tmp_path, "--json")
    )
    records = [json.loads(line) for line in done.out.splitlines()]

    assert [record["way"] for record in records] == [
        "float64",
        "float64, several processes",
        "certified",
    ]
    assert all(record["cases a second"] > 0 for record in records)
    assert list(tmp_path.iterdir()) == []


def test_help_names_every_command():
    """`generate` and `bench` are in the table that `--help` prints."""
    assert {"generate", "bench", "list"} <= set(COMMANDS)
