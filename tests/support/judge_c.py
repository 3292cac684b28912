"""`vectors/judge.c`: compiled, run on raw results, and what it says, beside what rnncli says."""

import subprocess
from pathlib import Path
from typing import NamedTuple

from rnncli.errors import Unsupported
from rnncli.files.formats.raw import content_of
from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.judgement import judge_session
from rnncli.packs.vector import group_of
from rnncli.subjects.own_backend import BACKEND, COMPUTE, BackendRuntime
from rnncli.subjects.results import results_subject
from rnncli.verifying.case_judging import session_calls_of

SOURCE = Path(__file__).parents[2] / "vectors" / "judge.c"
STRICT = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror")
SANITIZED = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


class Said(NamedTuple):
    """What the judge printed: id -> (verdict, margin), its exit code, both streams."""

    cases: dict
    code: int
    out: str
    err: str


def compiled(folder, *options):
    """Compile the judge; return the program."""
    program = folder / "judge"
    command = ["gcc", *STRICT, *options, "-o", program, SOURCE, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return program


def run(program, *arguments):
    """Run the judge; return what it said."""
    done = subprocess.run(
        [program, *arguments], capture_output=True, text=True, timeout=300, check=False
    )
    lines = [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]
    cases = {case: (verdict, margin) for verdict, case, margin, _ in lines}
    return Said(cases, done.returncode, done.stdout, done.stderr)


def write_outputs(results, vector, outputs):
    """Write the outputs of a call as a device does."""
    _write(results, vector, "outputs", outputs)


def write_signals(results, vector, signals):
    """Write signals of a call as a device does."""
    _write(results, vector, "steps/outputs", signals)


def _write(results, vector, place, tensors):
    folder = results / f"test_{vector.id}" / f"{group_of(vector.call)}{place}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, values in tensors.items():
        (folder / f"{name}.bin").write_bytes(content_of(values))


def write_all(results, vectors, backend):
    """Write what a backend computes for every call, or our own where it refuses a case.

    It computes in the tensors' own dtype, as devices do, with errors that have margins.
    """
    native = {COMPUTE: "native"}
    wrong, right = BackendRuntime({BACKEND: backend, **native}, 1), BackendRuntime(native, 1)
    for vector in vectors:
        for call in vector.calls:
            try:
                outputs = wrong.run(call)
            except Unsupported:
                outputs = right.run(call)
            write_outputs(results, call, outputs)


def judged(results, vectors, rule=PACK_RULE):
    """What rnncli says: id -> (verdict, margin as the judge prints it)."""
    subject = results_subject(results)
    verdicts = [
        judge_session(session_calls_of(subject, rule.declared(each)), rule).verdict
        for each in vectors
    ]
    return {each.id: (str(each.verdict), f"{each.margin:.6g}") for each in verdicts}
