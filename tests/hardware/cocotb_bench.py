"""A bench in cocotb: lstm_cell.v runs cases of a raw pack and writes raw results, to be judged.

    rnncli convert vectors/core core_raw --format raw
    python tests/hardware/cocotb_bench.py core_raw from_cocotb lstm_7_plain lstm_14_ragged
    rnncli verify vectors/core -k 'id:lstm_7_plain or id:lstm_14_ragged' --results from_cocotb

It needs cocotb 2.1, iverilog and nothing of rnncli. All that it knows of a case is in `case.json`:
a case that the cell cannot run is refused, with the reason in `refused.txt`. The options after the
ids are those of iverilog's macros: `-DBROKEN` exchanges two gates of the cell.
"""

import json
import math
import os
import sys
from pathlib import Path

import cocotb
from cocotb.triggers import Timer

HERE = Path(__file__).parent
# Where the simulator finds the case, and leaves its results.
CASE, RESULTS = "RNNCLI_CASE_FOLDER", "RNNCLI_RESULTS_FOLDER"
WORD = 4  # bytes of a float32


class Call:
    """One data set of a case: its inputs, as the bytes of the files.

    Args:
        folder: the case's folder.
        case: its `case.json`.
        number: which data set.
    """

    def __init__(self, folder, case, number):
        data_set = case["data_sets"][number]
        self.shapes = {row["name"]: row["shape"] for row in data_set["inputs"]}
        self.content = {r["name"]: (folder / r["file"]).read_bytes() for r in data_set["inputs"]}
        self.requested = [row["name"] for row in data_set["outputs"]]
        self.steps, self.batch, _ = self.shapes["X"]

    def words(self, name, first, count):
        """Words of an input as one number, the first in the low bits; 0 if it is absent."""
        content = self.content.get(name, bytes(WORD * (first + count)))
        return int.from_bytes(content[WORD * first : WORD * (first + count)], "little")

    def length(self, sequence):
        """The number of valid steps of a sequence."""
        absent = "sequence_lens" not in self.content
        return self.steps if absent else self.words("sequence_lens", sequence, 1)


def refusal(case):
    """Why the cell cannot run a case, or ""."""
    if not case["operator"].startswith("LSTM-") or case["domain"]:
        return f"is not an LSTM but {case['operator']}"
    if case["dtype"] != "float32":
        return f"is for float32, not {case['dtype']}"
    if other := case["attributes"].keys() - {"hidden_size"}:
        return f"has no attribute {', '.join(sorted(other))}"
    if not all(case["sizes"].values()):
        return "needs sizes of at least 1"
    given = {row["name"] for data_set in case["data_sets"] for row in data_set["inputs"]}
    return "has no peepholes" if "P" in given else ""


def folder_of(results, number):
    """The folder for the outputs of a call."""
    return results / (f"calls/{number}/outputs" if number else "outputs")


@cocotb.test()
async def run_case(dut):
    """Run every data set of the case that the environment names."""
    folder, results = Path(os.environ[CASE]), Path(os.environ[RESULTS])
    case = json.loads((folder / "case.json").read_text("utf-8"))
    for number in range(len(case["data_sets"])):
        call = Call(folder, case, number)
        outputs = await run_call(dut, call, case["sizes"])
        place = folder_of(results, number)
        place.mkdir(parents=True)
        for name in call.requested:
            (place / f"{name}.bin").write_bytes(outputs[name])


async def run_call(dut, call, sizes):
    """Run one data set; return the bytes of each output."""
    inputs, units = sizes["input_size"], sizes["hidden_size"]
    for name in "WRB":
        count = math.prod(call.shapes.get(name, (1, 8 * units)))
        getattr(dut, name).value = call.words(name, 0, count)
    Y = bytearray(WORD * call.steps * call.batch * units)  # what is beyond a length stays 0
    last_h, last_c = bytearray(), bytearray()
    for n in range(call.batch):
        h = call.words("initial_h", n * units, units)
        c = call.words("initial_c", n * units, units)
        for t in range(call.length(n)):
            place = t * call.batch + n
            h, c = await step(dut, call.words("X", place * inputs, inputs), h, c)
            start = WORD * place * units
            Y[start : start + WORD * units] = as_bytes(h, units)
        last_h += as_bytes(h, units)
        last_c += as_bytes(c, units)
    return {"Y": bytes(Y), "Y_h": bytes(last_h), "Y_c": bytes(last_c)}


async def step(dut, x, h, c):
    """Clock the cell once; return its next states."""
    dut.clock.value = 0
    dut.x.value, dut.h.value, dut.c.value = x, h, c
    await Timer(1, "ns")
    dut.clock.value = 1
    await Timer(1, "ns")
    return dut.h_next.value.to_unsigned(), dut.c_next.value.to_unsigned()


def as_bytes(words, count):
    """Words that are one number, as the bytes of a raw file."""
    return words.to_bytes(WORD * count, "little")


def simulate(folder, results, macros):
    """Compile the cell in the sizes of a case, and run the case on it."""
    from cocotb_tools.runner import get_results, get_runner

    case = json.loads((folder / "case.json").read_text("utf-8"))
    results.mkdir(parents=True)
    if reason := refusal(case):
        (results / "refused.txt").write_text(f"{reason}\n", "utf-8")
        return
    build = results.parent / "build" / folder.name
    build.mkdir(parents=True)
    runner = get_runner("icarus")
    runner.build(
        sources=[HERE / "lstm_cell.v"],
        hdl_toplevel="lstm_cell",
        includes=[HERE],
        defines=macros,
        parameters={"I": case["sizes"]["input_size"], "H": case["sizes"]["hidden_size"]},
        timescale=("1ns", "1ns"),
        build_dir=build,
        log_file=build / "build.log",
        always=True,
    )
    log = build / "simulation.log"
    try:
        found = runner.test(
            hdl_toplevel="lstm_cell",
            test_module=Path(__file__).stem,
            build_dir=build,
            test_dir=build,
            log_file=log,
            extra_env={CASE: str(folder.absolute()), RESULTS: str(results.absolute())},
        )
        has_passed = get_results(found) == (1, 0)
    except (RuntimeError, SystemExit):
        has_passed = False
    if not has_passed:
        sys.exit(f"{folder.name}: the bench failed; {log} says why")


def main(pack, results, *words):
    """Run cases of a pack, by id."""
    macros = {word[2:]: 1 for word in words if word.startswith("-D")}
    for case_id in (word for word in words if not word.startswith("-D")):
        simulate(Path(pack, f"test_{case_id}"), Path(results, f"test_{case_id}"), macros)


if __name__ == "__main__":
    main(*sys.argv[1:])
