"""The lines that pages, workflows and messages tell a stranger to install, and what is typed next.

`PYTHONPATH=tests python3 -m support.install_lines` runs them in a checkout, as they stand: an
environment for each set of extras has the wheel and those extras, and nothing else. Behind a line
of a page comes the first command that stands there, behind that of a message the command that
printed it. Rows of extras that are not `LIGHT` run where these are named, as in `python3 -m
support.install_lines torch qnn`.
It needs Python alone, and prints a table.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DECLARED = PROJECT["optional-dependencies"]
FOR_USERS = DECLARED.keys() - {"test", "cocotb", "docs", "lint", "all"}
# Those that tests and the site need anyway.
LIGHT = {
    "",
    "docs",
    "certified,report",
    *re.search(r"rnncli\[(.*?)\]", " ".join(DECLARED["test"]))[1].split(","),
}
VERIFY = "rnncli verify vectors/core -k id:gru_14_clip"
# A pack of the LSTM of a model for microcontrollers.
EXTRACT = "rnncli generate tflite -k id:plain_batch_first_fresh -o tflite_lstm"
TFLITE = "rnncli verify tflite_lstm"
# A layer of torch.nn.RNN in a file of safetensors: a header in JSON behind its length, and zeros.
SAVE = """python -c '
import json, struct
names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
rows = {
    name: {"dtype": "F32", "shape": [1, 1][k // 2 :], "data_offsets": [4 * k, 4 * k + 4]}
    for k, name in enumerate(names)
}
text = json.dumps(rows).encode()
open("w.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + bytes(16))
'"""


class Line(NamedTuple):
    """A line that is told, and what proves it.

    Attributes:
        told: the line as it stands in the sources, or the command that prints it.
        extras: those that it installs.
        typed: the line with what stands for a reader's own files; "" where a message has it.
        then: the first command behind it.
        codes: the exit codes that it may end with.
    """

    told: str
    extras: str
    typed: str
    then: str
    codes: tuple[int, ...] = (0,)


JUDGED = (0, 1)  # whatever the verdict


def message(extras, command, *, before="", codes=(0,)):
    """A command that says what to install, and works then."""
    return Line(command, extras, "", f"{before}\n{command}", codes)


LINES = (
    message("certified", "rnncli run lstm_14_peepholes --backend certified"),
    message("dask", f"{VERIFY} --backend numpy --executor dask -j 2"),
    message("emx", f"{VERIFY} --runtime emx-onnx-cgen"),
    message("numba", "rnncli run lstm_14_peepholes --backend numba"),
    message("qnn", "rnncli verify vectors/units --runtime onnxruntime-qnn", codes=JUDGED),
    message("report", f"{VERIFY} --backend numpy --html page.html"),
    message("report", f"{VERIFY} --backend numpy --plot plot.svg"),
    message("runtimes", f"{VERIFY} --runtime onnxruntime"),
    message("runtimes", f"{VERIFY} --runtime openvino"),
    message("runtimes", f"{VERIFY} --runtime tract", codes=JUDGED),
    message("runtimes", "rnncli run tests/data/gtcrn/gtcrn_simple.onnx --host onnxruntime"),
    message("safetensors", "rnncli convert w.safetensors w.onnx --from torch", before=SAVE),
    message("tflite", "rnncli inspect tests/data/mnist-lstm/trained_lstm_int8.tflite"),
    message("tflite-micro", f"{TFLITE} --runtime tflite-micro", before=EXTRACT),
    message("litert", f"{TFLITE} --runtime litert", before=EXTRACT),
    Line(
        "pip install '.[docs]'",
        "docs",
        "pip install '.[docs]'",
        'NO_MKDOCS_2_WARNING=1 mkdocs build --strict -f docs/site/mkdocs.yml -d "$TMPDIR/site"',
    ),
    Line(
        "pip install './rnncli[report]'",
        "report",
        "mkdir -p theirs && cd theirs && ln -s .. rnncli && pip install './rnncli[report]'",
        "cd theirs && touch known_failures.txt && "
        "rnncli verify rnncli/vectors/core --backend numpy --timeout 10"
        " --xfails known_failures.txt --min-cases 60 --junit verify.xml --html verify.html",
    ),
    Line(
        'pip install --quiet --disable-pip-version-check "$SOURCE[report${MADE:+,certified}'
        '${EXTRAS:+,$EXTRAS}]"',
        "report",
        "true",
        "PYTHONPATH=tests python -m support.github_action core",
    ),
    Line(
        'pip install --quiet --disable-pip-version-check "$SOURCE[report${MADE:+,certified}'
        '${EXTRAS:+,$EXTRAS}]"',
        "certified,report",
        "true",
        "PYTHONPATH=tests python -m support.github_action smoke",
    ),
    Line(
        "pip install --no-cache-dir '/checkout[certified,report]'",
        "certified,report",
        'pip install --no-cache-dir "$PWD[certified,report]"',
        "mkdir from_device && cp -r vectors/core/test_* from_device"
        " && rnncli verify vectors/core --results from_device",
    ),
    Line(
        "pip install build '.[certified]'",
        "certified",
        "pip install build '.[certified]'",
        "python -m build --wheel --outdir dist/rnncli-vectors vectors"
        " && rnncli generate onnx-node -o onnx-node",
    ),
    Line(
        "pip install ./vectors",
        "",
        "pip install ./vectors",
        "python -c 'import rnncli_vectors; print(rnncli_vectors.path(\"core\"))'",
    ),
    Line(
        "pip install '.[qnn]'",
        "qnn",
        "pip install '.[qnn]'",
        "rnncli verify vectors/units --runtime onnxruntime-qnn --profile float16-inside",
        JUDGED,
    ),
)
# An extra that nothing above needs is that of the runtime of its name.
LINES += tuple(
    message(extra, f"{VERIFY} --runtime {extra}", codes=JUDGED)
    for extra in sorted(FOR_USERS - {each for row in LINES for each in row.extras.split(",")})
)

# Lines that are run elsewhere, or cannot be, and why.
ELSEWHERE = {
    "pip install . && .venv/bin/rnncli run": ".ci/run, as a newcomer",
    "pip install -e '.[test]'": ".ci/run, as a newcomer",
    "pip install -e '.[test,lint]'": ".ci/run installs it for lint, types and tests",
    "pip install '.[all]'": "each is a row",
    "pip install '.[EXTRA]'": "EXTRA stands for a name",
    "pip install .": "a package of the reader's own",
    "pip install MNN": "the text of a report to MNN",
    "npm install onnxruntime-web --ignore-scripts": "needs Node",
    "pip install onnx2tf==1.29.24": "a runtime's own environment, beside rnncli's",
}
EXTRAS = attrgetter("extras")
# What a message says.
PRINTED = re.compile(r"install it with: (\S*pip install (?:-e )?(?:'[^']+'|[^\s,;]+))")
TOLD = re.compile(r"\b(?:pip|npm) install [^`\n]+")
SOURCES = ("README.md", "docs/**/*", "specs/**/*", "vectors/*", ".github/**/*", "rnncli/**/*.py")


def told():
    """Return (place, line) of every line to install in pages, workflows and the package."""
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            if path.is_file() and path.suffix not in {".svg", ".pb", ".onnx"}:
                for number, text in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
                    for found in TOLD.findall(text):
                        yield f"{path.relative_to(ROOT)}:{number}", found


def run(script, environment, log):
    """Run a script in the checkout, and return its exit code and what it printed."""
    shell = ["bash", "-euo", "pipefail", "-c", script]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(shell, cwd=ROOT, env=environment, check=False, **streams)
    log.append(f"$ {script}\n{done.stdout}exit code {done.returncode}\n")
    return done.returncode, done.stdout


def told_by(row, environment, log):
    """Return the line that a message says, and what is printed instead of it."""
    code, printed = run(row.then, environment, log)
    found = PRINTED.search(printed) if code == 3 else None
    return found[1] if found else "", printed


def tried(row, line, environment, log):
    """Run a line and the command behind it; return what is wrong, or "", and what is printed."""
    for script, wanted in ((line, (0,)), (row.then, row.codes)):
        code, printed = run(script, environment, log)
        if code not in wanted:
            return f"exit code {code}, not {wanted[0]}, of {script}", printed
    return "", printed


def main(named):
    """Run the rows and print the table; return 1 if one fails."""
    failed, log = 0, []
    with tempfile.TemporaryDirectory() as scratch:
        base = os.environ | {"PIP_CACHE_DIR": f"{scratch}/cache", "PIP_QUIET": "1"}
        run(f"python3 -m venv {scratch}/base", base, log)
        run(f"{scratch}/base/bin/pip wheel --no-deps -w {scratch} .", base, log)
        rows = [row for row in LINES if row.extras in (named or LIGHT)]
        for extras, group in groupby(sorted(rows, key=EXTRAS), EXTRAS):
            there = f"{scratch}/{extras or 'none'}"
            run(f"python3 -m venv {there} && {there}/bin/pip install {scratch}/*.whl", base, log)
            environment = base | {"PATH": f"{there}/bin:{base['PATH']}"}
            due = list(group)
            lines = [
                (row.typed, "") if row.typed else told_by(row, environment, log) for row in due
            ]
            for row, (line, said) in zip(due, lines, strict=True):
                wrong, printed = "says no line to install", said
                if line:
                    wrong, printed = tried(row, line, environment, log)
                failed |= bool(wrong)
                last = (printed.strip().splitlines() or [""])[-1]
                sys.stdout.write(f"{wrong or 'ok'} [{extras}] {row.told}\n    {last}\n")
                sys.stdout.flush()
    sys.stdout.write("".join(log) if failed else "")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
