"""The cells' equations as vector code: `rnncli.recurrence.cells` run once over `Lanes`.

The one definition of each cell and of each activation is evaluated here with vectors for numbers,
and what it does becomes the kernel: there is no second copy to keep in step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from rnncli.backends.compiled import elementary
from rnncli.backends.compiled.lanes import (
    ADDRESS,
    Builder,
    IRValue,
    Lanes,
    element_size,
    load,
    load_number,
    moved,
    store,
    store_first,
    vector_type,
)
from rnncli.backends.compiled.shapes import Shape
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.cells import Parameters, gru_step, lstm_step, rnn_step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.recurrence.activations import Function

# Every activation function, under every reading; its index is its code in the kernels.
FUNCTIONS: tuple[Function, ...] = tuple(
    function
    for row in ACTIVATIONS.values()
    for function in (row.function, *(row.readings or {}).values())
)
# Numbers that a kernel reads, in this order: alpha and beta of f, g and h, the bounds of clipping.
NUMBERS = ("f", "f", "g", "g", "h", "h", "bound", "bound of h")


class Gates(list[Lanes]):
    """Sums per gate. The products are already in them: adding what `R` returns changes nothing."""

    def __add__(self, other: object) -> Gates:  # type: ignore[override]
        return self

    def __getitem__(self, index: Any) -> Any:
        """Return one gate's sums, or those of some gates."""
        found = super().__getitem__(index)
        return Gates(found) if isinstance(index, slice) else found


class Peephole:
    """A row of P, times a state; -0 where the recurrence has no peepholes, which adds nothing."""

    def __init__(self, weights: Lanes, given: IRValue) -> None:
        self.weights = weights
        self.given = given

    def __mul__(self, C: Lanes) -> Lanes:
        product, builder = self.weights * C, C.builder
        return Lanes(builder, builder.select(self.given, product.value, C.like(-0.0).value))


class Place:
    """Where one row's numbers of one vector of units lie, and what to compute them with.

    Args:
        builder: emits the code.
        shape: of the kernel.
        values: the arguments of `advance` by name.
    """

    def __init__(self, builder: Builder, shape: Shape, values: Mapping[str, IRValue]) -> None:
        self.builder = builder
        self.shape = shape
        self.kind = vector_type(shape.dtype, shape.lanes)
        self.values = values

    def load(self, name: str) -> Lanes:
        """Load a vector."""
        return load(self.builder, self.values[name], self.kind)

    def store(self, name: str, values: Lanes) -> None:
        """Store a vector."""
        store(values, self.values[name])

    def gates(self, count: int) -> Gates:
        """Load the sums of some gates."""
        first, stride = self.values["gates"], self.values["gate_stride"]
        places = [
            self.builder.add(first, self.builder.mul(stride, ADDRESS(g))) for g in range(count)
        ]
        return Gates([load(self.builder, place, self.kind) for place in places])

    def number(self, index: int) -> Lanes:
        """Load one of NUMBERS."""
        place = moved(self.builder, self.values["numbers"], index * element_size(self.kind))
        return load_number(self.builder, place, self.kind)

    def flag(self, name: str) -> IRValue:
        """Return whether an argument is not zero."""
        return self.builder.icmp_signed("!=", self.values[name], ADDRESS(0))

    def finish(self, H: Lanes) -> None:
        """Store Ht where the next step and Y want it."""
        self.store("H_next", H)
        store_first(H, self.values["Y"], self.values["count"])

    def parameters(self, **given: Any) -> Parameters:
        """Return what the cell's equations are written over."""
        functions = {letter: self._function(letter) for letter in "fgh"}
        absent: dict[str, Any] = {"R": lambda *_: None, "blend": elementary.blend}
        return Parameters(**(functions | absent | given))

    def _function(self, letter: str) -> Callable[[Any], Any]:
        """Return f, g or h, for one gate's sums or those of several."""

        def apply(x: Any) -> Any:
            if isinstance(x, Gates):
                return Gates(map(apply, x))
            if not self.shape.plain:
                return self._clipped_and_switched(letter, x)
            is_gate = letter == "f" and self.shape.cell != "RNN"
            return elementary.sigmoid(x) if is_gate else elementary.tanh(x)

        return apply

    def _clipped_and_switched(self, letter: str, x: Lanes) -> Lanes:
        first = NUMBERS.index(letter)
        bound = self.number(NUMBERS.index("bound of h" if letter == "h" else "bound"))
        x = elementary.minimum(elementary.maximum(x, -bound), bound)
        alpha, beta = self.number(first), self.number(first + 1)
        arguments = [self.values[letter], x.value, alpha.value, beta.value]
        function = activation(self.builder.module, self.shape)
        return Lanes(self.builder, self.builder.call(function, arguments))


def activation(module: Any, shape: Shape) -> Any:
    """Return the function (code, x, alpha, beta) of a module, emitted on first use."""
    name = f"activation_{shape.dtype}"
    if name in module.globals:
        return module.globals[name]
    kind = vector_type(shape.dtype, shape.lanes)
    function = ir.Function(module, ir.FunctionType(kind, (ADDRESS, kind, kind, kind)), name)
    function.linkage = "internal"
    code, *vectors = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    x, alpha, beta = (Lanes(builder, vector) for vector in vectors)
    none = function.append_basic_block("none")
    choice = builder.switch(code, none)
    for number, formula in enumerate(FUNCTIONS):
        case = function.append_basic_block(f"case{number}")
        choice.add_case(ADDRESS(number), case)
        builder.position_at_end(case)
        builder.ret(formula(elementary, x, alpha, beta).value)
    builder.position_at_end(none)
    builder.unreachable()
    return function


def rnn(place: Place) -> None:
    """Ht from the sums."""
    (H,) = rnn_step(place.parameters(), place.gates(1), (None,))
    place.finish(H)


def gru_after(place: Place) -> None:
    """Ht from the sums; Rbh is in those of R."""
    h, z, r, Rh = place.gates(4)
    products = Gates([z, r, Rh])
    p = place.parameters(R=lambda *_: products, Rbh=-0.0, linear_before_reset=True)
    (H,) = gru_step(p, Gates([z, r, h]), (place.load("H"),))
    place.finish(H)


def gru_reset(place: Place) -> None:
    """First half of a step, up to the product: keep zt, and rt (.) Ht-1 to multiply."""
    f = place.parameters().f
    z, r = f(place.gates(2))
    place.store("z", z)
    place.store("reset", r * place.load("H"))


def gru_update(place: Place) -> None:
    """Second half: Ht from zt and the hidden gate's sums."""
    p = place.parameters()
    (h,) = place.gates(1)
    place.finish(p.blend(place.load("z"), p.g(h), place.load("H")))


def lstm(place: Place) -> None:
    """Ht and Ct from the sums."""
    if place.shape.plain:
        _lstm(place)
        return
    with place.builder.if_else(place.flag("input_forget")) as (tied, free):
        with tied:
            _lstm(place, input_forget=True)
        with free:
            _lstm(place)


def _lstm(place: Place, *, input_forget: bool = False) -> None:
    P = None
    if not place.shape.plain:
        given = place.flag("peepholes")
        P = [Peephole(place.load(name), given) for name in ("Pi", "Po", "Pf")]
    p = place.parameters(P=P, input_forget=input_forget)
    H, C = lstm_step(p, place.gates(4), (None, place.load("C")))
    place.store("C", C)
    place.finish(H)


# What follows the product of each phase.
EQUATIONS = {
    ("RNN", 0): rnn,
    ("GRU", 0): gru_reset,
    ("GRU", 1): gru_update,
    ("GRU after", 0): gru_after,
    ("LSTM", 0): lstm,
}


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def advance(
    _: Any,
    shape: Any,
    phase: Any,
    gates: Any,
    gate_stride: Any,
    H: Any,
    H_next: Any,
    C: Any,
    z: Any,
    reset: Any,
    Pi: Any,
    Po: Any,
    Pf: Any,
    Y: Any,
    count: Any,
    numbers: Any,
    f: Any,
    g: Any,
    h: Any,
    peepholes: Any,
    input_forget: Any,
) -> tuple[Any, Any]:
    """Advance one row's vector of units through a phase; addresses and strides in bytes.

    Args:
        shape: a literal, the code of the kernel's shape.
        phase: a literal, the number of the phase.
        gates: the first gate's sums.
        gate_stride: from gate to gate.
        H: Ht-1.
        H_next: where Ht goes.
        C: Ct-1, which becomes Ct.
        z: where zt waits for the second phase.
        reset: where rt (.) Ht-1 goes.
        Pi: peephole weights of i.
        Po: peephole weights of o.
        Pf: peephole weights of f.
        Y: where Ht goes in the output.
        count: how many of the units it has room for.
        numbers: NUMBERS.
        f: code of the activation f.
        g: code of the activation g.
        h: code of the activation h.
        peepholes: whether there are any.
        input_forget: whether the forget gate is 1 - it.
    """
    names = (
        *("gates", "gate_stride", "H", "H_next", "C", "z", "reset", "Pi", "Po", "Pf", "Y"),
        *("count", "numbers", "f", "g", "h", "peepholes", "input_forget"),
    )
    del gates, gate_stride, H, H_next, C, z, reset, Pi, Po, Pf, Y, count, numbers, f, g, h
    del peepholes, input_forget
    known = Shape.of(shape.literal_value)
    emit_equations = EQUATIONS[known.cell, phase.literal_value]

    def emit(context: Any, builder: Builder, _: Any, args: Any) -> IRValue:
        values = dict(zip(names, args[2:], strict=True))
        emit_equations(Place(builder, known, values))
        return context.get_dummy_value()

    return types.void(shape, phase, *[types.intp] * len(names)), emit
