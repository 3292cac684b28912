"""Harnesses that give canned answers, mutated: a program, or a thread of this process.

Either answers the k-th line that it reads by the bytes of `answers/k`, after it has linked what is
in `files/k` into the folder for outputs, and ends after the last answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fuzz_bases
import fuzz_bytes
import fuzz_trees
from fuzz_places import misplace
from fuzz_process import Box, Command, always, never

from rnncli.subjects import harness
from rnncli.supervision.programs import Ending, Supervised

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Iterator

PROGRAM = """\
#!/bin/sh
k=0
while [ -e answers/$k ] && read -r line && [ "$line" != '{"cmd":"stop"}' ]; do
    folder=${line##*'"dir":"'}
    cp -al files/$k/. "${folder%%'"'*}" 2>/dev/null
    cat answers/$k
    k=$((k + 1))
done
"""
STARTED = """{"version": 1, "implementation":
 {"name": "canned", "version": "1", "language": "sh", "operators": ["RNN", "LSTM"]}}"""
# The data sets in the order in which `verify` asks for them, the last output of each being wrong
# where the subject is.
ASKED = (
    *(("rnn_7_plain", 0), ("lstm_14_clip", 0), ("lstm_14_clip", 1), ("lstm_14_clip", 0)),
    ("rnn_14_shape", 0),
)


PLACES = ("answers", "files", "harness")


class Canned:
    """A thread in the place of a supervised program, so that no input pays for two processes."""

    def __init__(self, *_: object, streams: tuple[int, int], **__: object) -> None:
        self._requests, self._answers = (os.dup(descriptor) for descriptor in streams)
        self._thread = threading.Thread(target=self._answer, daemon=True)
        self._thread.start()

    def _answer(self) -> None:
        with (
            contextlib.suppress(OSError),
            os.fdopen(self._answers, "wb", 0) as answers,
            os.fdopen(self._requests, "rb") as requests,
        ):
            for k, line in enumerate(requests):
                request = json.loads(line)
                if request["cmd"] == "stop":
                    return
                _link(Path(f"files/{k}"), request.get("dir"))
                rest = Path(f"answers/{k}").read_bytes()
                while rest:
                    rest = rest[answers.write(rest) :]
                if not Path(f"answers/{k + 1}").exists():
                    return

    def wait(self, seconds: float) -> Ending | None:
        """Return how it ended; None if it has not in time."""
        self._thread.join(seconds)
        return None if self._thread.is_alive() else Ending(exit=0)

    def end(self) -> Ending:
        """Return how it ended: its streams are closed."""
        return self.wait(1) or Ending(exit=0)


def _link(source: Path, target: str | None) -> None:
    """Give the files of an answer a second name, as it may be given again; files of any kind."""
    for path in source.iterdir() if target and _is_own_folder(source) else ():
        with contextlib.suppress(OSError):
            os.link(path, f"{target}/{path.name}", follow_symlinks=False)


def _is_own_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def messages(box: Box, dice: random.Random) -> Command:
    """What a harness writes, lines and files, mutated; one in fifty is a program of its own."""
    subject = dice.choice((fuzz_bases.RIGHT, fuzz_bases.WRONG, fuzz_bases.PARTLY))
    lines = answers(box, subject)
    if dice.random() < 0.1:
        lines = [dice.choice(lines) for _ in lines]
    for _ in range(dice.choice((1, 1, 2))):
        k = dice.randrange(len(lines))
        lines[k] = fuzz_trees.mutate(lines[k], dice)
    while dice.random() < 0.3:
        misplace(Path("files"), box, dice)
    is_program = dice.random() < 0.02
    put_harness(_contents(lines, dice), is_program=is_program)
    pack = str(box.bases / "pack_onnx")
    more = dice.choice(((), (), ("--json",), ("--trust",), ("-x",), ("--junit", "out.xml")))
    # Refusals of the invalid case show nothing here, as no answer is that of its valid twin.
    cases = dice.choice((("-k", "not Shape"),) * 4 + ((),))
    line = ("verify", pack, "--harness", "./harness", *more, *cases)
    if dice.random() < 0.03:
        line = dice.choice((("diagnose", *line[1:4]), ("smoke", *line[2:4])))
    line = (*line, "--timeout", "9" if is_program else "0.3")
    is_green = never if subject == fuzz_bases.RIGHT else always
    return Command(line, (pack, *PLACES), ("files", "out.xml"), is_green=is_green)


def answers(box: Box, subject: str) -> list[Any]:
    """Return the answers of a subject, the first to `start`; their files are put in place."""
    Path("files").mkdir()
    return [json.loads(STARTED), *(_answer(box, subject, k) for k in range(1, len(ASKED) + 1))]


def put_harness(contents: Iterable[bytes], *, is_program: bool) -> None:
    """Make a harness that answers with these bytes, a program or a thread.

    One whose answer has no end gives no other, since nobody asks for more.
    """
    harness.Supervised = Supervised if is_program else Canned
    Path("harness").write_text(PROGRAM)
    Path("harness").chmod(0o700)
    Path("answers").mkdir()
    for k, content in enumerate(contents):
        Path(f"answers/{k}").write_bytes(content)
        if not content.endswith(b"\n"):
            break


def _contents(lines: Iterable[Any], dice: random.Random) -> Iterator[bytes]:
    """Yield lines as bytes, some of them mutated."""
    for line in lines:
        content = f"{fuzz_trees.write(line)}\n".encode("utf-8", "surrogatepass")
        if dice.random() < 0.05:
            content = dice.choice((content * 2, fuzz_bytes.mutate(content, dice), content[:-1]))
        yield content


def _answer(box: Box, subject: str, k: int) -> dict[str, Any]:
    """Return a subject's k-th answer, and put its files in their place."""
    case, call = ASKED[k - 1]
    place = f"calls/{call}/outputs" if call else "outputs"
    folder = box.bases / f"{subject}_raw" / f"test_{case}" / place
    if not folder.is_dir():
        return {"seq": k, "skipped": True, "message": "no", "issue_url": "https://example.org/1"}
    fuzz_bases.copy(folder, f"files/{k}")
    content = json.loads(fuzz_bases.text(box.bases / f"pack_raw/test_{case}/case.json"))
    shapes = {row["name"]: row["shape"] for row in content["data_sets"][call]["outputs"]}
    return {
        "seq": k,
        "outputs": {
            path.stem: {"file": path.name, "dtype": "float32", "shape": shapes.get(path.stem, [2])}
            for path in sorted(folder.iterdir())
        },
    }
