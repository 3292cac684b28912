"""webnn-baseline, if there is a checkout of it: evaluates WebNN's operators in double precision.

RNNCLI_WEBNN_BASELINE names the folder of https://github.com/webmachinelearning/webnn-baseline.
"""

import itertools
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

HARNESS = Path(__file__).parents[2] / "docs/harnesses/webnn_baseline.mjs"


def checkout():
    """The folder of the checkout; without it, or without Node, the test is skipped."""
    folder = os.environ.get("RNNCLI_WEBNN_BASELINE")
    if not folder:
        pytest.skip("RNNCLI_WEBNN_BASELINE names no checkout of webnn-baseline")
    if not shutil.which("node"):
        pytest.skip("no node on the PATH")
    return Path(folder)


def command():
    """The command of the harness."""
    return ["node", str(HARNESS), str(checkout())]


class RefusedError(Exception):
    """It does not accept a node."""


class Baseline:
    """A process of the harness, which is sent nodes of float64.

    Args:
        folder: a folder for tensors.
    """

    def __init__(self, folder):
        self.folder, self.numbers = folder, itertools.count(1)
        self.process = subprocess.Popen(
            command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._ask({"cmd": "start", "version": 1})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        assert self.process.wait() == 0
        self.process.stdout.close()

    def __call__(self, operator, inputs, attributes, outputs):
        """The outputs by name, in float64.

        Raises:
            RefusedError: it does not accept the node.
        """
        described = {}
        for name, values in inputs.items():
            file = self.folder / f"{name}.bin"
            file.write_bytes(values.astype("<f8").tobytes())
            described[name] = {"file": str(file), "dtype": "float64", "shape": values.shape}
        answer = self._ask(
            {
                "cmd": "run",
                "seq": next(self.numbers),
                "case": {"operator": operator, "attributes": attributes, "dtype": "float64"},
                "inputs": described,
                "initializers": {},
                "outputs": outputs,
                "dir": str(self.folder),
            }
        )
        if "outputs" not in answer:
            raise RefusedError(answer["message"])
        return {name: self._read(row) for name, row in answer["outputs"].items()}

    def _ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def _read(self, row):
        return np.fromfile(self.folder / row["file"], "<f8").reshape(row["shape"])
