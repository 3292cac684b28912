"""The forms for C and for hardware, read back by the tools that read them."""

import math
import re
import shutil
import subprocess
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from msgspec import UNSET
from msgspec.structs import replace as with_entries
from support.random_units import suite_of
from support.second_calls import TEXT, twice
from support.shipped import vectors
from support.small_suite import small_suite

from rnncli.cases.suite.suite import parse_suite
from rnncli.errors import InvalidRequest, Unsupported
from rnncli.generating.generation import GenerationPlan, generate
from rnncli.generating.production import make_vectors
from rnncli.numerics import dtype_named
from rnncli.packs.conversion import convert_pack
from rnncli.packs.derived_forms import c_files, hex_files, prefix_of, tensors_of
from rnncli.packs.layouts import LAYOUTS
from rnncli.packs.pack import open_pack

ROOT = Path(__file__).parents[2]
CORE = ROOT / "vectors" / "core"
ID = "lstm_14_given"
WARNINGS = ("-Wall", "-Wextra", "-pedantic", "-Werror")
COMPILERS = {"gcc": ("-std=c99", "case.c"), "g++": ("-std=c++17", "case.cc")}
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-38, 3.4028235e38, 1 / 3, 1.0)
PAYLOAD = np.array([0x7FC00001, 0xFFC00000, 0x3F800000], "<u4").view("<f4")


def test_the_page_says_what_each_layout_is():
    """The help of --format names it."""
    page = (ROOT / "docs/howto/packs.md").read_text("utf-8")
    rows = re.findall(
        r"^\| `(\w+)` \| (.*) \|$",
        page.partition("## Layouts")[2].partition("\n## ")[0],
        re.MULTILINE,
    )

    assert dict(rows) == {name: row.summary for name, row in LAYOUTS.items()}


@pytest.fixture(scope="module")
def vector():
    """A case with a second call."""
    return twice()[ID]


def with_input(vector, values):
    """The case with another X."""
    return replace(vector, inputs={"X": np.asarray(values)}, later=())


def installed(program):
    """Skip a test where a program is not installed."""
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")


def compiled(folder, compiler, source, *options):
    """Compile a source without a warning; return the program."""
    standard, name = COMPILERS[compiler]
    (folder / name).write_text(source)
    command = [compiler, standard, *WARNINGS, *options, "-I", folder, folder / name]
    done = subprocess.run(
        [*command, "-o", folder / "program"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "program"


PRINTER = """\
#include <stdio.h>
#include "{header}"
int main(void) {{
  const unsigned char *data = (const unsigned char *){array};
  for (unsigned long k = 0; k < {count} * sizeof *{array}; k++) printf("%02x", (unsigned)data[k]);
  return 0;
}}
"""


def in_c(folder, compiler, vector, name="X"):
    """The bytes of a tensor as a compiler reads them from the header."""
    (folder / "case.h").write_bytes(c_files(vector)["case.h"])
    array = f"{prefix_of(vector.id)}_{name}"
    source = PRINTER.format(header="case.h", array=array, count=f"{array}_COUNT")
    program = compiled(folder, compiler, source)
    return bytes.fromhex(subprocess.run([program], capture_output=True, check=True).stdout.decode())


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(
    "values",
    [
        np.array(SPECIAL, np.float32),
        np.array([*SPECIAL, 5e-324, 1.7976931348623157e308], np.float64),
        np.array([*SPECIAL[:7], 65504, 6e-8], np.float16),
        np.array(SPECIAL, np.float32).astype(dtype_named("bfloat16").numpy),
        PAYLOAD,
        np.array([-(1 << 63), (1 << 63) - 1, 0], np.int64),
        np.array([-(1 << 31), (1 << 31) - 1], np.int32),
        np.array([0, (1 << 64) - 1], np.uint64),
        np.array([True, False]),
    ],
    ids=lambda values: f"{values.dtype}",
)
def test_a_compiler_reads_the_bits_of_every_element(tmp_path, vector, compiler, values):
    """-0.0, infinities, NaN with a payload, the smallest and the largest numbers."""
    installed(compiler)
    got = in_c(tmp_path, compiler, with_input(vector, values))

    assert got == values.tobytes()


@pytest.mark.parametrize("name", ["X", "Y", "Y_tol", "call1_X", "call1_Y_c", "sequence_lens"])
def test_every_tensor_is_in_the_header(tmp_path, vector, name):
    """Inputs, outputs and tolerances of each call; a tolerance of 0 as zeros."""
    installed("gcc")
    values = {tensor.name: tensor.values for tensor in tensors_of(vector)}

    assert in_c(tmp_path, "gcc", vector, name) == values[name].tobytes()


def test_a_tensor_without_elements_is_an_array_of_one(tmp_path, vector):
    """C has no array of none; its count says 0."""
    installed("gcc")
    header = c_files(with_input(vector, np.zeros((0, 3), np.float32)))["case.h"]
    (tmp_path / "case.h").write_bytes(header)
    compiled(tmp_path, "gcc", f'#include "case.h"\nint main(void) {{ return {ID}_X_COUNT; }}\n')

    assert subprocess.run([tmp_path / "program"], check=False).returncode == 0


def test_sizes_attributes_and_readings_are_macros(tmp_path, vector):
    """As a kernel's configuration; lists have a count."""
    installed("gcc")
    (tmp_path / "case.h").write_bytes(c_files(vector)["case.h"])
    program = compiled(
        tmp_path,
        "gcc",
        f"""\
#include <stdio.h>
#include "case.h"
int main(void) {{
  printf("%d %d %s %s %s %d %d", {ID}_SEQ_LENGTH, {ID}_HIDDEN_SIZE, {ID}_OPERATOR,
         {ID}_ATTRIBUTE_DIRECTION, {ID}_READING_ZERO_LENGTH, {ID}_DATA_SETS, {ID}_MUST_BE_REFUSED);
  return 0;
}}
""",
    )
    printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout

    assert printed == "4 2 LSTM-14 bidirectional zero 2 0"


def test_a_truth_value_is_0_or_1():
    """As in a model file; the words before it say true or false."""
    found = next(each for each in vectors("webnn") if each.id == "webnn_gru_plain")
    header, package = (form(found) for form in (c_files, hex_files))
    text = next(iter(header.values())).decode()
    words = b"".join(values for name, values in package.items() if name.endswith("svh")).decode()

    assert "#define webnn_gru_plain_ATTRIBUTE_RETURNSEQUENCE 1\n" in text
    assert "`define webnn_gru_plain_ATTRIBUTE_RETURNSEQUENCE 1\n" in words
    assert "attribute resetAfter: true; " in text


def test_a_float_attribute_is_the_float32_that_onnx_stores(vector):
    """0.1 is not a number of ONNX."""
    other = replace(vector, record=with_entries(vector.record, attributes={"clip": 0.1}))

    assert f"{ID}_ATTRIBUTE_CLIP 0x1.99999ap-4f" in c_files(other)["case.h"].decode()
    assert f"{ID}_ATTRIBUTE_CLIP 0.10000000149011612" in hex_files(other)["case.svh"].decode()


def test_words_of_a_case_end_neither_a_comment_nor_a_string(tmp_path, vector):
    """Whatever an extracted model is called."""
    installed("gcc")
    nasty = {"summary": '*/ #error "??/\n\\', "reason": '"\\??/\u00e9\n*/'}
    other = replace(vector, record=with_entries(vector.record, **nasty))

    assert in_c(tmp_path, "gcc", other) == vector.inputs["X"].tobytes()


@pytest.mark.parametrize(
    ("case_id", "prefix"),
    [("a_b", "a_b"), ("a_xb", "a_xb"), ("a-b", "a_x2d_b"), ("9x", "case_9x"), ("case_x", "case_x")],
)
def test_an_id_becomes_an_identifier(case_id, prefix):
    """And two ids never the same by leaving something out."""
    assert prefix_of(case_id) == prefix


def test_what_c_cannot_say_is_refused(vector):
    """In one sentence."""
    with pytest.raises(Unsupported, match="C has no type for a tensor of complex64"):
        c_files(with_input(vector, np.zeros(2, np.complex64)))


@pytest.mark.parametrize("pack", [1, 3, 8])
def test_a_word_has_its_first_element_in_the_low_bits(vector, pack):
    """The last word is filled with zeros, and a line is a word."""
    X = np.arange(7, dtype=np.float16).reshape(7, 1)
    files = hex_files(with_input(vector, X), pack)
    words = [int(line, 16) for line in files["inputs/X.hex"].split()]

    elements = [word >> 16 * k & 0xFFFF for word in words for k in range(pack)]
    assert elements == [*X.view(np.uint16).ravel().tolist(), *[0] * (len(elements) - 7)]
    assert {len(line) for line in files["inputs/X.hex"].split()} == {4 * pack}
    header = files["case.svh"].decode()
    assert f"`define {ID}_X_WIDTH {16 * pack}\n" in header
    assert f"`define {ID}_X_DEPTH {math.ceil(7 / pack)}\n" in header
    assert f'`define {ID}_X_FILE "test_{ID}/inputs/X.hex"\n' in header


READER = """\
`include "test_{id}/case.svh"
module reader;
  reg [`{id}_X_WIDTH-1:0] words [0:`{id}_X_DEPTH-1];
  integer k;
  initial begin
    $readmemh(`{id}_X_FILE, words);
    for (k = 0; k < `{id}_X_DEPTH; k = k + 1) $display("%h", words[k]);
  end
endmodule
"""


@pytest.mark.parametrize("pack", [1, 4])
def test_a_simulator_reads_the_words(tmp_path, vector, pack):
    """Plain Verilog, by $readmemh."""
    installed("iverilog")
    for path, content in hex_files(vector, pack).items():
        file = tmp_path / f"test_{ID}" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (tmp_path / "reader.v").write_text(READER.format(id=ID))
    subprocess.run(["iverilog", "-Wall", "-o", "reader", "reader.v"], cwd=tmp_path, check=True)
    done = subprocess.run(["./reader"], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stdout == (tmp_path / f"test_{ID}" / "inputs" / "X.hex").read_text()


READ_ONE = """\
    $readmemh(`{name}_FILE, {name});
    $display("%s", `{name}_FILE);
    for (k = 0; k < `{name}_DEPTH; k = k + 1) $display("%h", {name}[k]);
"""


def test_a_simulator_reads_every_file_of_core(tmp_path):
    """With the depths and widths of the headers, all included in one module, and no warning."""
    installed("iverilog")
    convert_pack(open_pack(CORE), tmp_path / "hex", "hex")
    headers = sorted((tmp_path / "hex").glob("*/case.svh"))
    defined = [re.findall(r"`define (\w+)_FILE \"(.*)\"", path.read_text()) for path in headers]
    files = dict(pair for pairs in defined for pair in pairs)
    lines = [
        *(f'`include "{path.parent.name}/case.svh"' for path in headers),
        "module reader;",
        *(f"reg [`{name}_WIDTH-1:0] {name} [0:`{name}_DEPTH-1];" for name in files),
        "integer k;\ninitial begin",
        *(READ_ONE.format(name=name) for name in files),
        "end\nendmodule\n",
    ]
    (tmp_path / "hex" / "reader.v").write_text("\n".join(lines))
    compiling = ["iverilog", "-Wall", "-o", "reader", "reader.v"]
    done = [
        subprocess.run(command, cwd=tmp_path / "hex", capture_output=True, text=True, check=True)
        for command in (compiling, ["vvp", "-n", "reader"])
    ]

    assert len(files) == len([*(tmp_path / "hex").rglob("*.hex")])
    assert [each.stderr for each in done] == ["", ""]
    contents = (f"{file}\n{(tmp_path / 'hex' / file).read_text()}" for file in files.values())
    assert done[1].stdout == "".join(contents)


WRITE_ONLY = [name for name, row in LAYOUTS.items() if not row.reader]


@pytest.mark.parametrize("layout", WRITE_ONLY)
def test_a_form_that_is_only_written_is_not_read(tmp_path, layout):
    """The refusal says what to read instead; the pack's files are whole all the same."""
    plan = GenerationPlan(suite=small_suite(TEXT), layout=layout)
    assert generate(plan, tmp_path / "pack", lambda _: None).failed == ()
    pack = open_pack(tmp_path / "pack")

    assert [*pack.problems()] == []
    with pytest.raises(InvalidRequest, match="only written"):
        next(pack.vectors())


@pytest.mark.parametrize("layout", WRITE_ONLY)
@pytest.mark.parametrize("source", ["onnx", "npz"])
def test_every_source_gives_the_same_bytes(tmp_path, layout, source):
    """The forms are made from the vectors, not from files."""
    plan = GenerationPlan(suite=small_suite(TEXT), layout="raw")
    generate(plan, tmp_path / "raw", lambda _: None)
    convert_pack(open_pack(tmp_path / "raw"), tmp_path / source, source)
    for name in ("raw", source):
        convert_pack(open_pack(tmp_path / name), tmp_path / f"from_{name}", layout)

    first, second = (
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (tmp_path / "from_raw", tmp_path / f"from_{source}")
    )
    assert first == second


def test_every_header_of_core_compiles_without_a_warning(tmp_path):
    """As C99 and as C++17, all in one program."""
    for compiler in COMPILERS:
        installed(compiler)
    convert_pack(open_pack(CORE), tmp_path / "c", "c")
    headers = sorted(path.parent.name for path in (tmp_path / "c").glob("*/case.h"))
    source = "".join(f'#include "{name}/case.h"\n' for name in headers)

    assert len(headers) == len(open_pack(CORE).manifest.cases)
    source = f"{source}int main(void) {{ return 0; }}\n"
    for compiler in COMPILERS:
        compiled(tmp_path, compiler, source, "-I", tmp_path / "c")


def test_different_ids_are_different_identifiers():
    """Also those that look like what another id becomes: a guard would leave one header out."""
    parts = ("a", "-", "_", "x2d", "x5f", "9", "case", ".", "é")
    ids = {"".join(some) for count in range(1, 6) for some in product(parts, repeat=count)}

    assert len({*map(prefix_of, ids)}) == len(ids)
    assert all(re.fullmatch("[A-Za-z][A-Za-z0-9_]*", prefix_of(each)) for each in ids)


@pytest.mark.parametrize("form", [c_files, hex_files])
def test_words_of_strangers_stay_in_their_comment(form, vector):
    """No mark of direction turns the code around, and no backslash takes the next line in."""
    summary = "one */ line \u202e\u2066 of \x00 it \\\\"
    ((_, content), *_) = form(
        replace(vector, record=with_entries(vector.record, summary=summary))
    ).items()
    text = content.decode()

    assert "\\u202e" in text
    assert not {"\u202e", "\u2066", "\0"} & {*text}
    assert not [line for line in text.splitlines() if line.endswith("\\")]


@pytest.fixture(scope="module")
def unit():
    """A quantised unit with a scale for each row of W."""
    made = make_vectors(parse_suite(suite_of([2]), "units.yaml", Path()).entries)
    (found,) = made
    assert found.record.quantise["W"].axis is not UNSET
    return found


@pytest.mark.parametrize("name", ["W", "X", "Y"])
def test_a_unit_has_its_integers_scales_and_zero_points(tmp_path, unit, name):
    """In C and for $readmemh: a scale for each row where rows have their own."""
    installed("gcc")
    dress = unit.node.unit.by_name[name]
    levels = {**unit.inputs, **unit.answers.outputs}[name]
    scale, point = dress.factors(levels.shape)
    wanted = {
        name: levels,
        f"{name}_scale": scale,
        f"{name}_zero_point": point.astype(dress.type),
    }
    lines = hex_files(unit)

    for each, values in wanted.items():
        assert in_c(tmp_path, "gcc", unit, each) == values.tobytes()
        place = "quantise" if each != name else "inputs" if name in unit.inputs else "outputs"
        words = lines[f"{place}/{each}.hex"].decode().split()
        assert [int(word, 16) for word in words] == [
            int.from_bytes(value.tobytes(), "little") for value in values.ravel()
        ]
    assert f'_QUANTISE_{name}_TYPE "{dress.type}"' in (tmp_path / "case.h").read_text()
