"""Vectors of floating-point numbers in registers: Python operators that emit LLVM instructions.

Elementwise code is ordinary arithmetic on `VectorLanes`, which works for every vector width and
both precisions; LLVM maps vectors to the processor's registers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from llvmlite import ir

from rnncli.backends.compiled import kernel_shapes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Builder: TypeAlias = Any  # llvmlite carries no types
IRValue: TypeAlias = Any

ADDRESS = ir.IntType(64)
FLOATS = {"float32": ir.FloatType(), "float64": ir.DoubleType()}


class VectorLanes:
    """A vector in a register, during code generation."""

    def __init__(self, builder: Builder, value: IRValue) -> None:
        self.builder = builder
        self.value = value

    @property
    def dtype(self) -> str:
        """The precision of a lane: float32 or float64."""
        return "float32" if self.value.type.element == FLOATS["float32"] else "float64"

    def like(self, number: float) -> VectorLanes:
        """Return a vector with the number in every lane."""
        kind = self.value.type
        return VectorLanes(
            self.builder, ir.Constant(kind, [ir.Constant(kind.element, number)] * len(kind))
        )

    def _with(
        self, instruction: Callable[..., IRValue], *others: VectorLanes | float
    ) -> VectorLanes:
        """Emit an instruction on self and others; numbers become vectors."""
        values = [o.value if isinstance(o, VectorLanes) else self.like(o).value for o in others]
        return VectorLanes(self.builder, instruction(self.value, *values))

    def __add__(self, other: VectorLanes | float) -> VectorLanes:
        return self._with(self.builder.fadd, other)

    def __sub__(self, other: VectorLanes | float) -> VectorLanes:
        return self._with(self.builder.fsub, other)

    def __mul__(self, other: VectorLanes | float) -> VectorLanes:
        return self._with(self.builder.fmul, other)

    def __truediv__(self, other: VectorLanes | float) -> VectorLanes:
        return self._with(self.builder.fdiv, other)

    def __radd__(self, other: float) -> VectorLanes:
        return self.like(other) + self

    def __rsub__(self, other: float) -> VectorLanes:
        return self.like(other) - self

    def __rtruediv__(self, other: float) -> VectorLanes:
        return self.like(other) / self

    def __rmul__(self, other: float) -> VectorLanes:
        return self.like(other) * self

    def __neg__(self) -> VectorLanes:
        return self._with(self.builder.fneg)

    def choose(
        self, relation: str, other: VectorLanes | float, yes: VectorLanes, no: VectorLanes
    ) -> VectorLanes:
        """Return `yes` where the relation holds, `<`, `<=`, `>` or `>=`; else, as for NaN, `no`."""
        right = other if isinstance(other, VectorLanes) else self.like(other)
        holds = self.builder.fcmp_ordered(relation, self.value, right.value)
        return VectorLanes(self.builder, self.builder.select(holds, yes.value, no.value))

    def bits(self) -> Bits:
        """Return the bits as integers."""
        size = 32 if self.dtype == "float32" else 64
        integers = ir.VectorType(ir.IntType(size), len(self.value.type))
        return Bits(self.builder, self.builder.bitcast(self.value, integers), self.value.type)


class Bits:
    """The bits of a vector of floats as integers; `floats` is the type they came from."""

    def __init__(self, builder: Builder, value: IRValue, floats: Any) -> None:
        self.builder = builder
        self.value = value
        self.floats = floats

    def _with(self, instruction: Callable[..., IRValue], other: Bits | int) -> Bits:
        kind = self.value.type
        right = (
            other.value
            if isinstance(other, Bits)
            else ir.Constant(kind, [ir.Constant(kind.element, other)] * len(kind))
        )
        return Bits(self.builder, instruction(self.value, right), self.floats)

    def __add__(self, other: Bits | int) -> Bits:
        return self._with(self.builder.add, other)

    def __sub__(self, other: Bits | int) -> Bits:
        return self._with(self.builder.sub, other)

    def __and__(self, other: Bits | int) -> Bits:
        return self._with(self.builder.and_, other)

    def __or__(self, other: Bits | int) -> Bits:
        return self._with(self.builder.or_, other)

    def __lshift__(self, places: int) -> Bits:
        return self._with(self.builder.shl, places)

    def __rshift__(self, places: int) -> Bits:
        return self._with(self.builder.ashr, places)

    def as_floats(self) -> VectorLanes:
        """Return the bits as floats."""
        return VectorLanes(self.builder, self.builder.bitcast(self.value, self.floats))


def fma(
    x: VectorLanes, y: VectorLanes | float, z: VectorLanes | float, *, name: str = "fma"
) -> VectorLanes:
    """Return x*y + z, rounded once, by `fmuladd` only if the processor can."""
    kind = x.value.type
    terms = [term if isinstance(term, VectorLanes) else x.like(term) for term in (x, y, z)]
    function = declared(x.builder, f"llvm.{name}.{suffix(kind)}", kind, (kind, kind, kind))
    return VectorLanes(x.builder, x.builder.call(function, [term.value for term in terms]))


def joined(pieces: Sequence[VectorLanes]) -> VectorLanes:
    """Return one vector, or the concatenation of two, which LLVM splits if it is too wide."""
    if len(pieces) == 1:
        return pieces[0]
    first, second = pieces
    return VectorLanes(first.builder, shuffled(first, second, range(2 * len(first.value.type))))


def parts(values: VectorLanes, count: int) -> list[VectorLanes]:
    """Split a vector into `count` parts; the inverse of `joined`."""
    width = len(values.value.type) // count
    orders = [range(first, first + width) for first in range(0, count * width, width)]
    return [VectorLanes(values.builder, shuffled(values, values, order)) for order in orders]


def shuffled(a: VectorLanes, b: VectorLanes, order: Sequence[int]) -> IRValue:
    """Return selected lanes of two vectors; lane numbers of the second continue the first's."""
    integer = ir.IntType(32)
    mask = ir.Constant(ir.VectorType(integer, len(order)), [integer(k) for k in order])
    return a.builder.shuffle_vector(a.value, b.value, mask)


def has_scaling(x: VectorLanes) -> bool:
    """Return whether `by_power` supports such a vector."""
    widths = (2 * max(kernel_shapes.WIDTHS), *kernel_shapes.WIDTHS)
    return kernel_shapes.has_scaling() and bits_of(x.value.type) in widths


def bits_of(kind: Any) -> int:
    """Return the width of a vector type in bits."""
    return 8 * element_size(kind) * len(kind)


def by_power(x: VectorLanes, n: VectorLanes) -> VectorLanes:
    """Return x * 2^n, rounded once, for a whole number n: AVX-512's scalef."""
    kind, bits = x.value.type, bits_of(x.value.type)
    if bits > max(kernel_shapes.WIDTHS):
        return joined([by_power(*both) for both in zip(parts(x, 2), parts(n, 2), strict=True)])
    mask = ir.IntType(max(8, len(kind)))(-1)
    name = f"llvm.x86.avx512.mask.scalef.{'ps' if element_size(kind) == 4 else 'pd'}.{bits}"
    arguments = [x.value, n.value, ir.Constant(kind, None), mask]
    if bits == max(kernel_shapes.WIDTHS):
        arguments.append(ir.IntType(32)(4))  # the current rounding mode
    function = declared(x.builder, name, kind, [value.type for value in arguments])
    return VectorLanes(x.builder, x.builder.call(function, arguments))


def declared(builder: Builder, name: str, result: Any, arguments: Sequence[Any]) -> IRValue:
    """Return an LLVM intrinsic, declared once per module."""
    if name in builder.module.globals:
        return builder.module.globals[name]
    return ir.Function(builder.module, ir.FunctionType(result, arguments), name)


def suffix(kind: Any) -> str:
    """Return the suffix of LLVM intrinsics for a vector type."""
    return f"v{len(kind)}f{8 * element_size(kind)}"


def vector_type(dtype: str, lanes: int) -> Any:
    """Return the LLVM vector type."""
    return ir.VectorType(FLOATS[dtype], lanes)


def pointer(builder: Builder, address: IRValue, kind: Any) -> IRValue:
    """Cast an integer address to a pointer."""
    return builder.inttoptr(address, kind.as_pointer())


def load(builder: Builder, address: IRValue, kind: Any) -> VectorLanes:
    """Load a vector from an address aligned to its element's size."""
    value = builder.load(pointer(builder, address, kind))
    value.align = element_size(kind)
    return VectorLanes(builder, value)


def store(values: VectorLanes, address: IRValue) -> None:
    """Store a vector at an address aligned to its element's size."""
    kind = values.value.type
    stored = values.builder.store(values.value, pointer(values.builder, address, kind))
    stored.align = element_size(kind)


def stream_out(values: VectorLanes, address: IRValue) -> None:
    """Store a vector past the caches, at an address that is a multiple of its size."""
    builder, kind = values.builder, values.value.type
    stored = builder.store(values.value, pointer(builder, address, kind))
    stored.align = element_size(kind) * len(kind)
    module = builder.module
    stored.set_metadata("nontemporal", module.add_metadata([ir.IntType(32)(1)]))


def store_first(values: VectorLanes, address: IRValue, count: IRValue) -> None:
    """Store the first `count` lanes, or all if there are fewer."""
    builder, kind = values.builder, values.value.type
    lanes = len(kind)
    whole = builder.icmp_signed(">=", count, count.type(lanes))
    with builder.if_else(whole, likely=True) as (then, otherwise):
        with then:
            store(values, address)
        with otherwise:
            integers = ir.VectorType(ir.IntType(32), lanes)
            number = ir.Constant(integers, [ir.Constant(ir.IntType(32), k) for k in range(lanes)])
            limit = spread(builder, builder.trunc(count, ir.IntType(32)), lanes)
            mask = builder.icmp_signed("<", number, limit)
            masked = declared(
                builder,
                f"llvm.masked.store.{suffix(kind)}.p0",
                ir.VoidType(),
                (kind, kind.as_pointer(), ir.IntType(32), mask.type),
            )
            align = ir.Constant(ir.IntType(32), element_size(kind))
            builder.call(masked, (values.value, pointer(builder, address, kind), align, mask))


def spread(builder: Builder, number: IRValue, lanes: int) -> IRValue:
    """Return a vector with a number in every lane."""
    kind = ir.VectorType(number.type, lanes)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), None)
    return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), zeros)


def load_number(builder: Builder, address: IRValue, kind: Any) -> VectorLanes:
    """Load one number into every lane."""
    number = builder.load(pointer(builder, address, kind.element))
    return VectorLanes(builder, spread(builder, number, len(kind)))


def element_size(kind: Any) -> int:
    """Return the bytes of one lane."""
    return 4 if kind.element == FLOATS["float32"] else 8


def moved(builder: Builder, address: IRValue, size: int) -> IRValue:
    """Return an address plus some bytes."""
    return builder.add(address, ADDRESS(size))


def once(
    module: Any, name: str, result: Any, arguments: Sequence[Any], body: Callable[..., None]
) -> IRValue:
    """Return a function of a module, emitted on first use by body(builder, *arguments)."""
    if name not in module.globals:
        function = ir.Function(module, ir.FunctionType(result, arguments), name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        body(ir.IRBuilder(function.append_basic_block("entry")), *function.args)
    return module.globals[name]


def cases(builder: Builder, number: IRValue, count: int) -> Iterator[int]:
    """Yield 0 ... count - 1, with the builder in the branch for that value of `number`."""
    impossible = builder.append_basic_block("impossible")
    choice = builder.switch(number, impossible)
    for case in range(count):
        block = builder.append_basic_block(f"case{case}")
        choice.add_case(number.type(case), block)
        builder.position_at_end(block)
        yield case
    builder.position_at_end(impossible)
    builder.unreachable()
