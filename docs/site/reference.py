"""A hook of mkdocs: writes the reference pages from the code while the site is built.

No page that is made here is kept in the repository, so none can be out of date.
"""

from __future__ import annotations

import ast
import html
import inspect
import posixpath
import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from mkdocs.structure.files import File

import rnncli
from rnncli import weights
from rnncli.backends.backend import Backend
from rnncli.backends.backend_table import describe_backends
from rnncli.cases.fills import FILLS
from rnncli.cases.schemas import config_schema, suite_schema
from rnncli.cases.suite.breakage import KINDS
from rnncli.cases.suite.expansion import STRATEGIES
from rnncli.cli.group import cli
from rnncli.errors import EXIT_CODES, SEVERITY
from rnncli.files.formats import describe_formats
from rnncli.files.formats.format import Format
from rnncli.jobs.workers import EXECUTORS
from rnncli.models.weights.layer import FORMS, HEADER
from rnncli.mutants.catalogue import EVERY
from rnncli.numerics.profiles import ACCUMULATORS, PROFILES
from rnncli.operators import OPERATORS
from rnncli.operators.operator import SYMBOLS
from rnncli.packs.layouts import LAYOUTS
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.cells import CellOptions
from rnncli.recurrence.readings import READINGS
from rnncli.recurrence.recurrence import Recurrence, Result
from rnncli.reports import traceability
from rnncli.reports.operators import as_record
from rnncli.subjects.runtime import Runtime
from rnncli.subjects.runtimes import describe_subjects
from rnncli.verifying.relations.relations import RELATIONS, STREAM_RELATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

DOCS = Path(__file__).parents[1]
PICTURE = "<!-- layers -->"
RECORDS = {"findings", "upstream", "changelog.md"}  # what happened once
SCHEMA_NOTE = (
    "`rnncli schema` writes the JSON Schema, with which an editor completes and checks keys;",
    "`rnncli lint` lists every finding with its line.",
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, before mkdocs reads what there is."""
    for path, page in PAGES.items():
        files.append(File.generated(config, path, content="\n".join(page())))
    for path, source in COPIES.items():
        text = (DOCS.parent / source).read_text("utf-8")
        files.append(File.generated(config, path, content=text))
    return files


def code(text: str) -> str:
    """Return text that is shown as code, also in a cell of a table."""
    return f"<code>{html.escape(text).replace('|', '&#124;')}</code>"


def prose(text: str) -> str:
    """Return a sentence of a help text or docstring as Markdown; pages it names become links."""
    words, *spans = re.split(r"`([^`]*)`", text)
    pairs = zip(spans[::2], spans[1::2], strict=True)
    return _words(words) + "".join(f"{code(span)}{_words(after)}" for span, after in pairs)


def _words(text: str) -> str:
    """Return what stands between spans of code; options become code, which no line breaks."""
    escaped = html.escape(text, quote=False).replace("|", "&#124;").replace("*", "\\*")
    escaped = re.sub(r"(?<![\w-])--[a-z][a-z-]+", r'<code class="option">\g<0></code>', escaped)
    return re.sub(r"docs/([\w/]+)\.md", r"[\1](../\1.md)", escaped)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Return the lines of a table, a blank line below it."""
    yield from (
        "",
        *(f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows)),
        "",
    )


def fenced(text: str, language: str = "text") -> Iterator[str]:
    """Return the lines of a block of code."""
    yield from ("", f"```{language}", text, "```", "")


def command_line() -> Iterator[str]:
    """Return the page on every command, from click."""
    context = click.Context(cli, info_name="rnncli")
    yield "# Commands"
    yield from _help(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        yield from _command(command, click.Context(command, info_name=name, parent=context))


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"\n## {context.info_name}\n"
    yield from fenced(
        " ".join([context.command_path, *command.collect_usage_pieces(context)]), "sh"
    )
    yield from _help(command)
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record and record[1]:  # arguments have no help of their own
            yield f"\n{code(record[0])}"
            yield f":   {prose(record[1])}"


def _help(command: click.Command) -> Iterator[str]:
    """Return the paragraphs of a help text; click keeps the lines of those that begin with \\b."""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b"):
            yield from fenced(paragraph.removeprefix("\b\n"), "sh")
        else:
            yield f"\n{prose(paragraph)}\n"


def config_keys() -> Iterator[str]:
    """Return the page on configs, from their JSON Schema."""
    schema = config_schema()
    yield from ("# Config files", "", prose(schema["description"]), "")
    yield from SCHEMA_NOTE
    yield from _properties(schema)
    yield from _fills(schema)


def suite_keys() -> Iterator[str]:
    """Return the page on suites, from their JSON Schema."""
    schema = suite_schema()
    yield from ("# Suite files", "", prose(schema["description"]), "")
    yield from SCHEMA_NOTE
    yield from _properties(schema)
    yield from ("## A case", "")
    yield from _properties(schema["$defs"]["case"])
    yield from ("## Strategies", "", "How the combinations of `matrix` are made:")
    yield from table(
        ("strategy", "makes"), ((code(n), prose(row.summary)) for n, row in STRATEGIES.items())
    )
    yield from ("## What breaks a case", "", "Kinds of `breaks`: the case must then be refused.")
    yield from table(("kind", "how"), ((code(n), prose(row.summary)) for n, row in KINDS.items()))
    yield from ("The values of inputs are [those of configs](config.md#values-of-inputs).",)


def _properties(schema: Mapping[str, Any]) -> Iterator[str]:
    required = schema.get("required", ())
    for name, row in schema["properties"].items():
        yield f"\n{code(name)}{' (required)' if name in required else ''}"
        yield f":   {prose(_sentence(row.get('description', '')))}{_choices(row)}"
    yield ""


def _choices(row: Mapping[str, Any]) -> str:
    values = [value for value in row.get("enum", ()) if value is not None]
    return f" One of {', '.join(code(str(value)) for value in values)}." if values else ""


def _sentence(text: str) -> str:
    first = text[:1] if "_" in text.partition(",")[0] else text[:1].upper()  # a name stays a name
    return f"{first}{text[1:].removesuffix('.')}." if text else ""


def _fills(schema: Mapping[str, Any]) -> Iterator[str]:
    """Return the ways to give an input its values: fills, a list, a file."""
    yield from ("## Values of inputs", "", "A fill makes values from a few words:")
    rows = {name: schema["$defs"][f"fill_{name}"] for name in FILLS}
    yield from table(
        ("fill", "values", "parameters"),
        (
            (code(name), prose(row["description"]), _parameters(name, row))
            for name, row in rows.items()
        ),
    )
    yield from ("Or they are written out, or read:", "")
    yield f"- {prose(schema['$defs']['list']['description'])}"
    for name, row in schema["$defs"]["file"]["properties"].items():
        yield f"- {code(name)}: {prose(row['description'])}"


def _parameters(name: str, row: Mapping[str, Any]) -> str:
    written = next(each for each in row["anyOf"] if "properties" in each)["properties"]
    return "; ".join(
        f"{code(each)} {prose(said.get('description', ''))}"
        for each, said in written.items()
        if each != name
    )


def operators() -> Iterator[str]:
    """Return the page on every operator, from its row."""
    yield from (
        "# Operators",
        "",
        "`rnncli ops NAME` prints what this page has of an operator.",
        "",
    )
    letters = ", ".join(f"{letter} {code(name)}" for letter, name in SYMBOLS.items())
    yield from (f"Letters of shapes: {letters}. T also stands for the element type.", "")
    for row in OPERATORS.values():
        yield from _operator(as_record(row))
    yield from ("## Activations", "")
    yield from table(
        ("activation", "formula", "alpha", "beta"),
        (
            (code(row.name), code(row.formula), _number(row.alpha), _number(row.beta))
            for row in ACTIVATIONS.values()
        ),
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _operator(row: Mapping[str, Any]) -> Iterator[str]:
    domain = f", domain {code(row['domain'])}" if row["domain"] else ""
    yield from (f"## {row['name']}", "", f"{row['dialect']}{domain}.", "")
    yield from table(
        ("input", "shape", "element types", "what it is"),
        (
            (_optional(each), _shapes(each), " ".join(each["dtypes"]), prose(each["summary"]))
            for each in row["inputs"]
        ),
    )
    yield from table(
        ("output", "shape", "what it is"),
        ((code(each["name"]), _shapes(each), prose(each["summary"])) for each in row["outputs"]),
    )
    yield from table(
        ("attribute", "type", "default", "what it does"),
        (
            (_optional(each), each["type"], _default(each), prose(each["summary"]))
            for each in row["attributes"]
        ),
    )
    yield from (f"Gates in W, R and B: {', '.join(map(code, row['gates']))}.", "")
    yield from fenced("\n".join(row["equations"]))
    defaults = ", ".join(map(code, row["default_activations"]))
    yield from (f"Activations if none are given: {defaults}.", "")
    readings = ", ".join(code(f"{name}={value}") for name, value in row["readings"].items())
    yield from (f"[Readings](readings.md): {readings}.", "")


def _optional(row: Mapping[str, Any]) -> str:
    return f"{code(row['name'])}{' (required)' if row['required'] else ''}"


def _default(row: Mapping[str, Any]) -> str:
    return "" if row["default"] is None else code(str(row["default"]))


def _shapes(row: Mapping[str, Any]) -> str:
    spelled = [f"[{', '.join(map(_dim, shape))}]" for shape in row["shapes"]]
    return code(spelled[0]) + "".join(f", batch first {code(other)}" for other in spelled[1:])


def _dim(name: str) -> str:
    factor, _, size = name.rpartition("*")
    letter = next(letter for letter, symbol in SYMBOLS.items() if symbol == size)
    return f"{factor}*{letter}" if factor else letter


def readings() -> Iterator[str]:
    """Return the page on contested points, from the rows."""
    yield from ("# Readings", "")
    yield (
        "Where a specification can be read in more than one way, rnncli has a named reading. The"
        " first choice is the default unless an operator's row says otherwise. Choose another one"
        " with `--reading NAME=CHOICE`, `readings: {NAME: CHOICE}` in YAML or"
        ' `readings={"NAME": "CHOICE"}` in Python. [Semantics](../explanation/semantics.md) has the'
        " evidence for each."
    )
    for name, row in READINGS.items():
        yield from ("", f"## {name}", "", prose(_sentence(row.summary)))
        yield from table(
            ("choice", "what it means", "default of"),
            (
                (code(choice), prose(said), _defaulting(name, choice))
                for choice, said in row.meanings.items()
            ),
        )


def _defaulting(name: str, choice: str) -> str:
    found = [
        row.name for row in OPERATORS.values() if as_record(row)["readings"].get(name) == choice
    ]
    return ", ".join(found)


def profiles() -> Iterator[str]:
    """Return the page on tolerance profiles, from the rows."""
    yield from ("# Profiles", "")
    yield (
        "A profile says what a correct implementation may round; a pack's tolerances follow from"
        " it. Suites name it (`profile: tf32`), and `rnncli verify --profile NAME` judges by"
        " another one than the pack's. [Numerics](../explanation/numerics.md) says how. Errors of"
        " activations are in unit roundoffs: half a unit in the last place, and 2^-24 in float32."
    )
    yield from table(
        ("profile", "what it allows", "deviations", "activation, relative", "absolute"),
        (
            (code(row.name), prose(row.summary), *map(_number, (row.deviations, row.kr, row.ka)))
            for row in PROFILES.values()
        ),
    )
    yield "Sums of products are formed by one of these accumulators:"
    yield from table(
        ("accumulator", "sums", "profiles"),
        (
            (
                code(name),
                prose(row.summary),
                ", ".join(code(p.name) for p in PROFILES.values() if p.accumulator == name),
            )
            for name, row in ACCUMULATORS.items()
        ),
    )


def exit_codes() -> Iterator[str]:
    """Return the page on exit codes, from their table."""
    yield from ("# Exit codes", "")
    yield from table(("code", "means"), ((str(n), prose(said)) for n, said in EXIT_CODES.items()))
    yield (
        "All targets of a command are run; the exit code is that of the worst failure:"
        f" {', '.join(map(str, SEVERITY))}."
        " [Verdicts](../verdicts.md) lists what `verify` ends with."
    )


def empty_runs() -> Iterator[str]:
    """Return the page on runs in which nothing was computed, from the tests that try them."""
    yield from ("# Runs that prove nothing", "")
    yield (
        "Ways in which a run could look right although nothing was computed, or nothing that shows"
        " a bug. A test tries each; [verdicts](../verdicts.md) says what exit code 0 leaves open."
        " The pack `two` has two small cases, `twice` asks each twice, `empties` has no elements,"
        " `rejections` has invalid cases; programs are called by what they do."
    )
    folder = DOCS.parent / "tests/cli"
    rows = [row for path in sorted(folder.glob("transcripts/green_*.txt")) for row in _tried(path)]
    called = _assigned(folder / "test_false_green.py", "WAYS")
    assert isinstance(called, ast.Dict)
    for way, tried in zip(called.keys, called.values, strict=True):
        assert isinstance(way, ast.Constant)
        assert isinstance(tried, ast.Tuple)
        rows.append((str(way.value), "", ast.unparse(tried.elts[-1])))
    for title, wanted in (("Not green", lambda code: code != "0"), ("Green", "0".__eq__)):
        yield from ("", f"## {title}", "")
        yield from table(
            ("way", "last command", "exit code"),
            ((way, line and code(line), n) for way, line, n in rows if wanted(n)),
        )


def _tried(path: Path) -> Iterator[tuple[str, str, str]]:
    """Return the claims of a transcript, each with its last command and that one's exit code."""
    for claim in path.read_text("utf-8").split("\n## ")[1:]:
        *_, (line, shown) = re.findall(
            r"^(?:\$|>>>) (.*rnncli .*)\n((?:(?!\$ |>>> |=== ).*\n?)*)", claim, re.MULTILINE
        )
        code = re.search(r"^\[(\d+)\]$", shown, re.MULTILINE)
        yield claim.partition("\n")[0], line, code[1] if code else "0"


def gates() -> Iterator[str]:
    """Return the page on gate orders and biases of libraries, from their table."""
    yield from ("# Where the gates are", "")
    yield (
        "`rnncli ops --gates` prints this table, and [convert](../howto/weights.md) follows it. The"
        " gates are in ONNX's letters, then in the library's own. W is for one direction; R has the"
        " same order of gates, with H instead of I. The reset gate of a GRU is applied before the"
        " product with R, which is linear_before_reset 0, or after it, which is 1. WebNN's rows are"
        " those of its two layouts."
    )
    yield from table(HEADER, (form.row for form in FORMS))


def relations() -> Iterator[str]:
    """Return the page on relations of nodes and of streams, from their rows."""
    yield from ("# Relations in full", "")
    yield (
        "[Relations](../relations.md) says how they judge; [streams](../howto/stream.md) have some"
        " of their own. Outputs must have the same bits, or agree within a tolerance."
    )
    for title, rows in (("Of nodes", RELATIONS), ("Of streams", STREAM_RELATIONS)):
        yield from ("", f"## {title}", "")
        yield from table(
            ("relation", "asks", "applies", "equality", "finds"),
            (
                (
                    code(row.name),
                    *map(prose, (row.summary, row.applies.when, row.equality, row.finds)),
                )
                for row in rows.values()
            ),
        )


def installed() -> Iterator[str]:
    """Return the page on backends, runtimes, formats and executors, from their tables."""
    yield from ("# Backends, runtimes, formats", "")
    yield "Those of rnncli itself; [a plug-in](../howto/plugin.md) adds more."
    for title, command, rows in (
        ("Backends", "backends", describe_backends()),
        ("Runtimes", "runtimes", describe_subjects()),
        ("File formats of tensors", "formats", describe_formats()),
    ):
        found = [{key: str(value) for key, value in row.items() if key != "from"} for row in rows]
        yield from ("", f"## {title}", "", f"`rnncli {command}` lists those that are installed.")
        yield from table(
            ("name", "what it is"),
            ((code(a), prose(b)) for a, b in (row.values() for row in found)),
        )
    yield from ("", "## Layouts of packs", "")
    yield "`rnncli convert PACK OUT --format LAYOUT` makes one from another."
    yield from table(
        ("layout", "what it is"), ((code(n), prose(r.summary)) for n, r in LAYOUTS.items())
    )
    yield from ("", "## Executors", "")
    yield from table(
        ("executor", "what it is"), ((code(n), prose(r.summary)) for n, r in EXECUTORS.items())
    )


def bugs() -> Iterator[str]:
    """Return the page on mutants, from the rows."""
    yield from ("# Known bugs", "")
    yield (
        f"{len(EVERY)} known kernel bugs. `rnncli verify` and `rnncli diagnose` name bugs by"
        " these ids, `rnncli score` counts which of them a pack catches, and `--backend mutant:ID`"
        " runs one."
    )
    for family in dict.fromkeys(row.family for row in EVERY.values()):
        yield from ("", f"## {family[:1].upper()}{family[1:]}", "")
        yield from table(
            ("mutant", "cells", "what goes wrong"),
            (
                (code(name), " ".join(row.cells), prose(row.sentence))
                for name, row in EVERY.items()
                if row.family == family
            ),
        )


def python_api() -> Iterator[str]:
    """Return the page on `import rnncli` and on plug-ins, for mkdocstrings to fill in."""
    yield from ("# Python reference", "", "[From Python](../python.md) shows these at work.")
    for name in rnncli.__all__:
        if not name.startswith("_"):
            yield from _documented(_path(getattr(rnncli, name)), f"rnncli.{name}")
    yield from _documented("rnncli.api.pytest_plugin.vectors", "rnncli.pytest.vectors")
    for name in weights.__all__:
        if inspect.isfunction(getattr(weights, name)) or inspect.isclass(getattr(weights, name)):
            yield from _documented(_path(getattr(weights, name)), f"rnncli.weights.{name}")
    yield from ("", "## Plug-ins", "", "What [a plug-in](../howto/plugin.md) is given and makes.")
    for row in (Runtime, Backend, Recurrence, CellOptions, Result, Format):
        yield from _documented(_path(row), row.__name__, level=3)


def _path(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def _documented(path: str, name: str, level: int = 2) -> Iterator[str]:
    yield from ("", f"::: {path}", "    options:")
    yield from (f'      heading: "{name}"', f'      toc_label: "{name}"')
    yield f"      heading_level: {level}"


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Link pages of the site, draw layers and marks; wide tables have all the width."""
    folder = posixpath.dirname(page.file.src_uri)

    def to_the_site(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", folder, link[1]))
        found = IN_THE_CHECKOUT.get(target)
        return f"]({posixpath.relpath(found, folder or '.')})" if found else link[0]

    if {
        folder,
        page.file.src_uri,
    } & RECORDS:  # whoever searches for a word wants the page that explains it
        page.meta["search"] = {"boost": 0.2}
    markdown = re.sub(r"\]\(([\w./#-]+)\)", to_the_site, markdown)
    if page.file.src_uri == "reference.md":
        named = re.findall(r"^## (.*)$", markdown, re.MULTILINE)
        for title in named:
            page_of = f"reference/{title.lower().replace(' ', '-')}.md"
            markdown = markdown.replace(f"## {title}\n", f"## [{title}]({page_of})\n")
    if page.file.src_uri.startswith(WIDE):
        page.meta["hide"] = ["navigation", "toc"]
    if page.file.src_uri == "results/runtimes.md":
        tables = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
        markdown = tables.sub(lambda found: "\n".join(_matrix(found[0])), markdown)
        markdown = markdown.replace("\n## Packs\n", f"\n## Packs\n\n{LEGEND}\n")
        markdown = markdown.replace("A dash stands", "An empty cell stands")
    return markdown.replace("<!-- layers -->", _layers())


WIDE = (
    "results/",
    "reports.",
    "reference/gates.",
    "reference/statements.",
    "explanation/semantics.",
)
# What cells of the page on runtimes say, from the worst to the best: mark, words.
MARKS = {
    "crashed": ("\N{DAGGER}", "crashed"),
    "wrong": ("\N{BALLOT X}", "wrong|differs?|accepted|stale"),
    "other": ("\N{ALMOST EQUAL TO}", "lossy|acceptable|other reading"),
    "refused": ("\N{EN DASH}", "refused|skipped"),
    "right": ("\N{CHECK MARK}", "ok|pass"),
}
LEGEND = (
    "\N{CHECK MARK} right, \N{ALMOST EQUAL TO} lossy or another reading, \N{EN DASH} refused"
    " or skipped, \N{BALLOT X} wrong, \N{DAGGER} crashed, with the number of cases, if not all. The"
    " pointer shows a cell's words."
)


def _matrix(lines: str) -> Iterator[str]:
    """Return a table of the page on runtimes with marks for words."""
    head, _, *rows = (line.strip("|").split("|") for line in lines.splitlines())
    names = "".join(f"<th><span>{name.strip()}</span></th>" for name in head)
    yield f'<table class="marks"><thead><tr>{names}</tr></thead><tbody>'
    for name, count, *cells in rows:
        marked = "".join(_marks(cell.strip()) for cell in cells)
        yield f"<tr><th>{prose(name.strip())}</th><td>{count}</td>{marked}</tr>"
    yield "</tbody></table>\n"


def _marks(cell: str) -> str:
    """Return a cell of that table, coloured by the worst that it says."""
    said = {
        kind: (mark, [int(n or 0) for n in re.findall(rf"(?:(\d+) )?\b(?:{words})\b", cell)])
        for kind, (mark, words) in MARKS.items()
    }
    worst = next((kind for kind, (_, counts) in said.items() if counts), "none")
    shown = "".join(
        f'<b class="{kind}">{mark}{sum(counts) or ""}</b>'
        for kind, (mark, counts) in said.items()
        if counts
    )
    return f'<td class="{worst}" title="{html.escape(cell)}">{shown}</td>'


def _layers() -> str:
    """Return the packages from the top down, each with what its docstring says first."""
    rows = "".join(
        f'<div class="layer">{"".join(_package(name) for name in names)}</div>\n'
        for names in reversed(_order())
    )
    return f'<div class="layers">\n{rows}</div>'


def _order() -> tuple[tuple[str, ...], ...]:
    """Return LAYERS of the test."""
    found = _assigned(DOCS.parent / "tests/test_layers.py", "LAYERS")
    order: tuple[tuple[str, ...], ...] = ast.literal_eval(found)
    return order


def _assigned(path: Path, name: str) -> ast.expr:
    """Return what a module of tests, which is read and not imported, gives a name."""
    return next(
        node.value
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
    )


def _package(name: str) -> str:
    said = (inspect.getdoc(import_module(f"rnncli.{name}")) or "").partition("\n")[0]
    return f"<div><b>{name}</b><span>{html.escape(said)}</span></div>"


PAGES: Mapping[str, Callable[[], Iterator[str]]] = {
    "reference/cli.md": command_line,
    "reference/config.md": config_keys,
    "reference/suite.md": suite_keys,
    "reference/operators.md": operators,
    "reference/readings.md": readings,
    "reference/profiles.md": profiles,
    "reference/exit-codes.md": exit_codes,
    "reference/empty-runs.md": empty_runs,
    "reference/installed.md": installed,
    "reference/bugs.md": bugs,
    "reference/python.md": python_api,
    "reference/gates.md": gates,
    "reference/relations.md": relations,
    "reference/statements.md": lambda: iter([traceability.page()]),
}
# Pages that stand elsewhere in the repository -> where.
COPIES = {
    "explanation/semantics.md": "specs/semantics.md",
    "reference/vectors.md": "vectors/README.md",
    "results/suites.md": "specs/suites/README.md",
}
# What links lead to in a checkout -> the page that the site has for it. Those written from the
# code are sections of docs/reference.md there, each with the command that prints the same.
IN_THE_CHECKOUT = {
    **{f"docs/reference.md#{Path(path).stem}": path for path in PAGES},
    **{source: path for path, source in COPIES.items()},
}
