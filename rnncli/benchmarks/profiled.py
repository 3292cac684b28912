"""ONNX Runtime with its profiler, which tells what nodes take."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from typing import TYPE_CHECKING

from rnncli.files.regular import read_bytes
from rnncli.subjects.runtimes.onnx_runtime import OnnxRuntime

if TYPE_CHECKING:
    from rnncli.vectors.vector import Vector

# What they take is that of the nodes in their bodies, which are events of their own.
BODIES = ("If", "Loop", "Scan")
# Names of its events: one run of the model, and what the name of a node's ends with.
RUN, KERNEL = "model_run", "_kernel_time"
MICROSECOND = 1e-6


class ProfiledOnnxRuntime(OnnxRuntime):
    """As `OnnxRuntime`; its operators are those of the optimised graph."""

    def node_seconds(self, vector: Vector, runs: int) -> dict[str, float]:
        """Return what the nodes of each operator take in one run, by ONNX Runtime's own count."""
        with tempfile.TemporaryDirectory(prefix="rnncli-") as folder:
            self._options.enable_profiling = True
            self._options.profile_file_prefix = f"{folder}/profile"
            session = self.session(vector)
            self._options.enable_profiling = False
            for _ in range(1 + runs):
                session.run(None, vector.fed)
            events = json.loads(read_bytes(session.end_profiling()))
        warm = next(event["ts"] + event["dur"] for event in events if event["name"] == RUN)
        seconds: defaultdict[str, float] = defaultdict(float)
        for event in events:
            if event["name"].endswith(KERNEL) and event["ts"] >= warm:
                seconds[event["args"]["op_name"]] += event["dur"] * MICROSECOND
        for name in BODIES:
            seconds.pop(name, None)
        return {name: each / runs for name, each in seconds.items()}
