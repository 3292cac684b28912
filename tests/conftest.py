"""What holds for every test."""

import signal

import pytest
from support import (
    between_workers,
    examples,  # noqa: F401 -- registers hypothesis's profiles
    families,
)
from support.browser import Browser

pytest_plugins = ["support.sampling", "support.transcripts"]

# A shell without job control starts what runs in the background with Ctrl-C and Ctrl-Backslash
# ignored, nohup with hang-ups, and so would be the processes that tests interrupt.
HANDLERS = {signal.SIGINT: signal.default_int_handler}
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, HANDLERS.get(number, signal.SIG_DFL))

NUMBERS = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM)
BEFORE = {number: signal.getsignal(number) for number in NUMBERS}


@pytest.fixture(autouse=True)
def _own_handlers():
    """Undo what a command leaves at its end: the next signal would end this process, its tests."""
    yield
    for number, handler in BEFORE.items():
        if signal.getsignal(number) != handler:
            signal.signal(number, handler)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """One browser for all pages."""
    started = Browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


@pytest.fixture
def family(monkeypatch):
    """The processes that a test starts."""
    return families.started(monkeypatch)


def pytest_configure(config):
    """Share what is made once among the workers, which start after this."""
    if not hasattr(config, "workerinput"):
        between_workers.begin()


def pytest_unconfigure(config):
    """Leave nothing behind."""
    if not hasattr(config, "workerinput"):
        between_workers.end()
