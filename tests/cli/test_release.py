"""Claims about `rnncli release`."""

import json
from pathlib import Path

CORE = Path(__file__).parents[2] / "vectors" / "core"


def test_a_table_names_each_archive(rnncli, tmp_path):
    """As do JSON lines; a layout that is named twice is one archive."""
    dist = tmp_path / "dist"
    done = rnncli("release", dist, CORE, "--format", "c", "--format", "c")
    again = rnncli("release", dist, CORE, "--format", "c", "--json")

    (row,) = done.rows
    assert {name: str(value) for name, value in json.loads(again.out).items()} == row
    assert (row["layout"], row["cases"]) == ("c", "188")
    assert int(row["bytes"]) == (dist / row["archive"]).stat().st_size


def test_what_is_no_pack_is_refused(rnncli, tmp_path):
    """With exit code 2, before anything is written."""
    done = rnncli("release", tmp_path / "dist", tmp_path)

    assert done.code == 2
    assert str(tmp_path) in done.err
    assert not (tmp_path / "dist").exists()
