"""The action that judges in CI, and a runner of its steps.

`python -m support.github_action PACK` runs the workflow of docs/howto/ci.md for that pack, by the
programs of the environment, with a backend in place of the reader's kernel.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
ACTION = ROOT / ".github" / "actions" / "verify"
ROWS = yaml.safe_load((ACTION / "action.yml").read_text("utf-8"))
REFERENCE = re.compile(r"\b(?:inputs|steps|runner|github)(?:\.[\w-]+)+")
# What stands for programs in tests: rnncli runs from the tree, and pip only says what it was given.
STUBS = {
    "rnncli": f'#!/bin/sh\nexec "{sys.executable}" -m rnncli "$@"\n',
    "python": '#!/bin/sh\nprintf "%s\\n" "$@" > pip.txt\n',
}


@dataclass
class Runner:
    """A runner of one job: what its steps used, printed and left.

    Attributes:
        folder: the job's working folder.
        inputs: of the action.
        hit: whether the cache has the pack.
        stubs: programs that stand before those of the machine: name -> script.
        code: the exit code of the step that failed, or 0.
        used: the actions of others that steps used, without their versions.
        values: reference -> its value, as steps set it.
    """

    folder: Path
    inputs: dict[str, str]
    hit: bool = False
    stubs: dict[str, str] = field(default_factory=STUBS.copy)
    code: int = 0
    used: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)

    def run(self) -> Runner:
        """Run all steps; after one that fails, those that always run."""
        defaults = {name: row.get("default", "") for name, row in ROWS["inputs"].items()}
        given = {f"inputs.{name}": value for name, value in {**defaults, **self.inputs}.items()}
        self.values = {"github.action_path": str(ACTION), **given}
        self.values["runner.temp"] = str(self.folder / "temp")
        (self.folder / "temp").mkdir()
        for name, text in self.stubs.items():
            path = self.folder / "bin" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)
        for step in ROWS["runs"]["steps"]:
            if self._is_due(step.get("if", "true")):
                self._take(step)
        return self

    @property
    def installed(self) -> str:
        """What pip was given."""
        return (self.folder / "pip.txt").read_text().splitlines()[-1]

    def _is_due(self, condition: str) -> bool:
        """Evaluate what decides on a step: comparisons of references with texts, and `&&`."""
        always = "always()" in condition
        terms = condition.replace("always() && ", "").split(" && ")
        return (always or not self.code) and all(map(self._holds, terms))

    def _holds(self, term: str) -> bool:
        if term == "true":
            return True
        name, sign, text = term.split()
        return (self.values.get(name, "") == text.strip("'")) == (sign == "==")

    def _take(self, step: dict) -> None:
        if "uses" in step:
            self.used.append(step["uses"].partition("@")[0])
            if step.get("id") == "cache":
                self.values["steps.cache.outputs.cache-hit"] = "true" if self.hit else ""
            return
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], "what inputs hold would be run"
        output = self.folder / "temp" / "output"
        files = {"GITHUB_OUTPUT": output, "GITHUB_STEP_SUMMARY": self.folder / "summary.md"}
        environment = {
            **os.environ,
            **{name: str(path) for name, path in files.items()},
            **{name: self._filled(text) for name, text in step.get("env", {}).items()},
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT) if self.stubs else "",
        }
        output.write_text("")
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(shell, cwd=self.folder, env=environment, check=False)
        self.code = self.code or done.returncode
        for line in output.read_text().splitlines():
            name, _, value = line.partition("=")
            self.values[f"steps.{step['id']}.outputs.{name}"] = value

    def _filled(self, text: str) -> str:
        return re.sub(r"\$\{\{ (\S+) \}\}", lambda found: self.values.get(found[1], ""), text)


def documented_inputs() -> dict[str, str]:
    """Return what the workflow of docs/howto/ci.md gives to the action."""
    page = (ROOT / "docs/howto/ci.md").read_text("utf-8")
    text = re.search(r"```yaml title=.*?\n(.*?)```", page, re.DOTALL)[1]
    steps = yaml.safe_load(text)["jobs"]["conformance"]["steps"]
    return next(step["with"] for step in steps if "actions/verify" in step.get("uses", ""))


def main(pack: str) -> int:
    """Run the documented workflow; return the exit code of its job."""
    with tempfile.TemporaryDirectory() as folder:
        inputs = documented_inputs() | {"pack": pack, "subject": "--backend numpy"}
        Path(folder, inputs["xfails"]).touch()
        return Runner(Path(folder), inputs, stubs={}).run().code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
