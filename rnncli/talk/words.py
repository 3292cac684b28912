"""Words for reports and messages: numbers, what agrees with one, and what strangers wrote.

Names in models, packs and files are untrusted: they are shown without escape sequences.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

# Characters of what a stranger wrote that are shown.
LONGEST_SHOWN = 300
# Names that stand for a long list.
MOST_LISTED = 3
# The largest meaningful multiple of a tolerance.
MOST_TIMES = 1000
# The largest meaningful distance in ulp: 1 and -1 are 2 billion ulp apart in float32.
MOST_ULP = 1e6


def plural(count: int, one: str, many: str = "") -> str:
    """Return the word, by default one with an s, for a count: 1 case, 2 cases; 1 fails, 2 fail."""
    return one if count == 1 else many or f"{one}s"


def counted(count: int, one: str, many: str = "") -> str:
    """Return a count and the word that goes with it, as `plural` has it."""
    return f"{count} {plural(count, one, many)}"


def listed(names: Sequence[str], most: int = MOST_LISTED) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def visible(text: str) -> str:
    r"""Return text with all unprintable characters escaped except line feeds and tabs.

    Escapes are Python's, such as \x1b for ESC: for control characters, marks of direction or zero
    width, surrogates and unassigned code points.
    """
    text = text.replace("\r\n", "\n")
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def marked(text: str) -> str:
    """Return text as `visible` does, each line after the first marked as text of a stranger."""
    return re.sub(r"\n(?!\| )", "\n| ", visible(text))


def one_line(text: str) -> str:
    r"""Return text as `visible` does, on one line: a line feed becomes \n, a tab \t."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def printable(text: str) -> str:
    """Return one line of bounded length without control characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= LONGEST_SHOWN else line[:LONGEST_SHOWN] + "..."


def shown(cell: Any) -> str:
    """Return a cell as text: floats with six digits, absent values as a dash."""
    if cell is None:
        return "-"
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def times(margin: float | None) -> str:
    """Return a margin as a factor: 0.3x, 719x, over 1000x; a dash if nothing was compared."""
    if margin is None:
        return "-"
    if not margin <= MOST_TIMES:
        return f"over {MOST_TIMES}x"
    return f"{margin:.0f}x" if margin >= 100 else f"{margin:.3g}x"


def up_to(max_ulp: float | None) -> str:
    """Return the largest error in units in the last place in words, or "" if meaningless."""
    return "" if max_ulp is None or max_ulp > MOST_ULP else f" (up to {shown(max_ulp)} ulp)"


def ulp_text(max_ulp: float) -> str:
    """Write units in the last place for a cell of a table."""
    return f"over {MOST_ULP:g}" if max_ulp > MOST_ULP else f"{max_ulp:.3g}"


def index_text(index: tuple[int, ...]) -> str:
    """Return an element's index as text."""
    return f"[{','.join(map(str, index))}]"


def inline(text: str) -> str:
    """Escape text for Markdown, so that it has no markup, links, new lines or new cells."""
    from html import escape  # takes a millisecond, which most commands save

    flat = " ".join(visible(text).split())
    marked = re.sub(r"([\\`*_{}\[\]()#+!|~$@:])", r"\\\1", escape(flat, quote=False))
    return re.sub(r"(www)\.", r"\1\.", marked, flags=re.IGNORECASE)  # autolinked by GitHub


def code(text: str) -> str:
    """Return text as code of Markdown on one line, with other marks for those that would end it."""
    flat = " ".join(visible(text).split()).replace("`", "'")
    return f"`{flat}`"
