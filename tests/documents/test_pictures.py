"""The pictures of the pages show what commands print today."""

import re

import pytest
from support.documentation import ROOT, checkout, pages, same
from support.pictures import FOLDER, PICTURES, text
from support.terminals import unfolded

KEPT = {path.stem: path.read_text("utf-8") for path in FOLDER.iterdir()}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_shows_what_is_printed_today(name, tmp_path):
    """Its text, times and versions aside; `python -m support.pictures` writes it anew."""
    pytest.importorskip("onnxruntime")
    made = PICTURES[name](checkout(tmp_path))

    assert same(unfolded(text(KEPT[name])), unfolded(text(made)), drawn=True), text(made)


def test_every_picture_is_made_shown_and_fetches_nothing():
    """By the script, on a page, with words for those who do not see it."""
    shown = re.findall(r"!\[(.+)\]\((\S+)\)", "".join(page.read_text("utf-8") for page in pages()))

    assert set(KEPT) == set(PICTURES) == {path.split("/")[-1][:-4] for _, path in shown}
    for picture in KEPT.values():
        addresses = set(re.findall(r'(?<!xmlns=")\bhttps?://\S+|url\((?!#)|\bhref=".', picture))
        assert addresses <= {"https://www.textualize.io", 'href="#'}


def test_readme_shows_both():
    """Before anything is installed."""
    readme = (ROOT / "README.md").read_text("utf-8")

    assert all(f"](docs/pictures/{name}.svg)" in readme for name in PICTURES)
