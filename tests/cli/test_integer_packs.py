"""Claims about packs of integer LSTMs: they are scored, bugs are named, and so is a preset."""

import json

import pytest

from rnncli import generate, verify
from rnncli.mutants.mutant import RIGHT
from rnncli.reports.verification import closing

SUITE = """\
suite: ints
summary: Integer LSTMs.
seed: 3
defaults:
  op: tflite.UNIDIRECTIONAL_SEQUENCE_LSTM
  profile: exact
  sizes: {seq_length: 4, batch_size: 2, input_size: 3, hidden_size: 4}
  attributes:
    input_scale: 0.01171875
    input_zero_point: 7
    output_state_scale: 0.00830078125
    output_state_zero_point: -5
    cell_state_scale: 0.000244140625
    input_weight_scales: [0.0146484375, 0.0126953125, 0.0107421875, 0.0166015625]
    recurrent_weight_scales: [0.0126953125, 0.0185546875, 0.0107421875, 0.0146484375]
cases:
  small:
    summary: Given states and none, and scales of the cell state.
    dtype: int8
    inputs: {cell_state: {uniform: [-9000, 9000]}}
    zip:
      output_state: {given: {uniform: [-100, 100]}, none: null}
      cell_clip: {given: 0.5, none: null}
    matrix: {cell_state_scale: {p12: 0.000244140625, p14: 0.00006103515625}}
  large:
    summary: Terms of arguments beyond 8.
    dtype: int8
    attributes: {recurrent_weight_scales: [0.125, 0.15625, 0.1875, 0.171875]}
    inputs: {output_state: {uniform: [-100, 100]}}
    sizes: {batch_size: 3}
  wide:
    summary: int16 activations.
    dtype: int16
    attributes: {input_zero_point: 0, output_state_zero_point: 0, output_state_scale: 0.000030517}
    inputs: {input: {uniform: [-100, 100]}}
"""


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """A pack of a few cases."""
    folder = tmp_path_factory.mktemp("ints")
    (folder / "ints.yaml").write_text(SUITE)
    generate(folder / "ints.yaml", output=folder / "pack")
    return folder / "pack"


@pytest.mark.parametrize(
    "bug",
    [
        "integer-gates-icfo",
        "integer-hidden-zero-point-forgotten",
        "integer-biases-on-both-products",
        "integer-clip-before-sum",
        "integer-cell-exponent-fixed",
        "integer-last-c-not-written",
    ],
)
def test_bugs_are_named_by_cases(rnncli, pack, bug):
    """By their ids, from what the failures are."""
    done = rnncli("diagnose", pack, "--backend", f"mutant:{bug}", "--json")
    lines = [json.loads(line) for line in done.out.splitlines()]

    assert {line.get("hypothesis") for line in lines} & {bug}


@pytest.mark.parametrize(("preset", "whose"), [("cmsis", "CMSIS-NN"), ("litert", "LiteRT")])
def test_a_device_that_computes_as_another_implementation_is_told_so(pack, preset, whose):
    """In one line, with the option that judges by it; no bug is sought."""

    def device(vector):
        if preset == "litert" and vector.record.dtype == "int16":
            return vector.node.outputs_of(RIGHT.run(vector.recurrence))
        return vector.node.outputs_of(RIGHT.run(vector.recurrence_under(f"preset={preset}")))

    found = verify(pack, device)

    assert found.exit_code == 0
    (line,) = [line for line in closing(found) if line.startswith("acceptable")]
    assert f"as preset={preset} has it ({whose}" in line
    assert line.endswith(f": --reading preset={preset} judges by that")


def test_a_pack_is_scored_by_the_bugs_of_its_operator(rnncli, pack):
    """A bug that it does not show is one that it cannot, or survives."""
    (record,) = map(json.loads, rnncli("score", pack, "--json").out.splitlines())
    (cell,) = record["cells"]

    assert cell["name"] == "IntegerLSTM"
    assert cell["killed"] > 100
