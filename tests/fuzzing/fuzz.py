"""Runs many inputs of each family, and says what each did; a fault can be replayed by its number.

python tests/fuzzing/fuzz.py --count 20000 -j 2
python tests/fuzzing/fuzz.py --family manifests --case 1234
python tests/fuzzing/fuzz.py --family manifests --case 1234 --keep FOLDER
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from fuzz_bases import make_bases
from fuzz_families import FAMILIES
from fuzz_process import Outcome, Series, make_box


def main() -> int:
    """Run what the arguments say; 1 where any input broke a promise."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--family", action="append", choices=[*FAMILIES])
    parser.add_argument("--count", type=int, default=200, help="inputs of each family")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--case", type=int, help="one input, with its traceback")
    parser.add_argument("--keep", type=Path, help="where the sandbox of --case is left")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--until", help="stop at this time of day, as in 08:20")
    parser.add_argument("--report", type=Path, help="a folder for faults and totals")
    chosen = parser.parse_args()
    os.nice(19)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        bases = make_bases(Path(name) / "bases")
        if chosen.case is not None:
            return _replay(chosen, Path(name), bases)
        return _survey(chosen, Path(name), bases)


def _replay(chosen: argparse.Namespace, root: Path, bases: Path) -> int:
    (family,) = chosen.family
    box = make_box((chosen.keep or root).absolute() / "run", bases)
    series = Series(FAMILIES[family], family, box, chosen.seed, extra=("--traceback",))
    (outcome,) = series.run([chosen.case])
    _say(json.dumps(asdict(outcome) | {"err": ""}))
    _say(outcome.err.encode("utf-8", "backslashreplace").decode())
    return bool(set(outcome.faults()) - {"traceback"})


def _survey(chosen: argparse.Namespace, root: Path, bases: Path) -> int:
    report = chosen.report or root / "report"
    report.mkdir(parents=True, exist_ok=True)
    faulty = 0
    for family in chosen.family or FAMILIES:
        if _is_late(chosen):
            break
        begin = time.perf_counter()
        children = [_worker(chosen, family, k, root, bases, report) for k in range(chosen.jobs)]
        for child in children:
            os.waitpid(child, 0)
        files = [report / f"{family}.{k}.json" for k in range(chosen.jobs)]
        totals = [json.loads(file.read_text()) for file in files]
        faulty += _print(family, totals, time.perf_counter() - begin)
    return bool(faulty)


def _is_late(chosen: argparse.Namespace) -> bool:
    return bool(chosen.until) and time.strftime("%H:%M") >= chosen.until


def _worker(  # noqa: PLR0917
    chosen: argparse.Namespace, family: str, k: int, root: Path, bases: Path, report: Path
) -> int:
    """Start a process that runs every n-th input, and writes its faults and totals."""
    child = os.fork()
    if child:
        return child
    try:
        series = Series(
            FAMILIES[family], family, make_box(root / f"{family}{k}", bases), chosen.seed
        )
        numbers = range(chosen.first + k, chosen.first + chosen.count, chosen.jobs)
        totals = _totals(series, numbers, chosen)
        (report / f"{family}.{k}.json").write_text(json.dumps(totals))
        shutil.rmtree(series.box.outer[0].parent)
    except BaseException:  # noqa: BLE001 -- the parent finds no totals, and says so
        traceback.print_exc()
    finally:
        os._exit(0)


def _totals(series: Series, numbers: range, chosen: argparse.Namespace) -> dict[str, Any]:
    """Run inputs, and return what they did in all, and one of each kind of fault again."""
    codes: Counter[str] = Counter()
    said: Counter[str] = Counter()
    signs: dict[str, list[int]] = {}
    most = dict.fromkeys(("seconds", "mebibytes", "wall"), (0.0, -1))
    outside = 0
    for outcome in series.run(numbers):
        codes[str(outcome.code)] += 1
        said[_message(outcome)] += 1
        outside += bool(outcome.outside)
        for name, largest in most.items():
            most[name] = max(largest, (round(getattr(outcome, name), 3), outcome.number))
        if outcome.faults():
            signs.setdefault(_sign(outcome), []).append(outcome.number)
        if _is_late(chosen):
            break
    return {
        "count": codes.total(),
        "codes": codes,
        "most": most,
        "outside": outside,
        "signs": {sign: _again(series, cases) for sign, cases in signs.items()},
        "said": said.most_common(40),
    }


def _again(series: Series, cases: list[int]) -> dict[str, Any]:
    """Run the first input of a kind of fault once more, for its traceback."""
    (outcome,) = replace(series, extra=("--traceback",)).run(cases[:1])
    return {**asdict(outcome), "cases": cases, "trace": _trace(outcome)}


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _sign(outcome: Outcome) -> str:
    """Return what faults of one cause have in common, as far as the outcome tells."""
    line = next((x for x in reversed(outcome.err.splitlines()) if x.strip()), "")
    line = re.sub(r"'[^']*'|\"[^\"]*\"", "'..'", line)[:160] if "internal error" in line else ""
    where = re.sub(r"\S*/(?=\w)", "", "; ".join(outcome.outside))[:80]
    return re.sub(
        r"\d+", "#", f"{' '.join(outcome.faults())} | {outcome.arguments[:1]} | {line} | {where}"
    )


def _message(outcome: Outcome) -> str:
    """Return the last line of standard error without what differs from input to input."""
    line = next((x for x in reversed(outcome.err.splitlines()) if x.strip()), "")
    line = re.sub(r"'[^']*'|\"[^\"]*\"", "'..'", line)
    return re.sub(r"[\d.e+-]*\d+", "#", re.sub(r"\S*/", "", line))[:120]


def _trace(outcome: Outcome) -> str:
    frames = re.findall(r'File "([^"]+)", line (\d+), in (\S+)', outcome.err)
    ours = [f for f in frames if "/rnncli/" in f[0]] or frames
    return " < ".join(f"{Path(f[0]).name}:{f[1]}:{f[2]}" for f in ours[-1:-4:-1])


def _print(family: str, totals: list[dict[str, Any]], seconds: float) -> int:
    """Print a family's totals, and each kind of fault with the number of its first input."""
    codes = sum((Counter(each["codes"]) for each in totals), Counter())
    most = {name: max(tuple(each["most"][name]) for each in totals) for name in totals[0]["most"]}
    outside = sum(each["outside"] for each in totals)
    kinds: dict[str, dict[str, Any]] = {}
    for each in totals:
        for sign, what in each["signs"].items():
            kinds.setdefault(sign, {**what, "cases": []})["cases"] += what["cases"]
    faults = sum(len(what["cases"]) for what in kinds.values())
    largest = ", ".join(f"{name} {value} (#{number})" for name, (value, number) in most.items())
    _say(
        f"{family}: {codes.total()} inputs in {seconds:.0f} s; codes {dict(sorted(codes.items()))};"
        f" largest {largest}; outside {outside}; faults {faults}"
    )
    for sign, what in sorted(kinds.items(), key=lambda item: -len(item[1]["cases"])):
        _say(f"    {len(what['cases'])}x #{min(what['cases'])} {sign}\n        {what['trace']}")
    return faults


if __name__ == "__main__":
    sys.exit(main())
