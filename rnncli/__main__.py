"""`python -m rnncli` is the command `rnncli`, which imports nothing from the working folder."""

import os
import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        working_folder = sys.path.pop(0)
        if os.path.dirname(os.path.dirname(__file__)) == working_folder:  # noqa: PTH120
            sys.path.append(working_folder)  # rnncli itself runs from there, not installed
    from rnncli.cli import main

    main()
