"""What tests of reports share."""

from __future__ import annotations

import pytest
from support.browser import Browser


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """One browser for all pages."""
    started = Browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.close()
