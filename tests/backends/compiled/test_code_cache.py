"""Compiled code on disk is ours, whole, or not used; a command never fails for it."""

from __future__ import annotations

import os

import numpy as np
import pytest

from rnncli.errors import RnncliWarning

numba = pytest.importorskip("numba")

from rnncli.backends.compiled import compiling  # noqa: E402


def triple(value):
    """Be compiled in no time."""
    value[0] *= 3


@pytest.fixture
def ours(tmp_path, monkeypatch):
    """A folder that only we can write into, where code is kept."""
    for name in ("distrust", "_warn"):
        monkeypatch.setattr(compiling, name, getattr(compiling, name).__wrapped__)
    monkeypatch.setattr(compiling, "MADE", ["something"])  # said already
    folder = tmp_path / "kept"
    folder.mkdir(mode=0o755)
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def use(ours):
    """Use the function as a new process does; returns whether it was compiled."""

    def use():
        value, before = np.ones(1), len(compiling.MADE)
        compiling.kernel(f"triple {ours}", numba.types.float64[::1])(triple)(value)
        assert value[0] == 3
        return len(compiling.MADE) > before

    return use


DAMAGE = {
    "truncated": lambda content: content[: len(content) // 2],
    "empty": lambda _: b"",
    "garbage": lambda content: b"\x00garbage" * (len(content) // 8),
    "a flipped bit": lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
    "another pickle": lambda _: b"N.",
}


@pytest.mark.parametrize("suffix", ["nbi", "nbc", "sha256"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_damaged_is_compiled_again_and_replaced(use, ours, suffix, damage):
    """Index, code and digest alike."""
    assert [use(), use()] == [True, False]
    (file,) = ours.rglob(f"*.{suffix}")
    file.write_bytes(DAMAGE[damage](file.read_bytes()))

    assert [use(), use()] == [True, False]


def test_a_folder_that_others_write_into_is_not_used(use, ours):
    """What lies there could be anybody's."""
    assert use()
    ours.chmod(0o777)

    with pytest.warns(RnncliWarning, match="is not cached: other users may write to"):
        assert [use(), use()] == [True, True]


def test_the_folder_of_another_user_is_not_used(use, ours):
    """Nor one below it."""
    assert use()
    try:
        os.chown(ours, 12345, 12345)
    except OSError as error:
        pytest.skip(f"cannot give a folder away: {error}")

    with pytest.warns(RnncliWarning, match="belongs to another user"):
        assert use()


def test_a_folder_is_trusted_with_all_above_it(ours):
    """Whoever may rename a folder above can put one of his own in its place."""
    below = ours / "below"
    below.mkdir()
    assert compiling.distrust(below) == ""

    ours.chmod(0o777)
    assert compiling.distrust(below) == f"other users may write to {ours}"
    ours.chmod(0o1777)
    assert compiling.distrust(below) == ""


def test_no_place_to_write_is_a_warning(use, ours, monkeypatch):
    """Every process compiles for itself then."""
    njit = compiling.njit

    def without_place(*, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

    monkeypatch.setattr(compiling, "njit", without_place)

    with pytest.warns(RnncliWarning, match="is not cached: .*no locator available"):
        assert use()
    assert [*ours.iterdir()] == []


@pytest.fixture
def full(monkeypatch):
    """A disk that takes no code, or no digest of it."""

    def full(where, name):
        def refuse(*_, **__):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(where, name, refuse)

    return full


def test_a_full_disk_is_no_failure(use, ours, full):
    """What cannot be kept is used all the same, and not compiled twice."""
    full(os, "replace")

    assert [use(), use()] == [True, True]
    assert len(compiling.MADE) == 3
    assert not list(ours.rglob("*.nbi"))


def test_code_without_a_digest_is_not_used(use, monkeypatch):
    """It may be what an interrupted process has left."""
    with monkeypatch.context() as at_first:
        at_first.setattr(compiling.KernelFiles, "seal", lambda _: None)
        assert use()

    assert [use(), use()] == [True, False]


def test_whole_code_that_does_not_load_is_compiled_again(use, ours):
    """As that of another release of Numba's, whatever it raises."""
    assert use()
    (code,) = ours.rglob("*.nbc")
    code.write_bytes(DAMAGE["garbage"](code.read_bytes()))
    (seal,) = ours.rglob("*.sha256")
    files = object.__new__(compiling.KernelFiles)
    files.folder, files.name, files.seal_file = seal.parent, seal.stem, seal
    files.seal()

    assert [use(), use(), use()] == [True, True, False]
