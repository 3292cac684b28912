"""The minimum cost of an evaluation: operations, bytes moved and bytes held."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rnncli.cases.case import Case
    from rnncli.files.formats.format import Tensors


class Cost(NamedTuple):
    """Lower bounds on the cost of an evaluation; None if unknown.

    Attributes:
        flops: multiplications and additions of the matrix products; activations are not counted.
        moved: bytes read or written: every input and output once, and the recurrent weights again
            in each further step, be it from memory or from a cache.
        held: bytes of inputs, outputs and the input projection of all steps.
        given: bytes of the inputs, which exist beforehand.
    """

    flops: int | None
    moved: int | None
    held: int | None
    given: int | None


UNKNOWN = Cost(None, None, None, None)


def cost_of(case: Case, outputs: Tensors) -> Cost:
    """Return the cost of one operator, without the operations, but with the bytes, of padding."""
    T, B, I, H = (  # noqa: E741 -- the specification's letter
        case.sizes[name] for name in ("seq_length", "batch_size", "input_size", "hidden_size")
    )
    D = len(case.node.directions)
    G = len(case.operator.gates)
    live = _live_steps(case, T * B)
    given = sum(values.nbytes for values in case.inputs.values())
    tensors = given + sum(values.nbytes for values in outputs.values())
    width = case.dtype.numpy.itemsize
    return Cost(
        flops=2 * live * D * G * H * (I + H),
        moved=tensors + max(T - 1, 0) * D * G * H * H * width,
        held=tensors + T * B * D * G * H * width,
        given=given,
    )


def _live_steps(case: Case, most: int) -> int:
    lengths = [row.name for row in case.operator.inputs if row.role == "lengths"]
    given = [case.inputs[name] for name in lengths if name in case.inputs]
    return int(given[0].sum()) if given else most
