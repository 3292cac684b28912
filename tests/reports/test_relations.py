"""The report of relations, and the table of them in the documentation."""

from __future__ import annotations

from pathlib import Path

from rnncli.cli.verify import verify
from rnncli.metamorphic.relations import RELATIONS
from rnncli.reports.relations import relation_table

DOCUMENT = Path(__file__).parents[2] / "docs" / "metamorphic.md"


def test_documentation_has_the_table():
    """It is what the rows say."""
    assert relation_table() in DOCUMENT.read_text(encoding="utf-8")


def test_help_names_every_relation():
    """`--relation` lists them in the order of the table."""
    (option,) = (each for each in verify.params if each.name == "relations")

    assert ", ".join(RELATIONS) in option.help
