"""Implementations for benchmarks that misbehave; imported in the process that they take down."""

import os
import signal
import time

from rnncli.bench import machine, workloads
from rnncli.bench.contestants import Own
from rnncli.subjects.runtime import Prepared

HOUR = 3600


def on_little_data(patch):
    """Measure the machine's limits on little data, and errors on three data sets, not on 32."""
    patch.setattr(machine, "SERVE", "support.rivals:serve_little")
    patch.setattr(workloads, "MOST_DATA", 3)


def serve_little(descriptor):
    """Measure the machine as its own process does, on little data: what is found counts nowhere."""
    machine.ORDER, machine.COPIED, machine.ATTEMPTS = 16, 1 << 12, 1
    machine.serve(descriptor)


class Rival:
    """Computes what our NumPy backend does, and misbehaves as its setting `way` says."""

    def __init__(self, settings, threads):
        self.way = settings.get("way", "")
        self.own = Own({"backend": "numpy", "compute": "native", "call": "evaluate"}, threads)
        self.calls = 0
        if self.way == "dies at birth":
            os.kill(os.getpid(), signal.SIGSEGV)

    def describe(self):
        """Say a version."""
        return {"version": "6.66"}

    def prepare(self, vector):
        """Prepare what misbehaves when it is called."""
        if self.way == "refuses":
            raise ValueError("not this one")
        prepared = self.own.prepare(vector)

        def call():
            self.calls += 1
            getattr(self, self.way.replace(" ", "_"), lambda: None)()
            return prepared.call()

        return Prepared(call, self.named)

    def named(self, outputs):
        """Return the outputs, or not quite."""
        if self.way == "leaves out":
            return {"Y": outputs["Y"]}
        return {name: values + 0.5 * (self.way == "is wrong") for name, values in outputs.items()}

    def crashes(self):
        """Write to address 0, as it were."""
        os.kill(os.getpid(), signal.SIGSEGV)

    def hangs(self):
        """Give no answer."""
        time.sleep(HOUR)

    def crashes_later(self):
        """Crash once it is warm."""
        if self.calls > 5:
            self.crashes()

    def raises_later(self):
        """Fail once it is warm."""
        if self.calls > 5:
            raise RuntimeError("tired")


class Untimed:
    """A runtime of a package that only runs vectors."""

    def __init__(self, settings, threads):
        """Take nothing."""

    def describe(self):
        """Say a version."""
        return {"version": "1"}

    def run(self, vector):
        """Give nothing."""
        return {}
