"""What may be wrong with a gate: each suspicion is a change of the recurrence that would show it.

They are tried on single steps from an implementation's own states. One fits when every step looked
at comes out as the implementation has it; a wrong one hardly ever does, since each of the hidden
units would have to agree to within its tolerance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.numerics import DTYPES
from rnncli.recurrence.activations import ACTIVATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.judging.error_model.trajectory import Trajectory
    from rnncli.numerics import Array
    from rnncli.recurrence.activations import Activation


@dataclass(frozen=True, slots=True)
class Suspicion:
    """One suspicion.

    Attributes:
        gates: the letters of the gates it is about; "" if it is about something else.
        words: what is wrong, following their names: `without its recurrent bias`.
        path: the same states, with the recurrence changed.
        subject: what it is about.
    """

    gates: str
    words: str
    path: Trajectory
    subject: str = ""

    def __post_init__(self) -> None:
        if not self.subject:
            named = f"gate{'s' * (len(self.gates) > 1)} {', '.join(self.gates)}"
            object.__setattr__(self, "subject", named)

    def __str__(self) -> str:
        """Name what it is about, then say what is wrong."""
        return f"{self.subject} {self.words}"


def suspicions(path: Trajectory) -> Iterator[Suspicion]:
    """Yield every suspicion that makes sense for a recurrence, the likeliest first."""
    for family in FAMILIES:
        yield from family(path)


def _initial_states(path: Trajectory) -> Iterator[Suspicion]:
    """Start from zero; of a window that starts later no step would be explained by that."""
    h, c = bool(path.H[:, 0].any()), bool(path.C0.any())
    H = path.H.copy()
    H[:, 0] = 0.0
    C0 = np.zeros_like(path.C0)
    if h:
        yield Suspicion("", "taken as zero", replace(path, H=H), "initial_h")
    if c:
        yield Suspicion("", "taken as zero", replace(path, C0=C0), "initial_c")
    if h and c:
        subject = "initial_h and initial_c"
        yield Suspicion("", "taken as zero", replace(path, H=H, C0=C0), subject)


def _changed(path: Trajectory, name: str, gate: int, values: Array | float) -> Trajectory:
    """Return it with one gate's part of a tensor replaced."""
    tensor = getattr(path, name).copy()
    tensor[gate] = values
    return replace(path, **{name: tensor})


def _is_there(path: Trajectory, name: str, gate: int) -> bool:
    tensor = getattr(path, name)
    return tensor is not None and bool(tensor[gate].any())


# tensor -> what a gate is without when its part is left out
_TERMS = {
    "Wb": "without its input bias",
    "Rb": "without its recurrent bias",
    "W": "without its input",
    "R": "without its recurrent term",
}


def _missing_terms(path: Trajectory) -> Iterator[Suspicion]:
    for k, letter in enumerate(path.recurrence.cell.gates):
        there = [name for name in _TERMS if _is_there(path, name, k)]
        for name in there:
            yield Suspicion(letter, _TERMS[name], _changed(path, name, k, 0.0))
        if {"Wb", "Rb"} <= set(there):
            without = _changed(_changed(path, "Wb", k, 0.0), "Rb", k, 0.0)
            yield Suspicion(letter, "without its biases", without)


def _missing_from_all(path: Trajectory) -> Iterator[Suspicion]:
    """Leave a term out of every gate."""
    gates = path.recurrence.cell.gates
    if len(gates) == 1:
        return
    for name, words in _TERMS.items():
        tensor = getattr(path, name)
        if tensor is not None and tensor.any():
            without = replace(path, **{name: np.zeros_like(tensor)})
            yield Suspicion(gates, words.replace("its", "their"), without)
    if path.Wb is not None and path.Rb is not None:
        without = replace(path, Wb=np.zeros_like(path.Wb), Rb=np.zeros_like(path.Rb))
        yield Suspicion(gates, "without their biases", without)


# The gates that have peepholes, in the order of P.
_PEEPING = "iof"


def _peepholes(path: Trajectory) -> Iterator[Suspicion]:
    if path.P is None:
        return
    for k, letter in enumerate(_PEEPING):
        if _is_there(path, "P", k):
            words = "without its peephole"
            yield Suspicion(letter, words, _changed(path, "P", k, 0.0))
    yield Suspicion(_PEEPING, "without their peepholes", replace(path, P=None))
    for order in list(permutations(range(3)))[1:]:
        moved = "".join(letter for k, letter in enumerate(_PEEPING) if order[k] != k)
        read = ", ".join(_PEEPING[k] for k in order)
        words = f"with the peepholes of {read} for {', '.join(_PEEPING)}"
        yield Suspicion(moved, words, replace(path, P=path.P[list(order)]))


def _clip(path: Trajectory) -> Iterator[Suspicion]:
    recurrence = path.recurrence
    if not math.isfinite(recurrence.clip):
        return
    without = replace(recurrence, clip=math.inf)
    yield Suspicion(recurrence.cell.gates, "without clip", replace(path, recurrence=without))
    if recurrence.cell.name == "LSTM":
        turned = replace(recurrence, clip_hidden=not recurrence.clip_hidden)
        words = "without clip" if recurrence.clip_hidden else "with clip"
        yield Suspicion("", words, replace(path, recurrence=turned), "activation h")


def _flags(path: Trajectory) -> Iterator[Suspicion]:
    """Turn a switch of the cell."""
    for cell, gate, name, words in (
        ("LSTM", "f", "input_forget", ("coupled to the input gate", "not coupled to gate i")),
        ("GRU", "h", "linear_before_reset", ("reset after R", "reset before R")),
    ):
        recurrence = path.recurrence
        if recurrence.cell.name == cell:
            value: bool = getattr(recurrence, name)
            change: dict[str, Any] = {name: not value}
            turned = replace(recurrence, **change)
            yield Suspicion(gate, words[value], replace(path, recurrence=turned))


def _shifted(path: Trajectory) -> Iterator[Suspicion]:
    """Add 1 to the forget gate, as some frameworks do; turn an update gate round."""
    name = path.recurrence.cell.name
    if name == "LSTM":
        bias = np.zeros((4, 1, 1, 1, 1)) if path.Wb is None else path.Wb.copy()
        bias[2] += 1.0
        yield Suspicion("f", "with a bias of 1 added", replace(path, Wb=bias))
    if name == "GRU":
        turned = path
        for tensor in ("W", "R", "Wb", "Rb"):
            if getattr(path, tensor) is not None:
                turned = _changed(turned, tensor, 0, -getattr(path, tensor)[0])
        yield Suspicion("z", "turned round: 1 - z", turned)


def _orders(path: Trajectory) -> Iterator[Suspicion]:
    """Read the gates of all tensors, or of some, in another order."""
    gates = path.recurrence.cell.gates
    for order in list(permutations(range(len(gates))))[1:]:
        yield _reordered(path, ("W", "R", "Wb", "Rb"), order, "")
    for tensors, words in ((("W",), " in W"), (("R",), " in R"), (("Wb", "Rb"), " in B")):
        for a, b in combinations(range(len(gates)), 2):
            order = tuple({a: b, b: a}.get(k, k) for k in range(len(gates)))
            yield _reordered(path, tensors, order, words)


def _reordered(
    path: Trajectory, tensors: tuple[str, ...], order: tuple[int, ...], where: str
) -> Suspicion:
    gates = path.recurrence.cell.gates
    moved = "".join(letter for k, letter in enumerate(gates) if order[k] != k)
    read = ", ".join(gates[order[gates.index(letter)]] for letter in moved)
    changes = {
        name: values[list(order)] for name in tensors if (values := getattr(path, name)) is not None
    }
    return Suspicion(moved, f"with the values of {read}{where}", replace(path, **changes))


def _transposed(path: Trajectory) -> Iterator[Suspicion]:
    gates = path.recurrence.cell.gates
    yield Suspicion(gates, "with R transposed", replace(path, R=path.R.swapaxes(2, 3)))


# The gates that an activation's letter is applied to; that of h is none.
_APPLIED = {
    "RNN": {"f": "i"},
    "GRU": {"f": "zr", "g": "h"},
    "LSTM": {"f": "iof", "g": "c", "h": ""},
}
_DEFAULTS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
_SIXTH = ACTIVATIONS["HardSigmoid"].with_values(1 / 6, 0.5)
_TAKEN_FOR = (
    *(ACTIVATIONS[name] for name in ("Sigmoid", "Tanh", "HardSigmoid", "Relu", "Affine")),
    _SIXTH,
)


def _activations(path: Trajectory) -> Iterator[Suspicion]:
    """Compute another activation, or the right one with other parameters."""
    for letter, gates in _APPLIED[path.recurrence.cell.name].items():
        right = path.activation(letter)
        others = {_called(row): row for row in (*_TAKEN_FOR, *_parameters_of(right))}
        for name, other in others.items():
            if name != _called(right):
                words = f"with {name} for {_called(right)}"
                changed = _with_activation(path, letter, other)
                yield Suspicion(gates, words, changed, "" if gates else f"activation {letter}")
    yield from _default_activations(path)


def _default_activations(path: Trajectory) -> Iterator[Suspicion]:
    """Compute what the operators compute where no activations are given, all at once."""
    recurrence = path.recurrence
    rows = tuple(ACTIVATIONS[name] for name in _DEFAULTS[recurrence.cell.name])
    changed = [
        row.name for row, own in zip(rows, recurrence.activations[0], strict=True) if row != own
    ]
    if len(changed) > 1:
        usual = replace(path, recurrence=replace(recurrence, activations=(rows,)))
        yield Suspicion(recurrence.cell.gates, "with the default activations", usual)


def _parameters_of(right: Activation) -> Iterator[Activation]:
    """Yield an activation with its default parameters, and with none."""
    row = ACTIVATIONS[right.name]
    if row.alpha is not None:
        yield replace(right, alpha=row.alpha, beta=row.beta)
        yield right.with_values(0.0, None)
    if row.beta is not None:
        yield right.with_values(None, 0.0)
        yield right.with_values(0.0, 0.0)


def _called(row: Activation) -> str:
    values = [f"{value:.4g}" for value in (row.alpha, row.beta) if value is not None]
    return f"{row.name}({', '.join(values)})" if values else row.name


def _with_activation(path: Trajectory, letter: str, other: Activation) -> Trajectory:
    recurrence = path.recurrence
    rows = list(recurrence.activations[0])
    rows[recurrence.cell.activations.index(letter)] = other
    return replace(path, recurrence=replace(recurrence, activations=(tuple(rows),)))


# dtype of the tensors -> coarser arithmetic: of which dtype, and in words
_COARSER = {
    "float64": {"float32": "of 24 bits, as float32"},
    "float32": {
        "float16": "of 11 bits, as float16 and tf32",
        "bfloat16": "of 8 bits, as bfloat16",
    },
    "float16": {"bfloat16": "of 8 bits, as bfloat16"},
}


def coarser(path: Trajectory) -> Iterator[Suspicion]:
    """Yield arithmetic that may have been computed in, the finest first."""
    for dtype, words in _COARSER.get(path.recurrence.dtype.name, {}).items():
        recurrence = replace(path.recurrence, dtype=DTYPES[dtype])
        yield Suspicion("", words, replace(path, recurrence=recurrence), "arithmetic")


FAMILIES: tuple[Callable[[Trajectory], Iterator[Suspicion]], ...] = (
    _initial_states,
    _missing_terms,
    _missing_from_all,
    _peepholes,
    _clip,
    _flags,
    _shifted,
    _activations,
    _transposed,
    _orders,
)
