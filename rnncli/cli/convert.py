"""`rnncli convert`."""

from __future__ import annotations

from typing import Any

import click

from rnncli.cli.command import Command, Written
from rnncli.cli.options import within_memory
from rnncli.packs.layouts import LAYOUTS
from rnncli.talk.terminal import say


@click.command(cls=Command)
@click.argument("source", metavar="A", type=click.Path())
@click.argument("destination", metavar="B", type=Written())
@click.option(
    "--format",
    "layout",
    type=click.Choice([*LAYOUTS]),
    help="Layout of a converted pack (docs/howto/packs.md).",
)
@click.option(
    "--pack",
    type=click.IntRange(1, 4096),
    help="Elements in a word of the layout hex, the first in the low bits.  [default: 1]",
)
@click.option(
    "--from",
    "library",
    type=click.Choice(["torch", "keras", "openvino"]),
    help="Library that the weights in A are of.",
)
@click.option(
    "--to",
    type=click.Choice(["onnx", "torch", "keras", "openvino"]),
    help="What B is for; onnx is a model.  [default: onnx]",
)
@click.option(
    "--cell",
    type=click.Choice(["LSTM", "GRU", "RNN"]),
    help="Cell of the weights.  [default: what the shapes say]",
)
@click.option(
    "--activation",
    type=click.Choice(["tanh", "relu"]),
    help="Activation of an RNN, which weights do not tell.  [default: tanh]",
)
@click.option(
    "--reset-after/--no-reset-after",
    default=None,
    help="Whether a GRU of Keras resets after the product with R, which weights without bias do"
    " not tell.",
)
@click.option(
    "--module",
    metavar="PATH",
    help="Path of the recurrent module in a larger model, as encoder.lstm.  [default: the only"
    " one]",
)
@within_memory
def convert(
    source: str, destination: str, layout: str | None, pack: int | None, **of_weights: Any
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
    rnncli convert vectors/core core_npz --format npz
    rnncli convert vectors/core core_hex --format hex --pack 4
    """
    from pathlib import Path

    from rnncli.errors import InvalidRequest
    from rnncli.files import formats
    from rnncli.generating.leftovers import manifest_in, replaced
    from rnncli.packs.conversion import convert_pack
    from rnncli.packs.pack import is_pack, open_pack
    from rnncli.reports.generated import show_packs
    from rnncli.running.weight_conversion import CHECKPOINTS
    from rnncli.running.written_runs import as_path

    given = {name: value for name, value in of_weights.items() if value is not None}
    if given:
        _convert_weights(source, destination, given, is_layout=bool(layout or pack))
        return
    if is_pack(source):
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
    formats.convert(source, as_path(destination))


def _convert_weights(
    source: str, destination: str, given: dict[str, Any], *, is_layout: bool
) -> None:
    from rnncli.errors import InvalidRequest
    from rnncli.running.weight_conversion import ONNX, convert_weights

    if "library" not in given:
        option = next(iter(given)).replace("_", "-")
        raise InvalidRequest(f"--{option}: is for weights; add --from")
    if is_layout:
        raise InvalidRequest("--format and --pack are for packs, not for weights")
    library, to = given.pop("library"), given.pop("to", ONNX)
    convert_weights(source, destination, library, to, **given)
