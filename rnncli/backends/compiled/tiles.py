"""The inner loop of the matrix product, and the transposition that packs its weights.

A tile is a few rows of a product by one panel of columns, whose sums stay in registers throughout
the loop over terms (K. Goto and R. van de Geijn, Anatomy of High-Performance Matrix Multiplication,
2008). Weights are packed in the order in which the loop reads them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core.cgutils import for_range, unpack_tuple

from rnncli.backends.compiled.compiling import instruction
from rnncli.backends.compiled.kernel_shapes import Shape
from rnncli.backends.compiled.vector_lanes import (
    ADDRESS,
    Builder,
    IRValue,
    VectorLanes,
    cases,
    declared,
    element_size,
    fma,
    load,
    load_number,
    moved,
    once,
    pointer,
    store,
    stream_out,
    vector_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Independent sums needed to keep both multipliers busy.
IN_FLIGHT = 8
# Prefetch distance in bytes of a tile's weights, into the L2 cache. It makes a GRU of 1024 units a
# fifth faster; tiles of few rows have no time to spare for prefetching.
AHEAD = 1 << 14
# The rows of a StridedProduct that prefetches: those of a single step of a linear attention, which
# has its state from memory. It takes 6.4 ms instead of 7.9 for 64 MiB, on 2026-11-28.
FEW = 2


class TileProduct(NamedTuple):
    """The product of some rows of A with a panel; addresses and strides are in bytes."""

    rows: int  # 1 to the shape's `tallest`
    terms: int  # length of the sums
    A: int  # address of the first row
    A_stride: int  # stride from row to row
    panel: int  # packed columns [terms, width * lanes]
    start: int  # address of the numbers added to the first row's sums
    start_stride: int  # stride from row to row; 0 adds the same to all
    out: int  # address of the first row's result; may be `start`
    out_stride: int  # stride from row to row


class StridedProduct(NamedTuple):
    """A product of any part of a matrix, added to scaled numbers; otherwise as TileProduct."""

    rows: int
    terms: int
    A: int
    A_stride: int
    panel: int  # address of its first row of columns
    start: int
    start_stride: int
    out: int
    out_stride: int
    panel_stride: int  # stride from term to term
    factors: int  # address of the factor of the first row's numbers at `start`
    factor_stride: int  # stride from row to row


def _calling(name: str, body: Callable[..., None]) -> Callable[..., IRValue]:
    """Return what emits a call of the function with this name and body, which a module has once."""

    def emit(context: Any, builder: Builder, _: Any, args: Any) -> IRValue:
        numbers = unpack_tuple(builder, args[1])
        kinds = [number.type for number in numbers]
        builder.call(once(builder.module, name, ir.VoidType(), kinds, body), numbers)
        return context.get_dummy_value()

    return emit


@instruction
def multiply(_: Any, code: Any, product: Any) -> tuple[Any, Any]:
    """Compute a TileProduct, in a kernel of the shape with this literal code."""
    return _product("multiply", code, product, prefetches=True)


@instruction
def accumulate(_: Any, code: Any, product: Any) -> tuple[Any, Any]:
    """Compute a StridedProduct, in a kernel of the shape with this literal code."""
    return _product("accumulate", code, product)


@instruction
def stream(_: Any, code: Any, product: Any) -> tuple[Any, Any]:
    """Likewise, but write past the caches, to addresses that are multiples of a vector."""
    return _product("stream", code, product, streams=True)


@instruction
def add_outer(_: Any, code: Any, product: Any) -> tuple[Any, Any]:
    """Compute a StridedProduct of one term, and of any number of rows."""
    return _outer("add outer", code, product)


@instruction
def stream_outer(_: Any, code: Any, product: Any) -> tuple[Any, Any]:
    """Likewise, but write past the caches, to addresses that are multiples of a vector."""
    return _outer("stream outer", code, product, streams=True)


def _outer(name: str, code: Any, product: Any, *, streams: bool = False) -> tuple[Any, Any]:
    shape = Shape.of(code.literal_value)

    def body(builder: Builder, *places: IRValue) -> None:
        product = StridedProduct(*places)
        kind, put = vector_type(shape.dtype, shape.lanes), stream_out if streams else store
        offsets = [v * shape.lanes * shape.size for v in range(shape.width)]
        columns = [load(builder, moved(builder, product.panel, o), kind) for o in offsets]

        with for_range(builder, product.rows) as loop:

            def of_row(first: IRValue, stride: IRValue) -> IRValue:
                return builder.add(first, builder.mul(stride, loop.index))

            number = load_number(builder, of_row(product.A, product.A_stride), kind)
            factor = load_number(builder, of_row(product.factors, product.factor_stride), kind)
            source = of_row(product.start, product.start_stride)
            target = of_row(product.out, product.out_stride)
            for column, offset in zip(columns, offsets, strict=True):
                before = factor * load(builder, moved(builder, source, offset), kind)
                total = fma(number, column, before, name="fmuladd")
                put(total, moved(builder, target, offset))
        builder.ret_void()

    return types.void(code, product), _calling(f"{name} {shape.code}", body)


def _product(
    name: str, code: Any, product: Any, *, prefetches: bool = False, streams: bool = False
) -> tuple[Any, Any]:
    shape = Shape.of(code.literal_value)

    def body(builder: Builder, rows: IRValue, *places: IRValue) -> None:
        for case in cases(builder, builder.sub(rows, ADDRESS(1)), shape.tallest):
            kind, height = vector_type(shape.dtype, shape.lanes), case + 1
            tall = 3 * height > 2 * shape.tallest
            fetches = tall if prefetches else height == FEW
            tile = Tile(builder, kind, height, shape.width, prefetches=fetches, streams=streams)
            tile.emit(*places)
            builder.ret_void()

    return types.void(code, product), _calling(f"{name} {shape.code}", body)


class Tile:
    """The code of tiles of one height."""

    def __init__(
        self,
        builder: Builder,
        kind: Any,
        height: int,
        width: int,
        *,
        prefetches: bool,
        streams: bool,
    ) -> None:
        self.builder = builder
        self.kind = kind
        self.height = height
        self.width = width
        self.prefetches = prefetches
        self.store = stream_out if streams else store
        self.ways = max(1, IN_FLIGHT // (height * width))
        self.across: IRValue = ADDRESS(width * len(kind) * element_size(kind))  # term to term

    def emit(self, *places: IRValue) -> None:
        """Emit the loop and the addition of its sums to `start`, scaled in a StridedProduct."""
        terms, A, A_stride, panel, start, start_stride, out, out_stride, *strided = places
        size = element_size(self.kind)
        if strided:
            self.across, factors, factor_stride = strided
        rows = [self._at(A, m, A_stride) for m in range(self.height)]
        unrolled = self.builder.and_(terms, ADDRESS(-self.ways))
        zero = VectorLanes(self.builder, ir.Constant(self.kind, None))
        sums = [zero] * (self.height * self.width * self.ways)
        sums = self._loop(ADDRESS(0), unrolled, self.ways, rows, panel, sums)
        single = self.height * self.width
        folded = sums[:single]
        for way in range(1, self.ways):
            more = sums[way * single : (way + 1) * single]
            folded = [a + b for a, b in zip(folded, more, strict=True)]
        if self.ways > 1:
            folded = self._loop(unrolled, terms, 1, rows, panel, folded)
        for m in range(self.height):
            source, target = self._at(start, m, start_stride), self._at(out, m, out_stride)
            if strided:
                factor = load_number(self.builder, self._at(factors, m, factor_stride), self.kind)
            for v in range(self.width):
                offset = v * len(self.kind) * size
                before = load(self.builder, moved(self.builder, source, offset), self.kind)
                if strided:
                    before = factor * before
                total = before + folded[m * self.width + v]
                self.store(total, moved(self.builder, target, offset))

    def _at(self, base: IRValue, row: int, stride: IRValue) -> IRValue:
        return self.builder.add(base, self.builder.mul(stride, ADDRESS(row)))

    def _loop(
        self,
        first: IRValue,
        last: IRValue,
        ways: int,
        rows: list[IRValue],
        panel: IRValue,
        sums: list[VectorLanes],
    ) -> list[VectorLanes]:
        """Emit `for k in range(first, last, ways)` and return the sums."""
        builder = self.builder
        before = builder.block
        head = builder.append_basic_block("terms")
        body = builder.append_basic_block("term")
        after = builder.append_basic_block("summed")
        builder.branch(head)
        builder.position_at_end(head)
        k = builder.phi(ADDRESS)
        k.add_incoming(first, before)
        phis = [builder.phi(self.kind) for _ in sums]
        for phi, value in zip(phis, sums, strict=True):
            phi.add_incoming(value.value, before)
        builder.cbranch(builder.icmp_signed("<", k, last), body, after)
        builder.position_at_end(body)
        updated = list(
            self._terms(k, ways, rows, panel, [VectorLanes(builder, phi) for phi in phis])
        )
        k.add_incoming(builder.add(k, ADDRESS(ways)), builder.block)
        for phi, value in zip(phis, updated, strict=True):
            phi.add_incoming(value.value, builder.block)
        builder.branch(head)
        builder.position_at_end(after)
        return [VectorLanes(builder, phi) for phi in phis]

    def _terms(
        self, k: IRValue, ways: int, rows: list[IRValue], panel: IRValue, sums: list[VectorLanes]
    ) -> Iterator[VectorLanes]:
        """Add one term to each sum, for one or several ways."""
        builder, size = self.builder, element_size(self.kind)
        numbers = builder.add(panel, builder.mul(k, self.across))
        offset = builder.mul(k, ADDRESS(size))
        each = iter(sums)
        for way in range(ways):
            vector, term = len(self.kind) * size, self._at(numbers, way, self.across)
            places = [moved(builder, term, v * vector) for v in range(self.width)]
            columns = [load(builder, place, self.kind) for place in places]
            if self.prefetches:
                for place in places:
                    prefetch(builder, moved(builder, place, AHEAD))
            for row in rows:
                place = moved(builder, builder.add(row, offset), way * size)
                number = load_number(builder, place, self.kind)
                for column in columns:
                    yield fma(number, column, next(each), name="fmuladd")


@instruction
def fetch(_: Any, address: Any) -> tuple[Any, Any]:
    """Prefetch the memory at an address, which may be invalid."""

    def emit(context: Any, builder: Builder, _: Any, args: Any) -> IRValue:
        prefetch(builder, args[0])
        return context.get_dummy_value()

    return types.void(address), emit


def prefetch(builder: Builder, address: IRValue) -> None:
    """Prefetch memory into the L2 cache; the address may be invalid."""
    integer = ir.IntType(32)
    kinds = (ir.IntType(8).as_pointer(), integer, integer, integer)
    function = declared(builder, "llvm.prefetch.p0", ir.VoidType(), kinds)
    reading, second, data = integer(0), integer(2), integer(1)
    builder.call(function, (pointer(builder, address, ir.IntType(8)), reading, second, data))


class SquareBlock(NamedTuple):
    """A block with as many rows as a vector has lanes; addresses and strides are in bytes."""

    source: int  # address of the first row
    source_stride: int  # stride from row to row
    target: int  # address of the first transposed row
    target_stride: int  # stride from there to the next


@instruction
def transpose(_: Any, code: Any, square: Any) -> tuple[Any, Any]:
    """Write the transpose of a SquareBlock, in a kernel of the shape with this literal code."""
    shape = Shape.of(code.literal_value)

    def body(builder: Builder, source: IRValue, stride: IRValue, *target: IRValue) -> None:
        kind = vector_type(shape.dtype, shape.lanes)
        places = [builder.add(source, builder.mul(stride, ADDRESS(m))) for m in range(shape.lanes)]
        rows = [load(builder, place, kind) for place in places]
        first, target_stride = target
        for m, row in enumerate(transposed(rows)):
            store(row, builder.add(first, builder.mul(target_stride, ADDRESS(m))))
        builder.ret_void()

    return types.void(code, square), _calling(f"transpose {shape.code}", body)


def transposed(rows: list[VectorLanes]) -> list[VectorLanes]:
    """Transpose a square in registers by interleaving halves, log2(width) times."""
    half = len(rows) // 2
    stages = half.bit_length()
    for _ in range(stages):
        rows = [
            woven
            for upper, lower in zip(rows[:half], rows[half:], strict=True)
            for woven in (interleaved(upper, lower, 0), interleaved(upper, lower, half))
        ]
    return rows


def interleaved(a: VectorLanes, b: VectorLanes, first: int) -> VectorLanes:
    """Interleave half of a and b: a[first], b[first], a[first + 1], b[first + 1] ..."""
    lanes = len(a.value.type)
    order = [k + side * lanes for k in range(first, first + lanes // 2) for side in (0, 1)]
    integers = ir.VectorType(ir.IntType(32), lanes)
    mask = ir.Constant(integers, [ir.Constant(ir.IntType(32), k) for k in order])
    return VectorLanes(a.builder, a.builder.shuffle_vector(a.value, b.value, mask))
