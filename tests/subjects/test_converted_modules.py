"""Claims about modules that onnx2pytorch makes: each type gets through, and so do other lengths."""

from pathlib import Path

import numpy as np
import pytest

from rnncli.packs.pack import open_pack

pytest.importorskip("onnx2pytorch")

from rnncli.subjects.runtimes.converted_modules import Onnx2PyTorch

VECTORS = Path(__file__).parents[2] / "vectors"


def vector(case_id, pack="core"):
    """A committed vector."""
    opened = open_pack(VECTORS / pack)
    return next(opened.read(case) for case in opened.manifest.cases if case.id == case_id)


def within(outputs, asked):
    """Whether outputs have their types, and are within their tolerances."""
    return all(
        outputs[name].dtype == wanted.dtype
        and (
            np.abs(outputs[name].astype(np.float64) - wanted.astype(np.float64))
            <= asked.answers.tolerances[name]
        ).all()
        for name, wanted in asked.answers.outputs.items()
    )


@pytest.mark.parametrize(
    "case_id",
    [
        "linearattention_27_types_bfloat16_float32",
        "linearattention_27_types_float32_float16",
        "causalconvwithstate_27_conv_types_bfloat16_silu",
        "linearattention_27_cleared_gated_delta",
    ],
)
def test_a_linear_recurrence_is_right_in_its_types(case_id):
    """Tensors and states have types of their own."""
    asked = vector(case_id, "linear")

    assert within(Onnx2PyTorch({}, 1).run(asked), asked)


def test_a_call_of_other_lengths_has_them():
    """The module holds those of its own calls; the first call again is as it was."""
    asked = vector("gru_14_twice")
    run = Onnx2PyTorch({}, 1).open(asked)
    for call in (asked, *asked.later, asked):
        assert within(run(call), call)


def test_a_module_with_one_output_gives_it_by_its_name():
    """PyTorch returns it without a tuple."""
    assert list(Onnx2PyTorch({}, 1).run(vector("gru_14_y_only"))) == ["Y"]
