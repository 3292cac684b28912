"""Text of anybody in Markdown: it stays text, whatever stands in it."""

from __future__ import annotations

import re
from html import escape

from rnncli.talk.words import visible


def inline(text: str) -> str:
    """Escape text so that it has no markup, links, new lines or new cells."""
    flat = " ".join(visible(text).split())
    marked = re.sub(r"([\\`*_{}\[\]()#+!|~$@:])", r"\\\1", escape(flat, quote=False))
    return re.sub(r"(www)\.", r"\1\.", marked, flags=re.IGNORECASE)  # autolinked by GitHub


def code(text: str) -> str:
    """Return text as code on one line, with other marks for those that would end it."""
    flat = " ".join(visible(text).split()).replace("`", "'")
    return f"`{flat}`"
