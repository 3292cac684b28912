"""The cells' equations as vector code: `rnncli.recurrence.cells` run once over `VectorLanes`.

Evaluating the single definition of each cell and activation on vectors emits the kernel's code, so
there is no second copy to keep consistent.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from numba import types
from numba.core.cgutils import unpack_tuple

from rnncli.backends.compiled import elementary
from rnncli.backends.compiled.compiling import instruction
from rnncli.backends.compiled.kernel_shapes import Shape
from rnncli.backends.compiled.vector_lanes import (
    ADDRESS,
    Builder,
    IRValue,
    VectorLanes,
    cases,
    element_size,
    joined,
    load,
    load_number,
    moved,
    once,
    parts,
    store,
    store_first,
    vector_type,
)
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.cells import (
    COMMON_OPTIONS,
    NO_OPTIONS,
    CellOptions,
    Parameters,
    gru_step,
    lstm_step,
    rnn_step,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.recurrence.activations import Function
    from rnncli.recurrence.recurrence import Recurrence

# All activation functions, under every reading; kernels identify them by index.
FUNCTIONS: tuple[Function, ...] = tuple(
    function
    for row in ACTIVATIONS.values()
    for function in (row.function, *(row.readings or {}).values())
)
# The numbers that a kernel reads, in order: alpha and beta of f, g and h, bounds of clipping.
NUMBERS = ("f", "f", "g", "g", "h", "h", "bound", "bound of h")


class Gates(list[VectorLanes]):
    """The sums of each gate. They include the products, so adding the value of `R` is a no-op."""

    def __add__(self, other: object) -> Gates:  # type: ignore[override]
        return self

    def __getitem__(self, index: Any) -> Any:
        """Return the sums of one gate or a slice of gates."""
        selected = super().__getitem__(index)
        return Gates(selected) if isinstance(index, slice) else selected


class PeepholeRow:
    """A row of P; its product with a state is -0, which adds nothing, without peepholes."""

    def __init__(self, weights: VectorLanes, given: IRValue) -> None:
        self.weights = weights
        self.given = given

    def __mul__(self, C: VectorLanes) -> VectorLanes:
        product, builder = self.weights * C, C.builder
        return VectorLanes(builder, builder.select(self.given, product.value, C.like(-0.0).value))


class EmittedUnits:
    """One or two Units during code generation: loads, stores and the parameters of the equations.

    Args:
        builder: emits the code.
        shape: the kernel's shape.
        units: their fields, as values of the generated code.
    """

    def __init__(self, builder: Builder, shape: Shape, units: list[Unit]) -> None:
        self.builder = builder
        self.shape = shape
        self.single = vector_type(shape.dtype, shape.lanes)
        self.kind = vector_type(shape.dtype, shape.lanes * len(units))
        self.units: list[Any] = units
        self.unit = self.units[0]

    def _at(self, first: IRValue, stride: IRValue, index: int | IRValue) -> IRValue:
        steps = ADDRESS(index) if isinstance(index, int) else index
        return self.builder.add(first, self.builder.mul(stride, steps))

    def _states(self, name: str) -> list[IRValue]:
        now = self.unit.now
        slots = {"H": now, "H_next": self.builder.sub(ADDRESS(1), now), "C": 2, "z": 3, "reset": 4}
        return [self._at(unit.state, unit.next_state, slots[name]) for unit in self.units]

    def _joined(self, places: list[IRValue]) -> VectorLanes:
        return joined([load(self.builder, place, self.single) for place in places])

    def load(self, name: str) -> VectorLanes:
        """Load a vector of a state."""
        return self._joined(self._states(name))

    def store(self, name: str, values: VectorLanes) -> None:
        """Store a vector of a state."""
        for part, place in zip(parts(values, len(self.units)), self._states(name), strict=True):
            store(part, place)

    def gates(self, count: int) -> Gates:
        """Load the sums of the first gates."""
        return Gates(
            self._joined([self._at(unit.sums, unit.gate, g) for unit in self.units])
            for g in range(count)
        )

    def peepholes(self) -> list[PeepholeRow]:
        """Load the peephole weights of i, o and f."""
        given = self.flag("peepholes")
        places = [[self._at(unit.P, unit.next_P, k) for unit in self.units] for k in range(3)]
        return [PeepholeRow(self._joined(each), given) for each in places]

    def number(self, index: int) -> VectorLanes:
        """Load one of NUMBERS."""
        place = moved(self.builder, self.unit.numbers, index * element_size(self.kind))
        return load_number(self.builder, place, self.kind)

    def flag(self, name: str) -> IRValue:
        """Return whether an argument is nonzero."""
        return self.builder.icmp_signed("!=", getattr(self.unit, name), ADDRESS(0))

    def finish(self, H: VectorLanes) -> None:
        """Store Ht for the next step and in Y."""
        self.store("H_next", H)
        for part, unit in zip(parts(H, len(self.units)), self.units, strict=True):
            store_first(part, unit.Y, unit.room)

    def parameters(self, **others: Any) -> Parameters:
        """Return the parameters of the cell's equations."""
        functions = {letter: self._function(letter) for letter in "fgh"}
        absent: dict[str, Any] = {"R": lambda *_: None, "blend": elementary.blend}
        return Parameters(**(functions | absent | others))

    def _function(self, letter: str) -> Callable[[Any], Any]:
        """Return f, g or h as a function of the sums of one or several gates."""

        def apply(x: Any) -> Any:
            if isinstance(x, Gates):
                return Gates(map(apply, x))
            if self.shape.plain:
                is_gate = letter == "f" and self.shape.cell != "RNN"
                return elementary.sigmoid(x) if is_gate else elementary.tanh(x)
            first = NUMBERS.index(letter)
            bound = self.number(NUMBERS.index("bound of h" if letter == "h" else "bound"))
            x = elementary.minimum(elementary.maximum(x, -bound), bound)
            alpha, beta = self.number(first), self.number(first + 1)
            arguments = [getattr(self.unit, letter), x.value, alpha.value, beta.value]
            function = activation(self.builder.module, self.shape, self.kind)
            return VectorLanes(self.builder, self.builder.call(function, arguments))

        return apply


def activation(module: Any, shape: Shape, kind: Any) -> Any:
    """Return a module's function (code, x, alpha, beta) for a vector type."""

    def body(builder: Builder, code: IRValue, *vectors: IRValue) -> None:
        x, alpha, beta = (VectorLanes(builder, vector) for vector in vectors)
        for number in cases(builder, code, len(FUNCTIONS)):
            function: Any = FUNCTIONS[number]  # alpha and beta are vectors here
            builder.ret(function(elementary, x, alpha, beta).value)

    return once(
        module, f"activation {shape.code} {len(kind)}", kind, (ADDRESS, kind, kind, kind), body
    )


def rnn(place: EmittedUnits) -> None:
    """Ht from the sums."""
    (H,) = rnn_step(place.parameters(), place.gates(1), (None,))
    place.finish(H)


def gru_after(place: EmittedUnits) -> None:
    """Ht from the sums; Rbh is in those of R."""
    h, z, r, Rh = place.gates(4)
    products = Gates([z, r, Rh])
    after = CellOptions(linear_before_reset=True)
    p = place.parameters(R=lambda *_: products, Rbh=-0.0, options=after)
    (H,) = gru_step(p, Gates([z, r, h]), (place.load("H"),))
    place.finish(H)


def gru_reset(place: EmittedUnits) -> None:
    """First half of a step, before the product: store zt and rt (.) Ht-1."""
    f = place.parameters().f
    z, r = f(place.gates(2))
    place.store("z", z)
    place.store("reset", r * place.load("H"))


def gru_update(place: EmittedUnits) -> None:
    """Second half: Ht from zt and the hidden gate's sums."""
    p = place.parameters()
    (h,) = place.gates(1)
    place.finish(p.blend(place.load("z"), p.g(h), place.load("H")))


def lstm(place: EmittedUnits, *, previous: bool = False) -> None:
    """Ht and Ct from the sums; Po multiplies the previous C or the new one."""
    if place.shape.plain:
        _lstm(place)
        return
    with place.builder.if_else(place.flag("input_forget")) as (tied, free):
        with tied:
            _lstm(place, CellOptions(input_forget=True, peephole_previous=previous))
        with free:
            _lstm(place, CellOptions(peephole_previous=previous))


def _lstm(place: EmittedUnits, options: CellOptions = NO_OPTIONS) -> None:
    P = None if place.shape.plain else place.peepholes()
    p = place.parameters(P=P, options=options)
    H, C = lstm_step(p, place.gates(4), (None, place.load("C")))
    place.store("C", C)
    place.finish(H)


# The code that follows the product of each phase.
EQUATIONS: Mapping[str, tuple[Callable[[EmittedUnits], None], ...]] = {
    "RNN": (rnn,),
    "GRU": (gru_reset, gru_update),
    "GRU after": (gru_after,),
    "LSTM": (lstm,),
    "LSTM previous": (partial(lstm, previous=True),),
}
# The options among them.
OPTIONS = COMMON_OPTIONS | {"peephole_previous"}


def equations_of(recurrence: Recurrence) -> str:
    """Return the name of a recurrence's EQUATIONS."""
    options = recurrence.options
    previous = options.peephole_previous and recurrence.P is not None
    return recurrence.cell.name + " after" * options.linear_before_reset + " previous" * previous


class Unit(NamedTuple):
    """The numbers of one row and one vector of units; addresses and strides are in bytes."""

    phase: int  # the phase of the time step
    sums: int  # address of the first gate's sums
    gate: int  # stride from gate to gate
    state: int  # address in the first state
    next_state: int  # stride from state to state
    now: int  # 0 or 1, the index of the state that is Ht-1
    P: int  # address of the peephole weights of i
    next_P: int  # stride from i to o and from o to f
    Y: int  # address of Ht in the output
    room: int  # the number of units that fit in Y
    numbers: int  # address of the NUMBERS
    f: int  # code of the activation f
    g: int  # code of the activation g
    h: int  # code of the activation h
    peepholes: int  # whether there are peepholes
    input_forget: int  # whether the forget gate is 1 - it


@instruction
def advance(_: Any, code: Any, units: Any) -> tuple[Any, Any]:
    """Advance one or two Units through a phase, in a kernel of the shape with this literal code."""
    shape = Shape.of(code.literal_value)
    phases = EQUATIONS[shape.cell]

    def emit(context: Any, builder: Builder, _: Any, args: Any) -> IRValue:
        each = [Unit(*unpack_tuple(builder, unit)) for unit in unpack_tuple(builder, args[1])]
        place = EmittedUnits(builder, shape, each)
        if len(phases) == 1:
            phases[0](place)
            return context.get_dummy_value()
        with builder.if_else(place.flag("phase")) as (second, first):
            with second:
                phases[1](place)
            with first:
                phases[0](place)
        return context.get_dummy_value()

    return types.void(code, units), emit


def replacing(function: Callable[[VectorLanes], VectorLanes]) -> Any:
    """Make an instruction that replaces a vector of numbers at an address by a function of it."""

    @instruction
    def replace(_: Any, code: Any, numbers: Any) -> tuple[Any, Any]:
        shape = Shape.of(code.literal_value)

        def emit(context: Any, builder: Builder, _: Any, args: Any) -> IRValue:
            kind = vector_type(shape.dtype, shape.lanes)
            store(function(load(builder, args[1], kind)), args[1])
            return context.get_dummy_value()

        return types.void(code, numbers), emit

    return replace


exponentials = replacing(elementary.exp)
silu = replacing(lambda a: a * elementary.sigmoid(a))
