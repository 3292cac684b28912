"""The pictures of the pages: a failing verdict at a terminal, and the top of a report.

`PYTHONPATH=tests python -m support.pictures` writes them to docs/pictures. Both need ONNX Runtime,
whose bugs they show; neither needs a browser, since the report is drawn by the one that shows it.
"""

import io
import re
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

from rich.console import Console
from rich.text import Text
from support.documentation import ROOT, checkout, environment
from support.terminals import COLUMNS, shown

FOLDER = ROOT / "docs/pictures"
SVG, XHTML = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xhtml}"
VERDICT = """\
rnncli verify vectors/core --runtime onnxruntime \\
    -k id:gru_22_softplus --diagnose"""
REPORT = "rnncli verify vectors/core --runtime onnxruntime -k lstm_22 --diagnose --html report.html"
FETCHED = re.compile(r"@font-face \{.*?\}", re.DOTALL)  # a picture of a page may fetch no fonts
ADVANCE = 12.2  # of a character, in rich's SVG
# What of the report is in the picture, and its size, in which it fits without a browser's help.
TOP = re.compile(r"<header>.*?(?=<section aria-labelledby=\"features\">)", re.DOTALL)
STYLE = re.compile(r"<style>\n(.*?)</style>", re.DOTALL)
WIDTH, HEIGHT = 920, 840
PAGE = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">
<style><![CDATA[
{style}]]></style>
<foreignObject width="{width}" height="{height}">
<body xmlns="http://www.w3.org/1999/xhtml" style="height: {height}px">
{top}</main>
</body>
</foreignObject>
</svg>
"""


def failing(command, folder):
    """Run a command at a terminal with colours; return what it shows of cases that fail."""
    colours = {name: value for name, value in environment().items() if name != "NO_COLOR"}
    code, printed = shown(
        ["bash", "-c", command], cwd=folder, env={**colours, "TERM": "xterm-256color"}
    )
    assert code == 1, printed
    return printed


def verdict(folder):
    """Return what a terminal of 80 columns shows of a case that fails, as rich exports it."""
    printed = failing(VERDICT, folder)
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for line in Text.from_ansi(f"$ {VERDICT}\n{printed}").split():
        line.rstrip()
        # A terminal breaks lines where it ends, not between words.
        for row in line.divide(range(COLUMNS, len(line), COLUMNS)):
            console.print(row, soft_wrap=True)
    return FETCHED.sub("", console.export_svg(title="", unique_id="terminal"))


def report(folder):
    """Return the top of a report of failing cases: the page's own elements and style."""
    failing(REPORT, folder)
    page = (folder / "report.html").read_text("utf-8")
    return PAGE.format(
        width=WIDTH,
        height=HEIGHT,
        style=STYLE.search(page)[1],
        top=TOP.search(page)[0].replace(" hidden>", ' hidden="">'),
    )


PICTURES = {"verdict": verdict, "report": report}


def text(picture):
    """Return the text of a picture by lines, without fonts, ids and places."""
    root = ET.fromstring(picture)  # noqa: S314 -- ours
    body = root.find(f".//{XHTML}body")
    if body is not None:
        return "\n".join(filter(None, map(str.strip, body.itertext())))
    rows = {}
    for part in root.iter(f"{SVG}text"):
        if part.text != "\n":
            x, y = (float(part.get(place)) for place in "xy")
            rows[y] = rows.get(y, "").ljust(round(x / ADVANCE)) + part.text.replace("\xa0", " ")
    return "".join(row if len(row) == COLUMNS else f"{row}\n" for row in rows.values())


def write():
    """Write every picture."""
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        with tempfile.TemporaryDirectory() as scratch:
            (FOLDER / f"{name}.svg").write_text(draw(checkout(Path(scratch))), "utf-8")


if __name__ == "__main__":
    write()
