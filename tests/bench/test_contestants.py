"""Claims about who is compared."""

import pytest

from rnncli.bench import contestants
from rnncli.bench.contestants import USUAL, backends, runtimes
from rnncli.errors import InvalidRequest, Unsupported
from rnncli.subjects.runtimes import SUBJECTS, known_subjects


def test_all_runtimes_and_torch_can_be_named():
    """Whatever can be judged, and one that has layers but runs no models."""
    assert {*SUBJECTS, "torch"} <= {*known_subjects()}


def test_the_usual_ones_are_left_out_where_they_are_not_installed(monkeypatch):
    """With the reason; one asked for by name is an error."""
    monkeypatch.setattr(contestants, "find_spec", lambda name: None)

    found, missing = runtimes(None)

    assert (found, list(missing)) == ([], list(USUAL))
    with pytest.raises(Unsupported, match="runtime 'torch' is not installed: install it with"):
        runtimes(["torch"])
    with pytest.raises(Unsupported, match=r"install it with: .*\[runtimes\]"):
        runtimes(["openvino"])


def test_unknown_names_are_errors_with_a_suggestion():
    """Of runtimes and of backends."""
    with pytest.raises(InvalidRequest, match="did you mean 'onnxruntime'"):
        runtimes(["onxruntime"])
    with pytest.raises(InvalidRequest, match="did you mean 'numpy'"):
        backends(["nunpy"], "native")


def test_no_runtime_at_all_can_be_asked_for():
    """Backends are then compared with each other."""
    assert runtimes([]) == ([], {})


def test_backends_are_made_as_asked():
    """Arithmetic and binding are their settings; any that can evaluate can be measured."""
    (numpy, mutant) = backends(["numpy", "mutant:rnn-x"], "float64", "bound")

    assert numpy.settings == {"backend": "numpy", "compute": "float64", "call": "bound"}
    assert (numpy.is_own, mutant.name) == (True, "mutant:rnn-x")


def test_a_host_is_part_of_a_backends_name():
    """Ratios with another host are those of another implementation."""
    (own,) = backends(["numpy"], "native", host="onnxruntime")

    assert own.name == "numpy onnxruntime"
    assert own.settings["host"] == "onnxruntime"


def test_openvino_is_asked_for_its_fastest_single_run():
    """Its default is to answer many requests at once."""
    pytest.importorskip("openvino")
    ((openvino,), _) = runtimes(["openvino"])

    assert openvino.settings["PERFORMANCE_HINT"] == "LATENCY"
