"""The line that installs an extra of rnncli, from where this rnncli was installed."""

from __future__ import annotations

import json
import shlex
import shutil
import sysconfig
from pathlib import Path
from urllib.parse import unquote, urlsplit


def install_line(extra: str) -> str:
    """Return what a user types to install an extra beside this rnncli.

    `direct_url.json` (PEP 610) says where an installation came from, unless it is an index.
    """
    own = str(Path(sysconfig.get_path("scripts"), "pip"))
    pip = own if shutil.which("pip") != own and Path(own).exists() else "pip"
    return f"{shlex.quote(pip)} install {_requirement(extra)}"


def _requirement(extra: str) -> str:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        origin = json.loads(distribution("rnncli").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:  # run from a checkout that is not installed
        origin = {}
    url = origin.get("url", "")
    if url.startswith("file:"):
        editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
        return editable + shlex.quote(f"{unquote(urlsplit(url).path)}[{extra}]")
    if commit := origin.get("vcs_info", {}).get("commit_id"):
        url = f"{origin['vcs_info']['vcs']}+{url}@{commit}"
    return shlex.quote(f"rnncli[{extra}]" + (f" @ {url}" if url else ""))
