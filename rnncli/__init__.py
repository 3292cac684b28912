"""Evaluate recurrent neural operators exactly as their specifications say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.api import pytest_plugin
    from rnncli.api.commands import diagnose, generate, probe, relate, score, stream, verify
    from rnncli.api.conformance import Judgement, judge
    from rnncli.cases.config.config import load_config as load_case
    from rnncli.cases.suite.suite import load_suite
    from rnncli.files.formats import read_tensors, write_tensors
    from rnncli.generating.generation import GenerationReport
    from rnncli.jobs.workers import Workers
    from rnncli.judging.comparing.comparison import Comparison, compare
    from rnncli.judging.comparing.rule import Rule
    from rnncli.judging.comparing.verdict import Verdict
    from rnncli.judging.report import VerificationReport
    from rnncli.judging.selected import Selected
    from rnncli.limits import Limits
    from rnncli.models import weights as weights
    from rnncli.models.loading import load_model
    from rnncli.models.sessions import Session, evaluate_model, prepare
    from rnncli.numerics import Array
    from rnncli.operators import Operator
    from rnncli.packs.pack import open_pack
    from rnncli.subjects.implementation import Implementation
    from rnncli.verifying.scoring import ScoreReport
    from rnncli.verifying.verification import DiagnosisReport

    pytest = pytest_plugin

__all__ = [
    "Comparison",
    "DiagnosisReport",
    "GenerationReport",
    "Implementation",
    "Judgement",
    "Limits",
    "Rule",
    "ScoreReport",
    "Selected",
    "Session",
    "Verdict",
    "VerificationReport",
    "Workers",
    "__version__",
    "compare",
    "diagnose",
    "evaluate",
    "evaluate_model",
    "generate",
    "judge",
    "load_case",
    "load_model",
    "load_suite",
    "open_pack",
    "prepare",
    "probe",
    "read_tensors",
    "relate",
    "score",
    "stream",
    "verify",
    "write_tensors",
]

__version__ = "0.1.0"

# Imported on first use: `import rnncli` loads neither NumPy nor onnx.
_ELSEWHERE = {
    "Comparison": "rnncli.judging.comparing.comparison:Comparison",
    "DiagnosisReport": "rnncli.verifying.verification:DiagnosisReport",
    "GenerationReport": "rnncli.generating.generation:GenerationReport",
    "Implementation": "rnncli.subjects.implementation:Implementation",
    "Judgement": "rnncli.api.conformance:Judgement",
    "Limits": "rnncli.limits:Limits",
    "Rule": "rnncli.judging.comparing.rule:Rule",
    "ScoreReport": "rnncli.verifying.scoring:ScoreReport",
    "Selected": "rnncli.judging.selected:Selected",
    "Session": "rnncli.models.sessions:Session",
    "Verdict": "rnncli.judging.comparing.verdict:Verdict",
    "VerificationReport": "rnncli.judging.report:VerificationReport",
    "Workers": "rnncli.jobs.workers:Workers",
    "compare": "rnncli.judging.comparing.comparison:compare",
    "diagnose": "rnncli.api.commands:diagnose",
    "evaluate_model": "rnncli.models.sessions:evaluate_model",
    "generate": "rnncli.api.commands:generate",
    "judge": "rnncli.api.conformance:judge",
    "load_case": "rnncli.cases.config.config:load_config",
    "load_model": "rnncli.models.loading:load_model",
    "load_suite": "rnncli.cases.suite.suite:load_suite",
    "open_pack": "rnncli.packs.pack:open_pack",
    "prepare": "rnncli.models.sessions:prepare",
    "probe": "rnncli.api.commands:probe",
    "pytest": "rnncli.api.pytest_plugin:",  # the colon: a module, whose own ImportError is told
    "read_tensors": "rnncli.files.formats:read_tensors",
    "relate": "rnncli.api.commands:relate",
    "stream": "rnncli.api.commands:stream",
    "score": "rnncli.api.commands:score",
    "verify": "rnncli.api.commands:verify",
    "weights": "rnncli.models.weights:",
    "write_tensors": "rnncli.files.formats:write_tensors",
}


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]


if not TYPE_CHECKING:  # which would let a checker take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name not in _ELSEWHERE:
            raise AttributeError(f"module 'rnncli' has no attribute '{name}'")
        import pkgutil

        found = globals()[name] = pkgutil.resolve_name(_ELSEWHERE[name])
        return found


def evaluate(
    operator: Operator | str,
    inputs: Mapping[str, Array] | None = None,
    *,
    outputs: Sequence[str] | None = None,
    readings: Mapping[str, str] | None = None,
    backend: str = "numpy",
    compute: str = "float64",
    **attributes: Any,
) -> dict[str, Array]:
    """Evaluate one operator the way its specification says.

    T steps, N sequences, I inputs, H units, D directions; `rnncli ops LSTM-14` lists the shape of
    every input and output.

    >>> import numpy as np
    >>> X, W, R = np.ones((5, 1, 2)), np.ones((1, 3, 2)), np.zeros((1, 3, 3))
    >>> evaluate("RNN-14", {"X": X, "W": W, "R": R}, direction="reverse")["Y"].shape
    (5, 1, 1, 3)

    Args:
        operator: its name and version, `LSTM-14`, or a row of `rnncli.operators.OPERATORS`.
        inputs: arrays by the specification's input names, all of one floating-point dtype, or what
            NumPy makes arrays of; absent optional inputs are left out. Whole numbers in a list are
            taken as the integers that an input wants, `"sequence_lens": [4, 2]`, and other numbers
            as the type that the arrays beside them have.
        outputs: the names wanted; None means all of them.
        readings: choices on contested points of the specification, by name.
        backend: which backend evaluates.
        compute: "float64" (all arithmetic in float64, each output rounded once) or "native".
        attributes: by the specification's names; absent ones have its defaults.

    Returns:
        The outputs asked for, by name, in the dtype of the inputs.

    Raises:
        rnncli.errors.InvalidOperator: attributes, inputs, outputs or readings break the
            specification; nothing was computed.
        rnncli.errors.InvalidRequest: unknown operator, backend or compute mode.
        rnncli.errors.Unsupported: the backend cannot evaluate this.
    """
    from rnncli import operators
    from rnncli.numerics import warn_of_nan

    row = operators.operator_named(operator) if isinstance(operator, str) else operator
    if inputs is None or any(each.name in attributes for each in row.inputs):
        from rnncli.errors import InvalidRequest

        named = [r.name for r in row.inputs if r.name in attributes or not r.optional]
        written = ", ".join(f"'{name}': {name}" for name in named)
        call = f"evaluate('{row.name}', {{{written}}})"
        raise InvalidRequest(f"{row.name}: inputs are given by name in a mapping; write {call}")
    arrays = operators.arrays_of(row, inputs)
    found = operators.evaluate(
        row,
        arrays,
        attributes=attributes,
        outputs=outputs,
        readings=readings,
        backend=backend,
        compute=compute,
    )
    warn_of_nan(arrays.values(), found)
    return found
