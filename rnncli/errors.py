"""The package's exceptions: each kind has an exit code, each error a place and a message."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from rnncli.talk.words import one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence


# Messages of exhausted machines.
SHORTAGES = {errno.EAGAIN, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC}
NO_THREAD = "can't start new thread"
NO_ROOM = ("failed to map segment", "annot allocate memory")
NO_FOLDER = "No usable temporary directory"
LONGEST_SENTENCE = 400
# The most characters of a message to the user.
LONGEST_TOLD = 4000
# The least similarity of a suggestion, as measured by difflib.
NEAR = 0.75
SHORT, NEAR_SHORT = 4, 0.65
# What other languages, libraries and dialects call our dtypes and directions.
CALLED = {
    **dict.fromkeys(("float", "single", "fp32", "f32"), "float32"),
    **dict.fromkeys(("double", "fp64", "f64"), "float64"),
    **dict.fromkeys(("half", "fp16", "f16"), "float16"),
    "bf16": "bfloat16",
    **dict.fromkeys(("backward", "backwards"), "reverse"),
    "reverse": "backward",
    "both": "bidirectional",
    "bidirectional": "both",
    **dict.fromkeys(("constant", "constants", "initializer"), "initializers"),
}
# Exit codes from worst to best; that of a batch is its worst.
SEVERITY = (70, 2, 3, 1)

# What a command ends with, and what that means.
EXIT_CODES: Mapping[int, str] = {
    0: "done, and everything agreed",
    1: "ran, and something differs: outputs, a pack that is checked, or lint has findings",
    2: "the request is wrong: usage, unreadable, malformed or invalid input, output that cannot be"
    " written, a plug-in of another package that fails",
    3: "the request is right but not supported here; one line names what is not",
    5: "nothing was selected, or too little of it was answered",
    70: "a bug of rnncli: one line, and `rerun with --traceback`",
    129: "the terminal was closed (SIGHUP)",
    130: "interrupted by Ctrl-C (SIGINT): what was begun is cleaned up; a second one ends at once",
    141: "output pipe closed (SIGPIPE)",
    143: "ended by `kill` (SIGTERM)",
}


class Place(NamedTuple):
    """A place in a text file; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        """Format the place as editors and compilers do."""
        return f"{self.file}:{self.line}:{self.column}"


class Problem(NamedTuple):
    """One violated rule: its subject, a path such as ``("inputs", "P")``, and a sentence."""

    subject: tuple[str, ...]
    sentence: str
    is_unsupported: bool = False  # whether it breaks no rule, but is not evaluated here


class RnncliWarning(UserWarning):
    """A warning about a valid request: surplus alpha values, a dimension assumed to be 1."""


class UndefinedDefault(RnncliWarning):
    """A warning about a value that is not given and that no specification gives a default."""


class NodeFailure(NamedTuple):
    """The node of a model that failed in a run."""

    node: str  # the innermost node as in messages: ``node 'lstm_3' (LSTM-14)``
    makes: tuple[str, ...]  # the outputs of the enclosing node of the model's graph, or its own


class RnncliError(Exception):
    """The base of all expected errors; `str()` is the message to the user."""

    exit_code: ClassVar[int] = 70
    failure: NodeFailure | None = None  # the node that caused it, or None


class InvalidRequest(RnncliError):  # noqa: N818 -- reads well: `except InvalidRequest`
    """The request is wrong: usage, unreadable, malformed or invalid input."""

    exit_code = 2


class Exhausted(InvalidRequest):
    """The request exceeds its limit of memory or time."""


class UnreadableFile(InvalidRequest):
    """A file is missing, truncated, foreign or hostile."""


class ConfigError(InvalidRequest):
    """A YAML file is wrong; the error has all findings with their places."""

    def __init__(self, findings: Iterable[tuple[Place, str]]) -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join(one_line(f"{place}: {words}") for place, words in self.findings))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the error by its arguments."""
        return type(self), (self.findings,)


class InvalidOperator(InvalidRequest):
    """Attributes or inputs violate an operator's specification; raised before any arithmetic."""

    def __init__(self, where: str, problems: Iterable[Problem]) -> None:
        self.where = where
        self.problems = tuple(problems)
        sentences = [problem.sentence for problem in self.problems]
        told = listed(sentences, "; ")
        super().__init__(told if told.startswith(f"{where} ") else f"{where}: {told}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the error by its arguments."""
        return type(self), (self.where, self.problems)


class Unsupported(RnncliError):  # noqa: N818
    """The request is valid but not supported: an operator, a dtype, a missing extra."""

    exit_code = 3


def refusal(where: str, problems: Iterable[Problem]) -> InvalidOperator | Unsupported:
    """Return the error of a node with problems: Unsupported, if they break no rule."""
    error = InvalidOperator(where, problems)
    is_right = all(problem.is_unsupported for problem in error.problems)
    return Unsupported(str(error)) if is_right else error


class NothingSelected(RnncliError):  # noqa: N818
    """No case was selected; an empty run is not a success."""

    exit_code = 5


MOST_LISTED = 8


def listed(words: Sequence[object], between: str = ", ") -> str:
    """Return a list as text: the first few words, and the total if there are more."""
    shown = between.join(map(str, words[:MOST_LISTED]))
    left = len(words) > MOST_LISTED
    return f"{shown}{between}... ({len(words)} in all)" if left else shown


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the nearest known word, or ``""`` if none is near.

    Near means one error per four letters, or one and a half in a word of up to four.
    """
    import difflib  # takes a millisecond and is seldom needed

    folded = {name.casefold(): name for name in known}
    cutoff = NEAR if len(word) > SHORT else NEAR_SHORT
    near = [CALLED.get(word.casefold(), "")]
    if near[0] not in folded:
        near = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=cutoff)
    return f"; did you mean '{folded[near[0]]}'?" if near else ""


def worst_code(codes: Collection[int]) -> int:
    """Return the worst of some exit codes, or 0."""
    return next((code for code in (*SEVERITY, *codes) if code in codes), 0)


def shortened(text: str) -> str:
    """Return a library's message as one line of at most 400 characters."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_SENTENCE else f"{line[:LONGEST_SENTENCE]}..."


def explain(error: BaseException) -> tuple[str, int]:
    """Return the message of a failure for the user, and its exit code."""
    if isinstance(error, ConfigError):
        return str(error), error.exit_code
    if isinstance(error, RnncliError):
        return _told(str(error)), error.exit_code
    if said := _said_by_the_machine(error):
        return _told(said), InvalidRequest.exit_code
    sentence = f"internal error: {type(error).__name__}: {error}; rerun with --traceback"
    return _told(sentence), RnncliError.exit_code


def _told(sentence: str) -> str:
    """Return a message as one line of limited length, however long the names in it."""
    line = one_line(sentence)
    return line if len(line) <= LONGEST_TOLD else f"{line[:LONGEST_TOLD]}..."


def _said_by_the_machine(error: BaseException) -> str:
    """Return the message if the machine, not a bug, caused an error; else ""."""
    if isinstance(error, MemoryError):
        return f"not enough memory{f': {error}' if str(error) else ''}"
    if isinstance(error, OSError) and (error.filename or error.errno in SHORTAGES):
        why, name = error.strerror or str(error), error.filename
        name = os.fsdecode(name) if isinstance(name, str | bytes) else name
        return f"{name}: {why}" if name else why
    if isinstance(error, FileNotFoundError) and NO_FOLDER in str(error):
        return str(error.strerror)
    if isinstance(error, ImportError) and any(sign in str(error) for sign in NO_ROOM):
        return f"not enough memory to load {error.name or 'a library'}"
    return str(error) if isinstance(error, RuntimeError) and str(error) == NO_THREAD else ""
