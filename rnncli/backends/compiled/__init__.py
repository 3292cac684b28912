"""Recurrences as vector code, compiled on first use.

Raises:
    InvalidRequest: on import, where Numba would take settings from the working folder, such as the
        folder of the code that it loads.
"""

import sys
from pathlib import Path

from rnncli.errors import InvalidRequest

SETTINGS = Path(".numba_config.yaml")

if "numba" not in sys.modules and SETTINGS.is_file():
    raise InvalidRequest(
        f"{SETTINGS.absolute()}: Numba would take its settings from this file of the working"
        " folder; set NUMBA_... variables instead, or work in another folder"
    )
