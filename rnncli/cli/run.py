"""`rnncli run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rnncli.api import commands
from rnncli.cli.command import command
from rnncli.cli.options import NAMED_TARGET, Name, Written, more_targets, row
from rnncli.jobs.workers import HERE, Workers
from rnncli.limits import UNLIMITED, Limits
from rnncli.models.evaluation_settings import HOSTS
from rnncli.subjects.implementation import Implementation

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

RUNTIME = "--against RUNTIME, which compares a runtime's outputs of the model"


@command(
    *(commands.stream, Implementation),
    elsewhere={"--runtime": RUNTIME},
    targets=row(type=NAMED_TARGET, nargs=-1, metavar="TARGET...", required=False),
    from_file=more_targets("more targets"),
    output=row("-o", type=Written("--json prints a summary there"), metavar="PATH"),
    entry_format=row("--format", type=click.Choice(["onnx", "npz", "h5"]), section="Reports"),
    expected_from=row("--expected", metavar="FILE"),
    save_inputs=row(type=Written(), metavar="PATH", section="Inputs"),
    steps=row(type=Written(), metavar="PATH", section="Reports"),
    workers=row(only=["jobs"]),
    against=row(type=Name("runtime", "rnncli.subjects.runtimes:known_subjects")),
)
def run(
    targets: tuple[str, ...],
    *,
    from_file: list[Any] | None = None,
    output: str = "",
    entry_format: str = "onnx",
    inputs: Mapping[str, str] | None = None,
    inputs_from: str = "",
    seed: int | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    dims: Mapping[str, int] | None = None,
    data_set: int | None = None,
    expected_from: str = "",
    save_inputs: str = "",
    steps: str = "",
    workers: Workers = HERE,
    backend: str = "numpy",
    host: str = HOSTS[0],
    compute: str = "float64",
    against: str = "",
    allow_unexercised: bool = False,
    runtime_option: Mapping[str, str] | None = None,
    limits: Limits = UNLIMITED,
    readings: tuple[tuple[str, str], ...] = (),
    atol: tuple[str, ...] = (),
    rtol: tuple[str, ...] = (),
    max_ulp: tuple[str, ...] = (),
    equal_nan: bool = True,
    as_json: bool = False,
) -> int:
    """Evaluate models, operator configs and suites; print a summary, write outputs.

    TARGET is model.onnx (or .textproto, .json, .onnxtxt), model.xml of OpenVINO with one recurrent
    node alone (extra `runtimes`), model.tflite of LSTMs alone (extra `tflite`),
    config.yaml, suite.yaml (every valid case), suite.yaml::ID, a folder or archive with a model and
    test_data_set_N/, the name of a shipped config or suite, or - for a config on standard input.

    Inputs are the given ones, those of the test data sets, whose outputs are then compared, or
    generated. A generated dimension without a size in the model, --dim or --shape is that of the
    expected outputs, or 1, or the smallest size at which all nodes run; a warning names it.

    --expected compares with outputs of another program; --against runs the model in a runtime, too,
    with 16 steps and 3 sequences where axes are free. Tolerances follow from how far roundings move
    the model's outputs, unless --atol, --rtol or --max-ulp are given; data sets and cases have
    their own. If outputs differ, the recurrent node is named, and the known bug or the arithmetic
    that gives them (docs/howto/against.md).

    \b
    rnncli run model.onnx -o out.npz
    rnncli run model.onnx --inputs real.npz --expected theirs.npz
    rnncli run model.onnx --inputs real.npz --against onnxruntime
    rnncli run model.onnx --dim batch=2,seq=16 -i lengths=lens.npy
    rnncli run lstm_14_peepholes --reading clip-scope=gates --json
    rnncli run core -j 2 -o outputs/
    ls models/*.onnx | rnncli run --from - -j 4 -o results/

    Options:
        output: Write outputs to PATH.npz or PATH.h5; any other PATH is a folder and becomes an ONNX
            test case. Several targets need a folder and get one entry each in it.
        entry_format: Format of each entry of that folder, for several targets.
        expected_from: Compare with the outputs in an .npz, an .h5 or a test_data_set folder, by
            name, or by shape where names differ.
        save_inputs: Write the inputs to PATH.npz or .h5; for several targets, a folder of .npz
            files.
        steps: Write the signals of every step, such as gates, with tolerances, to PATH.npz or .h5;
            for several targets, to a folder (docs/howto/hardware.md).
        against: Run the model in this runtime as well and compare its outputs; `rnncli runtimes`
            lists them.
    """
    from rnncli.judging.tolerances.tolerance import DATA_SET, Tolerance
    from rnncli.reports.runs import RunPrinter
    from rnncli.running.request import Request
    from rnncli.running.tasks import all_targets, plan, run_all
    from rnncli.verifying.expected_outputs import ExpectedOutputs

    listed = all_targets(targets, from_file or ())
    if allow_unexercised and not against:
        raise click.UsageError("--allow-unexercised is for --against")
    is_own = bool(atol or rtol or max_ulp)
    if against and backend != "numpy" and not is_own:
        raise click.UsageError(
            "--backend does not take part in --against, which compares with float64, unless"
            " tolerances are given"
        )
    if runtime_option and not against:
        raise click.UsageError("--runtime-option is for the runtime of --against")
    rival = None
    if against:
        from rnncli.verifying.whole_model import RuntimeRival

        asked = Implementation(runtime=against, runtime_option=runtime_option, limits=limits)
        rival = RuntimeRival(asked)
        rival.check()

    given = Tolerance.parse(atol=atol, rtol=rtol, max_ulp=max_ulp) if is_own else DATA_SET
    request = Request(
        tolerance=given._replace(equal_nan=equal_nan),
        own_tolerances=not is_own,
        backend=backend,
        compute=compute,
        readings=dict(readings),
        host=host,
        input_files=inputs or {},
        inputs_from=inputs_from,
        expected_from=expected_from,
        seed=seed,
        shapes=shapes or {},
        dims=dims or {},
        data_set=data_set,
        limits=limits,
        allow_unexercised=allow_unexercised,
    )
    places = {"output": output, "entry_format": entry_format, "save_inputs": save_inputs}
    tasks = plan(listed, request, **places, steps=steps, rival=rival, judge=ExpectedOutputs())
    tracebacks = click.get_current_context().find_root().meta.get("traceback", False)
    with RunPrinter(as_json=as_json, total=len(tasks)) as printer:
        for report in run_all(tasks, workers):
            printer.show(report, traceback=tracebacks)
    return printer.exit_code
