"""The judge of outputs that another program gave for a model: by which tolerance, and why not.

What names the cause is imported where outputs differ: a plain run needs none of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.errors import Unsupported
from rnncli.models.model import Model
from rnncli.models.streams import streams_of
from rnncli.running.request import FIXED, GIVEN, MEASURED, STORED, ExpectedReport

if TYPE_CHECKING:
    from rnncli.cases.case import Case
    from rnncli.running.request import Request, Run


@dataclass(frozen=True, slots=True)
class ExpectedOutputs:
    """A judge of expected outputs; see `running.tasks.Judge`."""

    def report(self, loaded: Model | Case, request: Request, run: Run) -> ExpectedReport:
        """Compare the outputs of a run with those that are expected of it, and explain them.

        Outputs of another program have the tolerance that is measured on the model, as those of a
        runtime have, where one can be measured.
        """
        from rnncli.judging.comparing.comparison import MODEL, Sides, compare

        assert run.expected
        outputs, wanted = run.outputs, run.expected
        words = STORED if run.tolerances else FIXED
        tolerance = request.tolerance._replace(elements=run.tolerances)
        if request.expected_from:  # which need not have all
            outputs = {name: values for name, values in outputs.items() if name in wanted}
        if not request.own_tolerances:
            words, tolerance = GIVEN, request.tolerance
        elif request.expected_from and isinstance(loaded, Model):
            from rnncli.verifying.whole_model import expectation

            try:
                exact, tolerance = expectation(loaded, request, run)
                words = MEASURED
                outputs = {name: exact[name] for name in outputs}
            except Unsupported as error:
                words = f"{FIXED}; none can be measured: {error}"
        has = f"{Path(request.expected_from).name or request.expected_from or run.name} has"
        compared = compare(outputs, wanted, tolerance, Sides(MODEL, has))
        sizes = streams_of(loaded).sizes_of(run.inputs) if isinstance(loaded, Model) else {}
        report = ExpectedReport(tuple(compared), words, sizes)
        if compared.exit_code != 1 or not isinstance(loaded, Model):
            return report
        from rnncli.verifying.model_causes import why_they_differ

        why = why_they_differ(loaded, request, run, wanted, outputs, tolerance, has)
        return report._replace(**why)
