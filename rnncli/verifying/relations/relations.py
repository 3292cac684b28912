"""The table of relations: the transformation of a call, its condition and the bugs it finds.

A relation runs transformed calls and maps their outputs back to the shape of the original outputs.
The two must agree, so no expected output is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.operators.node import DIRECTIONS
from rnncli.verifying.relations import (
    both_directions,
    other_settings,
    over_time,
    sequences,
    units,
)
from rnncli.verifying.relations.node_call import D, H, I, N, T

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.verifying.relations.asking import Asker
    from rnncli.verifying.relations.node_call import NodeCall

BIT, TOLERANCE = "bit", "tolerance"


class Applicability(NamedTuple):
    """The condition under which a relation applies to a call.

    Attributes:
        when: the condition in words.
        reason: maps a call to the reason it does not apply, or "".
    """

    when: str
    reason: Callable[[NodeCall], str]


def _several(symbol: str) -> Applicability:
    return Applicability(
        f"{symbol} is 2 or more",
        lambda call: "" if call.size(symbol) > 1 else f"{symbol} is 1",
    )


def _ragged(call: NodeCall) -> str:
    return "" if call.is_ragged else "no sequence has padding"


def _has_lengths(call: NodeCall) -> str:
    return "" if call.named("lengths") else f"{call.operator} has no sequence lengths"


def _has_layout(call: NodeCall) -> str:
    return "" if call.row.attribute_for("layout") else f"{call.operator} has no other layout"


def _bidirectional(call: NodeCall) -> str:
    if call.size(D) == 1:
        return "it has one direction"
    problems = (
        both_directions.functions_problem(call, [d], k)
        for d, k in enumerate(("forward", "reverse"))
    )
    return next(filter(None, problems), "")


def _reversible(call: NodeCall) -> str:
    if call.sizes[T] < 2:
        return "seq_length is 1"
    kind = over_time.TURNED[call.node.values["direction"]]
    swapped = range(len(DIRECTIONS[kind]))[::-1]
    return both_directions.functions_problem(call, swapped, kind)


def _both_outputs(call: NodeCall) -> str:
    rows = [call.named(role) for role in ("Y", "Y_h")]
    if any(row is None or row.name not in call.outputs for row in rows):
        return "Y and Y_h are not both requested"
    return "" if call.lengths.all() else "a sequence has length 0"


def _several_outputs(call: NodeCall) -> str:
    return "" if len(call.outputs) > 1 else "only one output is requested"


ALWAYS = Applicability("always", lambda _: "")
RAGGED = Applicability("a sequence is shorter than seq_length", _ragged)


class Relation(NamedTuple):
    """A row of the table of relations.

    Attributes:
        name: as `--relation` takes it.
        summary: the transformed call.
        finds: the bugs that break it.
        applies: the condition under which it applies.
        answer: maps a call to the outputs that must equal the call's own.
        equality: `bit` if every sound kernel gives the same bits, otherwise `tolerance`.
        quantised: whether it holds where values share a scale, and scales belong to columns.
    """

    name: str
    summary: str
    finds: str
    applies: Applicability
    answer: Callable[[NodeCall, Asker], Tensors]
    equality: str = TOLERANCE
    quantised: bool = True

    def obstacle(self, call: NodeCall) -> str:
        """Return why it does not apply to a call, or ""."""
        if call.row.quantised and not self.quantised:
            return f"{call.operator} quantises values that share a scale"
        return self.applies.reason(call)


_RELATIONS = (
    Relation(
        "again",
        "the same call after another one in the same session",
        "buffers and states kept between calls, uninitialised memory",
        ALWAYS,
        other_settings.again,
        BIT,
    ),
    Relation(
        "padding",
        "other numbers in the padding of X",
        "padding that takes part in the computation, lengths off by one",
        RAGGED,
        over_time.other_padding,
        BIT,
        quantised=False,
    ),
    Relation(
        "nan-padding",
        "NaN in the padding of X",
        "padding that is multiplied by zero instead of left out",
        RAGGED,
        over_time.nan_padding,
        BIT,
        quantised=False,
    ),
    Relation(
        "longer",
        "more padding after all sequences, with sequence lengths",
        "steps counted from the end of X, chunks of time, lengths ignored",
        Applicability("the operator has sequence lengths", _has_lengths),
        over_time.longer,
    ),
    Relation(
        "cut",
        "each sequence alone, cut to its length",
        "lengths: states taken past the end, a reverse that starts in the padding, sorting",
        RAGGED,
        sequences.without_padding,
        quantised=False,
    ),
    Relation(
        "singles",
        "each sequence alone, including its padding",
        "batch tiles and their remainders, rows mixed up, paths for batch_size 1",
        _several(N),
        sequences.singles,
        quantised=False,
    ),
    Relation(
        "tiles",
        "the batch in two parts",
        "batch tiles and their remainders, states of another row",
        _several(N),
        sequences.parts,
        quantised=False,
    ),
    Relation(
        "sequences-permuted",
        "the sequences in another order",
        "sorting by length that is not undone, the first row's length or state taken for all",
        _several(N),
        sequences.permuted,
    ),
    Relation(
        "sequences-repeated",
        f"a batch with {sequences.MANY} more sequences, which are shuffled copies",
        "batch tiles, workers and their remainders beyond a small case's own size",
        ALWAYS,
        sequences.repeated,
    ),
    Relation(
        "units-permuted",
        "the units in another order: W, R, B, P, states and outputs",
        "vector bodies and tails, blocks, packed weights from a wrong row",
        _several(H),
        units.permuted_units,
        quantised=False,
    ),
    Relation(
        "units-added",
        f"{units.MORE} additional units of weight zero among the others",
        "vector tails, blocks and widths beyond a small case's own size",
        ALWAYS,
        units.more_units,
        quantised=False,
    ),
    Relation(
        "inputs-permuted",
        "the inputs of each step in another order: X and W",
        "reduction blocks and their remainders",
        _several(I),
        units.permuted_inputs,
    ),
    Relation(
        "inputs-added",
        f"{units.MORE} additional inputs of weight zero among the others",
        "reduction blocks and their remainders beyond a small case's own size",
        ALWAYS,
        units.more_inputs,
        quantised=False,
    ),
    Relation(
        "split",
        "T in two calls, with states carried: forward from the first steps to the last, reverse"
        " from the last to the first",
        "initial states ignored or in the wrong place, chunks of time, last states, step counters",
        _several(T),
        over_time.split,
        quantised=False,
    ),
    Relation(
        "reversed",
        "the steps of each sequence in reverse order, in the opposite direction",
        "a reverse that starts in the padding, directions exchanged",
        Applicability("seq_length is 2 or more; what alpha and beta mean is settled", _reversible),
        over_time.reversed_time,
    ),
    Relation(
        "directions",
        "each direction of a bidirectional node alone",
        "weights, states or outputs of the other direction, one direction's scratch buffers",
        Applicability("bidirectional; what alpha and beta mean is settled", _bidirectional),
        both_directions.apart,
    ),
    Relation(
        "last-state",
        "Y_h taken from Y at the last step of each sequence",
        "Y_h of the wrong step, rounding or clipping of one output only",
        Applicability("Y and Y_h are requested; no length is 0", _both_outputs),
        over_time.last_of_Y,
    ),
    Relation(
        "outputs",
        "each output requested alone",
        "paths that leave out an output, outputs that share a buffer",
        Applicability("two or more outputs are requested", _several_outputs),
        other_settings.one_by_one,
    ),
    Relation(
        "layout",
        "the other layout: 1 instead of 0, or 0 instead of 1",
        "axes of X, Y or a state mixed up",
        Applicability("the operator has the attribute `layout`", _has_layout),
        other_settings.other_layout,
    ),
    Relation(
        "weights",
        "weights as initializers instead of inputs, or as inputs instead of initializers",
        "differences between packing at load time and at each call",
        ALWAYS,
        other_settings.weights_elsewhere,
    ),
    Relation(
        "threads",
        "several threads instead of one, or one instead of several",
        "races, scratch buffers shared by workers, remainders of a worker's share",
        Applicability("the implementation has a setting for threads", lambda _: ""),
        other_settings.in_threads,
        quantised=False,
    ),
)
RELATIONS: Mapping[str, Relation] = {row.name: row for row in _RELATIONS}


def relation_named(name: str) -> Relation:
    """Return a relation by its name.

    Raises:
        InvalidRequest: there is none; suggests a similar name.
    """
    if name not in RELATIONS:
        hint = did_you_mean(name, RELATIONS) or f"; known: {', '.join(RELATIONS)}"
        raise InvalidRequest(f"unknown relation '{name}'{hint}")
    return RELATIONS[name]


def relation_table() -> str:
    """Return the rows of all relations as a Markdown table, for the documentation."""
    lines = ["| relation | asks | applies | equality | finds |", "|---|---|---|---|---|"]
    lines += [
        f"| `{row.name}` | {row.summary} | {row.applies.when} | {row.equality} | {row.finds} |"
        for row in RELATIONS.values()
    ]
    return "\n".join(lines)
