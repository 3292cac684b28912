"""Test data of CMSIS-NN: its numbers alone are enough for an LSTM, in both of its builds.

On 2026-11-29 CMSIS-NN's own C (commit 99f736a6), compiled with these headers, gave every output and
state of the suite `tflite`: 134 calls, 18,649 numbers, with double rounding and with single.
"""

import re
import shutil
import subprocess

import numpy as np
import pytest
from support import integer_specification as scalar
from support import shipped
from support.tables import every

from rnncli.errors import Unsupported
from rnncli.generating.generation import GenerationPlan, generate
from rnncli.packs import cmsis_form
from rnncli.packs.conversion import convert_pack
from rnncli.packs.layouts import LAYOUTS
from rnncli.packs.pack import open_pack

VECTORS = shipped.vectors("tflite")
CALLS = [call for vector in VECTORS for call in vector.calls]
GATES = ("input", "forget", "cell", "output")
BUILDS = {"double": False, "single": True}


def headers():
    """The text of each call's header."""
    files = [cmsis_form.files_of(vector) for vector in VECTORS]
    return [
        content.decode()
        for each in files
        for name, content in each.items()
        if name.endswith(cmsis_form.HEADER)
    ]


def read(text, *, single):
    """The macros and arrays of a header by their names without the case, as a build has them."""
    chosen = r"\1" if single else r"\2"
    text = re.sub(r"(?s)#ifdef CMSIS\w+ROUNDING\n(.*?)#else\n(.*?)#endif", chosen, text)
    (prefix,) = re.findall(r"(\w+)_input_tensor\[", text)
    macros = re.findall(rf"#define {prefix.upper()}_(\w+) (\S+)", text)
    arrays = re.findall(rf"const (\w+)_t {prefix}_(\w+)\[(\d+)\] = \{{([^}}]*)}};", text)
    spelled = {"true": "1", "false": "0"}
    found = {name: int(spelled.get(value, value)) for name, value in macros}
    for kind, name, count, numbers in arrays:
        values = [int(number.rstrip("L")) for number in numbers.replace("\n", "").split(",")[:-1]]
        assert len(values) == int(count)
        found[name] = np.array(values, kind)
    return found


def evaluate(data, *, single):
    """The outputs and last states by the numbers of a header, one number at a time."""
    names = ("TIME_STEPS", "BATCH_SIZE", "INPUT_SIZE", "HIDDEN_SIZE")
    T, B, I, H = (data[name] for name in names)  # noqa: E741
    is_wide = data["input_tensor"].itemsize == 2
    shape = (T, B, I) if data["TIME_MAJOR"] else (B, T, I)
    x = data["input_tensor"].reshape(shape).astype(int)
    x = x if data["TIME_MAJOR"] else x.swapaxes(0, 1)
    h = data["initial_hidden_state"].reshape(B, H).astype(int)
    c = data["initial_cell_state"].reshape(B, H).astype(int)

    def times(value, name):
        factor = data[f"{name}_MULTIPLIER"], data[f"{name}_SHIFT"]
        return scalar.scaled(int(value), factor, single=single)

    def argument(gate, t, n, unit):
        terms = []
        for given, kind, width in ((x[t, n], "input", I), (h[n], "hidden", H)):
            weights = data[f"{gate}_gate_{kind}_weights"].reshape(H, width).astype(int)
            bias = int(data[f"{gate}_gate_{kind}_effective_bias"][unit])
            name = f"{gate.upper()}_GATE_{kind.upper()}"
            total = int(given @ weights[unit]) + bias
            factor = data[f"{name}_MULTIPLIER"], data[f"{name}_SHIFT"]
            terms.append(scalar.scaled_wide(total, factor) if is_wide else times(total, name))
        return scalar.saturated(scalar.saturated(terms[0]) + terms[1])

    Y = np.zeros((T, B, H), int)
    for t in range(T):
        past = h.copy()
        for n in range(B):
            for unit in range(H):
                of = [argument(gate, t, n, unit) for gate in GATES]
                i, f, o = (scalar.sigmoid(of[k]) for k in (0, 1, 3))
                kept = scalar.saturated(times(f * int(c[n, unit]), "FORGET_TO_CELL"))
                total = kept + times(i * scalar.tanh(of[2]), "INPUT_TO_CELL")
                c[n, unit] = scalar.saturated(total)
                if clip := data["CELL_CLIP"]:
                    c[n, unit] = np.clip(c[n, unit], -clip, clip)
                squashed = scalar.tanh(int(c[n, unit]), data["CELL_SCALE_POWER"])
                made = times(o * squashed, "OUTPUT") + data["OUTPUT_ZERO_POINT"]
                past[n, unit] = scalar.saturated(made, 16 if is_wide else 8)
        h = past
        Y[t] = h
    return {
        "output": Y if data["TIME_MAJOR"] else Y.swapaxes(0, 1),
        "final_hidden_state": h,
        "final_cell_state": c,
    }


@every("build", BUILDS)
@every("text", headers, ids=lambda text: re.findall(r"(\w+)_input_tensor", text)[0])
def test_the_numbers_of_a_header_are_enough(text, build):
    """Folded biases, multipliers and shifts give what the header expects, without a scale."""
    single = BUILDS[build]
    data = read(text, single=single)

    for name, values in evaluate(data, single=single).items():
        np.testing.assert_array_equal(data[name], values.ravel(), err_msg=name)


@every("call", CALLS, ids=lambda call: f"{call.id}-{call.call}")
def test_the_outputs_are_those_that_the_pack_has_for_cmsis(call):
    """Where they are other ones than tflite-micro's, the pack says so as well."""
    _, arrays = cmsis_form.data_of(call)
    stored = call.alternatives.get("preset=cmsis", call.answers).outputs

    for name, values in stored.items():
        np.testing.assert_array_equal(arrays[cmsis_form.OUTPUTS[name]], values, err_msg=name)


@every(
    "options", [("gcc", "-std=c99"), ("gcc", f"-D{cmsis_form.IS_SINGLE}"), ("g++", "-std=c++17")]
)
def test_headers_compile_together(options, tmp_path):
    """All of the suite in one program, whatever their ids: no name is defined twice."""
    compiler, option = options
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    texts = headers()
    for k, text in enumerate(texts):
        (tmp_path / f"{k}.h").write_text(text)
    source = tmp_path / ("main.c" if compiler == "gcc" else "main.cc")
    included = "".join(f'#include "{k}.h"\n' for k in range(len(texts)))
    source.write_text(f"{included}int main(void) {{ return 0; }}\n")

    strict = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-Wno-unused-variable")
    command = [compiler, option, *strict, "-Wno-unused-const-variable", "-fsyntax-only", source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_pack_is_converted_and_read_back(tmp_path):
    """A header for each call; the rest is the raw form, by which a device is judged."""
    asked = GenerationPlan(suite=shipped.suite("tflite"), selection="again_batch_first_fresh")
    generate(asked, tmp_path / "onnx", print)
    convert_pack(open_pack(tmp_path / "onnx"), tmp_path / "made", "cmsis")

    made = open_pack(tmp_path / "made")
    assert made.layout == "cmsis"
    (vector,) = made.vectors()
    found = {
        path.relative_to(tmp_path / "made").as_posix()
        for path in (tmp_path / "made").rglob("test_data.h")
    }
    folder = f"test_{vector.id}"
    assert found == {f"{folder}/test_data.h", f"{folder}/calls/1/test_data.h"}


def test_float_lstms_are_refused(tmp_path):
    """They have no multipliers."""
    whose = LAYOUTS["cmsis"].whose
    asked = GenerationPlan(suite=shipped.suite("tflite_float"), layout="cmsis")
    with pytest.raises(Unsupported, match=f"_FLOAT is not {re.escape(whose)}"):
        generate(asked, tmp_path / "made", print)
