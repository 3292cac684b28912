"""Nothing but a path below a folder becomes one."""

import pickle

import pytest
from support.tables import every

from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.files.paths import Identifier, RelativePath, below

NOT_PATHS = [
    *("", "/", "/etc/passwd", "..", ".", "a/../b", "../a", "a/..", "a//b", "a/", "./a", "a/."),
    *("a\\b", "..\\a", "C:", "C:/a", "a:b", "a\0b", "a\nb", "a\rb", "\x1b[2J", "\x9b2J", "a\x7f"),
    *("a\u202eb", "a\u2028b", "\ud800", "a\udc80", "a.", "a ", "a./b", "a /b", "...", " "),
    *("x" * 256, "字" * 86, "/".join("x" * 40), "/".join(["x" * 200] * 6), "a/../../../../evil"),
]
PATHS = ["a", "a/b", "test_x/test_data_set_0/input_0.pb", ".hidden", "..a", "a..b", " a", "字" * 85]


@every("text", NOT_PATHS, ids=ascii)
@every("kind", [RelativePath, Identifier])
def test_what_could_lead_out_is_no_path(kind, text):
    """The text is refused in one printable line."""
    with pytest.raises(InvalidRequest) as caught:
        kind(text)

    assert str(caught.value).isprintable()


@pytest.mark.parametrize("text", PATHS, ids=ascii)
def test_a_plain_path_is_one(text):
    """It is the text itself, and travels between processes."""
    assert text == RelativePath(text) == pickle.loads(pickle.dumps(RelativePath(text)))  # noqa: S301


def test_an_identifier_is_one_part():
    """A case's id makes one folder."""
    assert "a" == Identifier("a")
    with pytest.raises(InvalidRequest, match="'a/b' is not a name of one file or folder"):
        Identifier("a/b")


def test_links_below_a_folder_are_not_followed(tmp_path):
    """Neither as the last part nor on the way; the folder itself may be one."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/x").touch()
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack/folder").symlink_to(tmp_path / "outside")
    (tmp_path / "pack/file").symlink_to(tmp_path / "outside/x")
    (tmp_path / "pack/plain").touch()
    (tmp_path / "link").symlink_to(tmp_path / "pack")
    for path in ("folder", "folder/x", "folder/y/z", "file"):
        with pytest.raises(
            UnreadableFile, match=r"is a symbolic link; links in .* are not followed"
        ):
            below(tmp_path / "pack", RelativePath(path))

    assert below(tmp_path / "link", RelativePath("plain")).is_file()
    assert not below(tmp_path / "link", RelativePath("not/there")).exists()
