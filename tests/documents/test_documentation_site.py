"""The documentation as a site: as it is built, and as Chromium shows it."""

import re
import subprocess
import sys

import pytest
from support.browser import PROGRAM
from support.documentation import ROOT, environment
from support.web_pages import CONTRAST

pytest.importorskip("mkdocs", reason="needs the extra `docs`")
needs_browser = pytest.mark.skipif(not PROGRAM, reason="no chromium or google-chrome on the PATH")
# A page of each kind.
PAGES = ("", "howto/device/", "reference/cli/", "findings/", "results/runtimes/")
SHOWN = "filter(node => node.checkVisibility({visibilityProperty: true}))"


def every(selector):
    """Return the expression of the nodes that a selector finds."""
    return f"[...document.querySelectorAll('{selector}')]"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built without a network; links and anchors lead somewhere, all pages are listed."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", folder]
    done = subprocess.run(
        [*build, "-f", ROOT / "docs/site/mkdocs.yml"],
        env={**environment(), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_site_is_built_without_a_warning(site):
    """With every page that is written, and those that are made from the code."""
    assert all((site / page / "index.html").is_file() for page in PAGES)


def test_links_to_commands_lead_to_pages_here(site):
    """A checkout has a section, with a command, of every page that only the site has."""
    index = (site / "reference/index.html").read_text("utf-8")
    made = {page.parent.name for page in site.glob("reference/*/index.html")}

    assert set(re.findall(r'<h2 id="([^"]+)"><a href="\1/">', index)) == made - {"vectors"}
    assert 'href="../reference/readings/"' in (site / "tutorial/index.html").read_text("utf-8")


@needs_browser
@pytest.mark.parametrize("width", [375, 1280])
def test_pages_fit(browser, site, width):
    """None scrolls to the side; on a desktop no code is cut, and the side bar is short."""
    for page in PAGES:
        browser.open(site / page / "index.html", width=width)

        assert browser.evaluate("document.documentElement.scrollWidth") <= width, page
        if width > 375:
            cut = f"{every('pre > code')}.filter(c => c.scrollWidth > c.clientWidth).length"
            entries = f"{every('.md-nav--primary a')}.{SHOWN}.length"
            assert browser.evaluate(cut) == 0, page
            assert browser.evaluate(entries) <= 20, page


@needs_browser
@pytest.mark.parametrize(("scheme", "name"), [("light", "default"), ("dark", "slate")])
def test_text_can_be_read(browser, site, scheme, name):
    """With the contrast of WCAG AA, in both schemes."""
    for page in PAGES:
        browser.open(site / page / "index.html")
        browser.evaluate("localStorage.clear()")  # the site keeps its first scheme
        browser.open(site / page / "index.html", scheme=scheme)
        ratio, where = browser.evaluate(CONTRAST)

        assert browser.evaluate("document.body.dataset.mdColorScheme") == name
        assert ratio >= 4.5, (page, where)


@needs_browser
def test_the_button_copies_commands_alone(browser, site):
    """Without the prompt and what they print; a command of several lines whole."""
    browser.open(site / "index.html")
    copied = (
        "(code => { code.setAttribute('data-md-copying', ''); return code.innerText.trimEnd(); })"
        "(document.querySelector('{}'))"
    )
    first = browser.evaluate(copied.replace("{}", ".language-console pre > code"))
    assert first == "rnncli verify core --runtime onnx-reference -k id:lstm_14_ragged"

    browser.open(site / "howto/ci/index.html")
    other = browser.evaluate(copied.replace("{}", ".language-sh pre > code"))
    assert "\nrnncli verify rnncli/vectors/core --command" in other
    assert other.endswith("--html verify.html")
