"""`rnncli site`."""

from __future__ import annotations

from pathlib import Path

from rnncli.cli.command import command
from rnncli.cli.options import RUNS, Written, row
from rnncli.talk.terminal import say
from rnncli.talk.words import counted


@command(
    results=row(**{**RUNS.settings, "metavar": "RESULTS.jsonl..."}),
    output=row("-o", type=Written(path_type=Path)),
    markdown=row(type=Written(path_type=Path), metavar="FILE"),
)
def site(
    results: tuple[Path, ...], *, output: Path = Path("site"), markdown: Path | None = None
) -> None:
    """Write a static site of runtimes by features from results of `rnncli verify --json`.

    A file holds one run or several, one after the other; several runs of one runtime become its
    history, ordered by date. The shards of a run are joined, and all must be there. There is a page
    for each runtime (its versions over time), for each feature (the bug it finds, and which
    runtimes have it), for each case, and for the newest run of each runtime; badges are as
    shields.io reads them. The site fetches nothing and works from a folder (extra `report`).

    \b
    rnncli verify vectors/core --runtime onnxruntime --json > onnxruntime.jsonl
    rnncli verify vectors/core --runtime openvino --json > openvino.jsonl
    rnncli site onnxruntime.jsonl openvino.jsonl -o site

    Options:
        output: Folder of the site: new, empty, or an older site, which is replaced.
        markdown: Also write the tables of runtimes by features as Markdown.
    """
    from rnncli.files.atomic import write_text
    from rnncli.files.seals import MARKUP
    from rnncli.reports.pages import check_extra
    from rnncli.reports.result_files import read_results
    from rnncli.reports.site import as_markdown, results_of, write_site

    check_extra("a site")
    packs = results_of(report for path in results for report in read_results(path))
    pages = write_site(output, packs)
    if markdown is not None:
        write_text(markdown, as_markdown(packs), MARKUP)
    runtimes = sum(len(pack.runtimes) for pack in packs)
    say(f"{output}: {counted(pages, 'page')} on {counted(runtimes, 'runtime')}")
