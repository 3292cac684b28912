"""GridSample agrees with ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

from rnncli.errors import Unsupported

PADDINGS = ("zeros", "border", "reflection")


@pytest.mark.parametrize("align_corners", [0, 1])
@pytest.mark.parametrize("padding_mode", PADDINGS)
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_images(agrees, normal, mode, padding_mode, align_corners):
    """Images at random places, half of them outside."""
    agrees(
        "GridSample",
        16,
        normal(2, 3, 5, 6),
        normal(2, 4, 7, 2) * 1.5,
        mode=mode,
        padding_mode=padding_mode,
        align_corners=align_corners,
        tolerance=1e-4,
    )


@pytest.mark.parametrize("align_corners", [0, 1])
@pytest.mark.parametrize("padding_mode", PADDINGS)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_volumes(agrees, normal, mode, padding_mode, align_corners):
    """Three spatial axes, opset 20."""
    agrees(
        "GridSample",
        20,
        normal(2, 2, 4, 5, 3),
        normal(2, 3, 4, 2, 3) * 1.2,
        mode=mode,
        padding_mode=padding_mode,
        align_corners=align_corners,
        tolerance=1e-4,
    )


def test_identity(evaluate, normal):
    """The grid of the elements' own places returns the tensor."""
    x = normal(1, 2, 3, 4)
    places = [np.linspace(-1, 1, n, dtype=np.float32) for n in (4, 3)]
    grid = np.stack(np.meshgrid(*places), axis=-1)[None]

    (y,) = evaluate("GridSample", 20, x, grid, align_corners=1)

    np.testing.assert_allclose(y, x, atol=1e-5)


def test_unknown_mode(evaluate, normal):
    """A mode that is not known is refused."""
    with pytest.raises(Unsupported, match="mode 'area' is not supported"):
        evaluate("GridSample", 20, normal(1, 1, 2, 2), normal(1, 2, 2, 2), mode="area")
