"""`rnncli compare` and `rnncli convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rnncli.cli.command import command, hold, is_same_file
from rnncli.cli.options import MEMORY, Written, row
from rnncli.errors import InvalidRequest, NothingSelected
from rnncli.limits import UNLIMITED, Limits
from rnncli.packs.layouts import LAYOUTS
from rnncli.reports.tables import print_json_line
from rnncli.talk.terminal import say
from rnncli.talk.words import counted, shown


@command(
    a=row(type=click.Path(), metavar="A"), b=row(type=click.Path(), metavar="B"), limits=MEMORY
)
def compare(
    a: str,
    b: str,
    *,
    atol: tuple[str, ...] = (),
    rtol: tuple[str, ...] = (),
    max_ulp: tuple[str, ...] = (),
    equal_nan: bool = True,
    limits: Limits = UNLIMITED,
    as_json: bool = False,
) -> int:
    """Compare two files or folders of tensors; exit 1 if they differ, 5 without an element.

    B holds the expected values. Of folders with test data sets only the outputs are compared. What
    A calls by other names is compared with the only output of B whose name ends so, as Y of gru/Y
    or gru_Y, or that has its sizes.
    Without a tolerance, elements must be equal; -0.0 equals 0.0, and NaN equals NaN unless
    --no-equal-nan is given. With tolerances, an element agrees if |a - b| <= atol + rtol * |b|, or
    if the two are at most --max-ulp units in the last place apart. Of an output that differs, what
    it has in common with B's is told: that it is transposed, moved, repeated, exchanged, scaled or
    rounded, or how large its errors are beside those of rounding to a type.

    \b
    rnncli compare got.npz wanted.h5 --rtol 1e-5 --atol Y:1e-6
    """
    from rnncli.files.formats import read_outputs
    from rnncli.judging.comparing.comparison import Sides
    from rnncli.judging.comparing.comparison import compare as compare_tensors
    from rnncli.judging.comparing.likeness import beside_roundings, differences
    from rnncli.judging.tolerances.tolerance import Tolerance
    from rnncli.reports.runs import print_comparison
    from rnncli.running.matching import renamed

    if is_same_file(a, b):
        raise InvalidRequest(f"{a}, {b}: the same file or folder, so comparing them shows nothing")
    hold(limits)
    tolerance = Tolerance.parse(atol=atol, rtol=rtol, max_ulp=max_ulp, equal_nan=equal_nan)
    if Path(a).is_dir() and Path(b).is_dir():
        say("only outputs are compared: neither inputs nor models")
    wanted = read_outputs(b)
    got = renamed(read_outputs(a), wanted, a)
    names = (a, b) if Path(a).name == Path(b).name else (Path(a).name, Path(b).name)
    sides = Sides(*(f"{name} has" for name in names))
    outputs = compare_tensors(got, wanted, tolerance, sides)
    likes = differences(got, wanted, tolerance, sides)
    said = {name: [each.sentence for each in found] for name, found in likes.items()}
    for name, found in likes.items():
        if got[name].shape == wanted[name].shape and not any(each.explains for each in found):
            said[name] += filter(None, [beside_roundings(got[name], wanted[name])])
    if as_json:
        for output in outputs:
            print_json_line({**output.record(), "likeness": said.get(output.name, [])})
    else:
        print_comparison(outputs)
        for name, sentences in said.items():
            for sentence in sentences:
                say(f"{name}: {sentence}")
    if outputs.exit_code == NothingSelected.exit_code:
        raise NothingSelected(f"{a}, {b}: no element to compare")
    count = counted(len(outputs), "output")
    if wrong := [output for output in outputs if not output.agrees]:
        is_exact = not (atol or rtol or max_ulp) and not all(output.problem for output in wrong)
        hint = "; without --atol, --rtol or --max-ulp they must be equal" if is_exact else ""
        say(f"differs: {len(wrong)} of {count}{hint}")
    else:
        say(f"agrees: {count}, with errors up to {shown(max(o.max_abs or 0.0 for o in outputs))}")
    return outputs.exit_code


@command(
    source=row(type=click.Path(), metavar="A"),
    destination=row(type=Written(), metavar="B"),
    layout=row("--format", type=click.Choice([*LAYOUTS])),
    pack=row(type=click.IntRange(1, 4096)),
    library=row("--from", type=click.Choice(["torch", "keras", "openvino"])),
    to=row(type=click.Choice(["onnx", "torch", "keras", "openvino"])),
    cell=row(type=click.Choice(["LSTM", "GRU", "RNN"])),
    activation=row(type=click.Choice(["tanh", "relu"])),
    reset_after=row("--reset-after/--no-reset-after", type=bool),
    module=row(metavar="PATH"),
    limits=MEMORY,
)
def convert(
    source: str,
    destination: str,
    *,
    layout: str | None = None,
    pack: int | None = None,
    library: str | None = None,
    to: str | None = None,
    cell: str | None = None,
    activation: str | None = None,
    reset_after: bool | None = None,
    module: str | None = None,
    limits: Limits = UNLIMITED,
) -> None:
    """Convert tensors, or a pack, from one file format to another.

    The extension selects the format (`rnncli formats` lists them); a folder is an ONNX test case.
    Every tensor keeps its name, dtype, shape and bits. In a file, inputs and outputs of a test case
    are test_data_set_0/inputs/NAME and test_data_set_0/outputs/NAME. The model of a test case is
    copied only from folder to folder.

    A pack of conformance vectors is a folder with a manifest. B is then also a folder, new, empty
    or an earlier pack of the same suite, which is replaced, and --format selects its layout.

    With --from, A has recurrent weights by the names of a library, such as the state_dict of
    torch.nn.LSTM, in any of these formats, or is a .safetensors file, a checkpoint of PyTorch, or a
    .keras or .weights.h5 file of Keras 3; B is a model of the layers, or has the weights by the
    names of another library.

    \b
    rnncli convert out.npz out.h5
    rnncli convert weights.npz model.onnx --from torch
    rnncli convert model.safetensors model.onnx --from torch --module encoder.lstm
    rnncli convert core core_npz --format npz
    rnncli convert core core_hex --format hex --pack 4

    Options:
        layout: Layout of a converted pack (docs/howto/packs.md).
        pack: Elements in a word of the layout hex, the first in the low bits.  [default: 1]
        library: Library that the weights in A are of.
        to: What B is for; onnx is a model.  [default: onnx]
        cell: Cell of the weights.  [default: what the shapes say]
        activation: Activation of an RNN, which weights do not tell.  [default: tanh]
        reset_after: Whether a GRU of Keras resets after the product with R, which weights without
            bias do not tell.
        module: Path of the recurrent module in a larger model, as encoder.lstm.  [default: the only
            one]
    """
    from rnncli.files import formats
    from rnncli.generating.leftovers import manifest_in, replaced
    from rnncli.packs.conversion import convert_pack
    from rnncli.packs.pack import MODELS, find_pack, is_pack, open_pack
    from rnncli.reports.inspection import show_packs
    from rnncli.running.tasks import as_path
    from rnncli.running.weight_conversion import CHECKPOINTS, ONNX, convert_weights, libraries_of

    hold(limits)
    of_cell: dict[str, Any] = {
        "cell": cell,
        "activation": activation,
        "reset_after": reset_after,
        "module": module,
    }
    given = {name: value for name, value in of_cell.items() if value is not None}
    if library or to or given:
        if library is None:
            option = next(iter({"to": to} if to else given)).replace("_", "-")
            raise InvalidRequest(f"--{option}: is for weights; add --from")
        if layout or pack:
            raise InvalidRequest("--format and --pack are for packs, not for weights")
        convert_weights(source, destination, library, to or ONNX, **given)
        return
    if is_pack(find_pack(source)):
        if layout is None:
            raise InvalidRequest(f"{source}: is a pack; add --format {', '.join(LAYOUTS)}")
        options = {} if pack is None else {"elements": pack}
        opened = open_pack(source)
        earlier = manifest_in(Path(destination))
        manifest = convert_pack(opened, Path(destination), layout, **options)
        for message in replaced(Path(destination), earlier, manifest):
            say(f"warning: {message}")
        show_packs([(Path(destination), manifest)], as_json=False)
        return
    if layout is not None or pack is not None:
        raise InvalidRequest(
            f"{source}: not a pack; the extension of {destination} selects the format"
        )
    if Path(source).suffix.lower() in CHECKPOINTS:
        raise InvalidRequest(f"{source}: holds weights; say of which library, as --from torch")
    if Path(destination).suffix.lower() in MODELS:
        named = next(iter(libraries_of(formats.read_tensors(source))), "torch")
        raise InvalidRequest(
            f"{destination}: a model is made of recurrent weights; say whose names they have in"
            f" {source}, as --from {named}"
        )
    formats.convert(source, as_path(destination))
