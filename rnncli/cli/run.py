"""`rnncli run`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rnncli.cli.command import Command, Written
from rnncli.cli.judging_options import allow_unexercised_option
from rnncli.cli.options import (
    NAMED_TARGET,
    Name,
    backend_option,
    from_option,
    host_option,
    input_options,
    json_option,
    option_of,
    options_of,
    readings_option,
    tolerance_options,
)
from rnncli.jobs.workers import Workers
from rnncli.limits import Limits
from rnncli.subjects.implementation import Implementation

if TYPE_CHECKING:
    from rnncli.running.request import Request
    from rnncli.verifying.whole_model import RuntimeRival


@click.command(
    cls=Command,
    elsewhere={"--runtime": "--against RUNTIME, which compares a runtime's outputs of the model"},
)
@click.argument("targets", type=NAMED_TARGET, nargs=-1, metavar="TARGET...")
@from_option("more targets")
@click.option(
    "-o",
    "--output",
    type=Written("--json prints a summary there"),
    metavar="PATH",
    default="",
    help="Write outputs to PATH.npz or PATH.h5; any other PATH is a folder and becomes an ONNX test"
    " case. Several targets need a folder and get one entry each in it.",
)
@click.option(
    "--format",
    "entry_format",
    type=click.Choice(["onnx", "npz", "h5"]),
    default="onnx",
    show_default=True,
    help="Format of each entry of that folder, for several targets.",
)
@input_options
@click.option(
    "--expected",
    "expected_from",
    default="",
    metavar="FILE",
    help="Compare with the outputs in an .npz, an .h5 or a test_data_set folder, by name; others"
    " are not compared.",
)
@click.option(
    "--save-inputs",
    type=Written(),
    default="",
    metavar="PATH",
    help="Write the inputs to PATH.npz or .h5; for several targets, a folder of .npz files.",
)
@click.option(
    "--steps",
    type=Written(),
    default="",
    metavar="PATH",
    help="Write the signals of every step, such as gates, with tolerances, to PATH.npz or .h5; of"
    " several targets, to a folder (docs/howto/packs.md).",
)
@options_of(Workers, only=["jobs"])
@backend_option
@host_option
@option_of(Implementation, "compute")
@click.option(
    "--against",
    type=Name("runtime", "rnncli.subjects.runtimes:known_subjects"),
    default="",
    help="Run the model in this runtime as well and compare its outputs; `rnncli runtimes` lists"
    " them.",
)
@allow_unexercised_option
@option_of(Implementation, "runtime_option")
@options_of(Limits)
@readings_option
@tolerance_options
@json_option
def run(targets: tuple[str, ...], **options: Any) -> int:
    """Evaluate models, operator configs and suites; print a summary, write outputs.

    TARGET is model.onnx (or .textproto, .json, .onnxtxt), model.xml of OpenVINO with one recurrent
    node alone (extra `runtimes`), config.yaml, suite.yaml (every case that
    is valid), suite.yaml::ID, a folder or archive with a model and test_data_set_N/, the name of a
    config or suite that ships with rnncli, or - for a config on standard input.

    Inputs are the given ones, otherwise those of the test data sets, whose outputs are then
    compared, or otherwise generated from the declared shapes. --expected names outputs to compare
    with. Unless tolerances are given, outputs
    are compared by the tolerance_K.pb beside them, as in packs, or with --atol 1e-5 --rtol 1e-3
    --max-ulp 1. A generated dimension without a size in the model, --dim or --shape is that of the
    expected outputs, or 1, or the smallest size found at which all nodes run; a warning names it.

    --against runs a model in a runtime, too, in a process of its own, on the same inputs, of which
    free axes are 16 steps and 3 sequences if the model runs at that. Its
    outputs are compared with the model in float64; tolerances come from how far roundings move
    them, unless --atol, --rtol or --max-ulp are given. If an output differs, the first recurrent
    node that the runtime computes wrong by itself is named (docs/howto/extract.md).

    \b
    rnncli run model.onnx -o out.npz
    rnncli run model.onnx --inputs real.npz --against onnxruntime
    rnncli run model.onnx --dim batch=2,seq=16 -i lengths=lens.npy
    rnncli run lstm_14_peepholes --reading clip-scope=gates --json
    rnncli run core -j 2 -o outputs/
    ls models/*.onnx | rnncli run --from - -j 4 -o results/
    """
    from rnncli.reports.runs import RunPrinter
    from rnncli.running.tasks import all_targets, plan, run_all

    listed = all_targets(targets, options.pop("from_file") or ())
    places = {
        name: options.pop(name) for name in ("output", "entry_format", "save_inputs", "steps")
    }
    workers, as_json = options.pop("workers"), options.pop("as_json")
    if options["allow_unexercised"] and not options["against"]:
        raise click.UsageError("--allow-unexercised is for --against")
    is_own = any(options[name] for name in ("atol", "rtol", "max_ulp"))
    if options["against"] and options["backend"] != "numpy" and not is_own:
        raise click.UsageError(
            "--backend does not take part in --against, which compares with float64, unless"
            " tolerances are given"
        )
    rival = _rival(options.pop("against"), options.pop("runtime_option"), options["limits"])
    tasks = plan(listed, _request(options), **places, rival=rival)
    tracebacks = click.get_current_context().find_root().meta.get("traceback", False)
    with RunPrinter(as_json=as_json, total=len(tasks)) as printer:
        for report in run_all(tasks, workers):
            printer.show(report, traceback=tracebacks)
    return printer.exit_code


def _rival(runtime: str, settings: dict[str, str] | None, limits: Limits) -> RuntimeRival | None:
    """Return the runtime that runs the models as well, if one is named."""
    if not runtime:
        if settings:
            raise click.UsageError("--runtime-option is for the runtime of --against")
        return None
    from rnncli.verifying.whole_model import RuntimeRival

    rival = RuntimeRival(Implementation(runtime=runtime, runtime_option=settings, limits=limits))
    rival.check()
    return rival


def _request(options: dict[str, Any]) -> Request:
    """Bundle the options that apply to every target."""
    from rnncli.judging.tolerances.tolerance import DATA_SET, Tolerance
    from rnncli.running.request import Request

    numbers = {name: options.pop(name) for name in ("atol", "rtol", "max_ulp")}
    given = any(numbers.values())
    tolerance = Tolerance.parse(**numbers) if given else DATA_SET
    tolerance = tolerance._replace(equal_nan=options.pop("equal_nan"))
    for name in ("input_files", "shapes", "readings"):
        options[name] = dict(options[name])
    return Request(tolerance=tolerance, own_tolerances=not given, **options)
