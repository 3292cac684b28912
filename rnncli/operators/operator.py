"""The records that the operator tables consist of."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rnncli.numerics import Array
    from rnncli.operators.translation import Translation
    from rnncli.recurrence.cells import Cell

SYMBOLS = {
    "T": "seq_length",
    "N": "batch_size",
    "I": "input_size",
    "H": "hidden_size",
    "D": "num_directions",
    "O": "output_size",
    "Q": "q_num_heads",
    "K": "kv_num_heads",
    "k": "key_size",
    "v": "value_size",
    "C": "channels",
    "w": "kernel_size",
    "d": "dilation",
    "P": "total_tokens",
}


class SizeProduct(NamedTuple):
    """A size that follows from others: their product, the first less a number."""

    factors: tuple[str, ...]
    less: int = 0

    def __str__(self) -> str:
        first, *others = self.factors or ["1"]
        first = f"{first} {'-' if self.less > 0 else '+'} {abs(self.less)}" if self.less else first
        return "*".join([f"({first})" if others and self.less else first, *others])

    def of(self, sizes: Mapping[str, int]) -> int:
        """Return its value, given its factors."""
        first, *others = (*(sizes[name] for name in self.factors), 1)
        return (first - self.less) * math.prod(others)

    def lacking(self, sizes: Mapping[str, int], value: int) -> tuple[str, int] | None:
        """Return the one factor that is not known, and its value; None unless there is one."""
        unknown = [name for name in self.factors if name not in sizes]
        if len(unknown) != 1:
            return None
        known = self.of({name: sizes.get(name, self.less + 1) for name in self.factors})
        return unknown[0], value // max(known, 1) + self.less * (unknown[0] == self.factors[0])


PRODUCTS: Mapping[str, SizeProduct] = {
    "1": SizeProduct(()),
    "Q*k": SizeProduct(("q_num_heads", "key_size")),
    "Q*v": SizeProduct(("q_num_heads", "value_size")),
    "K*k": SizeProduct(("kv_num_heads", "key_size")),
    "K*v": SizeProduct(("kv_num_heads", "value_size")),
    "w-1": SizeProduct(("kernel_size",), less=1),
    "min(Q,K)*k": SizeProduct(("head_groups", "key_size")),
    "max(Q,K)*v": SizeProduct(("output_heads", "value_size")),
    "(w-1)*d": SizeProduct(("kernel_size", "dilation"), less=1),
    "N+1": SizeProduct(("batch_size",), less=-1),
}
_BY_NAME = {str(product): product for product in PRODUCTS.values()}
HEADS = ("q_num_heads", "kv_num_heads")
GROUPS = "head_groups"  # of heads of queries and of keys that share one of the others


def with_products(sizes: Mapping[str, int]) -> dict[str, int]:
    """Return sizes with those that follow from them, by the names that dimensions have.

    The smaller number of heads is that of the groups that share a head; outputs have the larger.
    """
    known = dict(sizes)
    if {*HEADS} <= sizes.keys():
        heads = [sizes[name] for name in HEADS]
        known |= {GROUPS: min(heads), "output_heads": max(heads)}
    products = {n: each for n, each in _BY_NAME.items() if {*each.factors} <= known.keys()}
    return {**known, **{name: each.of(known) for name, each in products.items()}}


def sizes_within(symbol: str, known: Mapping[str, int], value: int) -> tuple[str, int] | None:
    """Return the size that a dimension tells of, and its value; None if it tells of none."""
    product = _BY_NAME.get(symbol)
    if product is None:
        return None if symbol in known else (symbol, value)
    return product.lacking(known, value)


BYTES = ("int8", "uint8")
"""The element types of quantised weights."""
FORMS: Mapping[str, tuple[str, ...]] = {
    "scales": ("per_tensor", "per_channel"),
    "decay_form": ("per_head", "per_key"),
    "beta_form": ("per_head", "shared"),
    "key_form": ("per_head", "shared"),
    "bias_form": ("per_head", "per_key"),
}
"""Key of a config -> which of its shapes a tensor has that may have several.

One scale of quantised weights is for a direction, or a column of it; one number of decay for the
state of a head, or for a row of it; one of beta for a head, or for all of them; one head of keys
for a head of values, or for all that share a head of queries.
"""


# The roles of inputs that say how long sequences are: the steps of each, or where packed ones end.
LENGTHS = ("lengths", "offsets")


class Dim(NamedTuple):
    """One dimension of a shape: a multiple of a named size."""

    symbol: str
    multiple: int = 1

    def __str__(self) -> str:
        return self.symbol if self.multiple == 1 else f"{self.multiple}*{self.symbol}"

    @property
    def sizes(self) -> tuple[str, ...]:
        """The named sizes that it is made of."""
        product = _BY_NAME.get(self.symbol)
        return (self.symbol,) if product is None else product.factors

    @property
    def parts(self) -> tuple[str, ...]:
        """The sizes whose product it is, the outermost first; itself, if it is none of several."""
        product = _BY_NAME.get(self.symbol)
        is_product = product is not None and len(product.factors) > 1 and not product.less
        return self.sizes if is_product else (self.symbol,)


def shape(text: str) -> tuple[Dim, ...]:
    """Parse a shape such as ``"D 4*H I"``."""

    def dim(word: str) -> Dim:
        if word in PRODUCTS:
            return Dim(str(PRODUCTS[word]))
        multiple, _, letter = word.rpartition("*")
        return Dim(SYMBOLS[letter], int(multiple or 1))

    return tuple(map(dim, text.split()))


class Tensor(NamedTuple):
    """An input or output."""

    name: str  # the specification's name
    # its role in the canonical recurrence: X, W, R, B (or Wb and Rb), P, lengths (or offsets of
    # packed sequences), initial_h, initial_c, Y, Y_h, Y_c; or W_scale, W_zero_point, R_scale,
    # R_zero_point of quantised weights
    role: str
    # the dimensions; two of them where the attribute `shapes_by` of the operator decides, for its
    # values 0 and 1, or where the tensor may have either, as `form` says
    shapes: tuple[tuple[Dim, ...], ...]
    summary: str  # a description
    optional: bool = False  # whether a node may leave it out
    dtypes: tuple[str, ...] = ()  # the element types it may have, or () for the operator's T
    # the attribute that must be true for a node to have this output, or "" for none
    condition: str = ""
    # the key of `FORMS` by which a case chooses one of the shapes; "" if it has no choice
    form: str = ""
    # its element type by T, where that is not T and no choice of its own
    types: Mapping[str, str] = {}

    def shape(self, variant: int = 0) -> tuple[Dim, ...]:
        """Return the dimensions, given the value of the operator's `shapes_by`."""
        return self.shapes[min(variant, len(self.shapes) - 1)]

    def fitting(
        self, shape: Sequence[int], sizes: Mapping[str, int], variant: int = 0
    ) -> tuple[Dim, ...]:
        """Return the dimensions that a shape has, of those that are possible; else `shape`.

        Sizes that are not known fit.
        """
        known = with_products(sizes)
        fitting = [
            dims
            for dims in (self.shapes if self.form else ())
            if len(dims) == len(shape)
            and all(
                known.get(dim.symbol, size // dim.multiple) * dim.multiple == size
                for dim, size in zip(dims, shape, strict=True)
            )
        ]
        ranked = [dims for dims in self.shapes if len(dims) == len(shape)]
        if fitting:
            return fitting[0]
        return ranked[0] if len(ranked) == 1 else self.shape(variant)

    @property
    def is_weight(self) -> bool:
        """Whether it is a layer's parameter, a scale or a zero point, which models hold."""
        return self.role.partition("_")[0] in {"W", "R", "B", "Wb", "Rb", "P", "bias"}

    def types_with(self, T: str) -> tuple[str, ...]:
        """Return the element types that it may have, given T."""
        return self.dtypes or (self.types.get(T, T),)

    @property
    def kind(self) -> str:
        """`lengths`, `levels` (quantised weights), `states` of type S, or `values` of type T."""
        if self.role in LENGTHS:
            return "lengths"
        if self.role in {"initial_c", "Y_c"} and self.dtypes:
            return "states"
        return "levels" if self.dtypes == BYTES else "values"


class Input(Tensor):
    """An input."""

    __slots__ = ()


class Output(Tensor):
    """An output."""

    __slots__ = ()


AnyTensor = TypeVar("AnyTensor", Input, Output)


def of_a_cell(tensor: AnyTensor, **changes: Any) -> AnyTensor:
    """Return a tensor of a sequence without the axes of time and direction, and other changes."""
    lacking = {"seq_length", "num_directions"}
    shapes = (tuple(dim for dim in dims if dim.symbol not in lacking) for dims in tensor.shapes)
    return tensor._replace(shapes=tuple(shapes), **changes)


class Attribute(NamedTuple):
    """An attribute of an operator."""

    name: str  # the specification's name
    type: str  # bool, int, float, string, floats or strings
    summary: str  # a description
    default: Any = None  # its value when absent; None when it has no fixed one
    required: bool = False  # whether a node must carry it
    choices: tuple[Any, ...] = ()  # the values it may have, or each of a list, or () for any
    # its ONNX name, if another dialect spells it differently; the name of a size that it states; or
    # `gates`, the order of the gates
    role: str = ""
    # values that are spelled unlike the canonical ones: GRU-1's `foward`, which is read as a
    # choice, and the choices of other dialects
    aliases: Mapping[str, str] = {}
    largest: int | None = None  # the largest value of an integer, or None for any
    # why no value but the default is evaluated, or ""
    unsupported: str = ""

    @property
    def accepted(self) -> tuple[Any, ...]:
        """The values that a node may write, where there are choices."""
        return tuple(dict.fromkeys((*self.choices, *self.aliases)))

    def canonical(self, value: Any) -> Any:
        """Return the canonical value of a spelling."""
        return self.aliases.get(value, value) if isinstance(value, str) else value

    def spelled(self, value: Any) -> Any:
        """Return the spelling of a canonical value."""
        if value in self.choices or not isinstance(value, str):
            return value
        return next((own for own, meaning in self.aliases.items() if meaning == value), value)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Operator:
    """One version of one operator. Compared by identity, so that results can be cached by it.

    Attributes:
        type: the op_type.
        version: the opset that introduced it.
        versioned: whether its name has the version; else it has the domain.
        domain: the domain of its nodes in a model.
        dialect: the specification that it belongs to: ONNX, OpenVINO, WebNN or another.
        cell: the equations it evaluates.
        gates: the order of the gates in W, R and the biases, unless an attribute decides.
        inputs, outputs: in the node's order.
        attributes: by name.
        dtypes: T, the element types of all its floating-point tensors.
        activations: canonical names of the activations that it allows.
        default_activations: for one direction.
        spare_activation: whether one direction accepts two names (the RNN's schema default has
            two).
        activation_lists: "each", one list of activations for each direction; "one", one for both;
            "equal", one for both, or two equal ones (see `openvino_rows`).
        bias: "split", B holds Wb then Rb; "sum", B holds their sum, and where a GRU resets after
            the linear transformation, the sum of z and r, then Wbh and Rbh; "two", each is an
            input, Wb and Rb.
        empty_sizes: whether seq_length, batch_size and input_size may be 0.
        shapes_by: the attribute that decides between the `shapes` of a tensor, or "" for none.
        fixed: values of attributes that it lacks: a cell is a forward sequence of one step.
        readings: the readings that affect it, each with this dialect's default.
        translation: how its nodes become the canonical recurrence, if not as those of a gated cell
            with weights, see `node`.
        demanding: the attribute by which optional inputs are needed or refused, or "" for none.
        demands: those inputs, and whether each is needed, given complete attributes by role.
        rules: what its specification demands besides, in sentences about complete attributes by
            role, given T, or "" if it is unknown.
        beyond: the names of inputs and outputs that its specification has behind these, and that
            are not evaluated.
        unsupported: which forms of inputs its specification has that are not evaluated, in
            sentences about inputs.
    """

    type: str
    version: int
    versioned: bool = True
    domain: str
    dialect: str
    cell: Cell
    gates: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    attributes: Mapping[str, Attribute]
    dtypes: tuple[str, ...]
    activations: tuple[str, ...]
    default_activations: tuple[str, ...]
    spare_activation: bool = False
    activation_lists: str = "each"
    bias: str
    empty_sizes: bool = True
    shapes_by: str = "layout"
    fixed: Mapping[str, Any] = field(default_factory=dict)
    readings: Mapping[str, str]
    translation: Translation | None = None
    demanding: str = ""
    demands: Callable[[Mapping[str, Any]], Mapping[str, bool]] = lambda _: {}
    rules: Callable[[Mapping[str, Any], str], Iterator[str]] = lambda *_: iter(())
    beyond: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unsupported: Callable[[Mapping[str, Array]], Iterator[str]] = lambda _: iter(())

    @property
    def name(self) -> str:
        """Type and version, as in `LSTM-14`; without versions, domain and type: `webnn.lstm`."""
        return f"{self.type}-{self.version}" if self.versioned else self.family

    @property
    def family(self) -> str:
        """The name that its versions share, as in `LSTM`; without versions, its name."""
        return self.type if self.versioned else f"{self.domain}.{self.type}"

    @property
    def slug(self) -> str:
        """Its name in file names and ids, as in `lstm_14` and `webnn_lstm`."""
        return self.name.lower().replace("-", "_").replace(".", "_")

    def __str__(self) -> str:
        return self.name

    def has(self, symbol: str) -> bool:
        """Return whether a size, such as seq_length, is one of a tensor's dimensions."""
        name = HEADS[0] if symbol == GROUPS else symbol
        return any(name in dim.sizes for row in self.inputs for dim in row.shape())

    @property
    def quantised(self) -> bool:
        """Whether its weights are quantised, and its inputs and states while it runs."""
        return any(row.role == "W_scale" for row in self.inputs)

    @property
    def packed(self) -> bool:
        """Whether its sequences are packed, one after the other."""
        return any(row.role == "offsets" for row in self.inputs)

    def variant(self, attributes: Mapping[str, Any]) -> int:
        """Return which of its `shapes` a tensor has in a node, given its attributes."""
        return attributes.get(self.shapes_by) or 0

    @property
    def gated(self) -> str:
        """The names of the inputs whose rows are gates, as text; "" if each gate has its own."""
        roles = ("W", "R", "B", "Wb", "Rb")
        names = [row.name for row in self.inputs if row.role in roles]
        return f"{', '.join(names[:-1])} and {names[-1]}" if names else ""

    def facts(self, inputs: Mapping[str, Array]) -> Mapping[str, Any]:
        """Return what the axes of a node depend on besides its attributes, given its inputs."""
        found = self.translation.facts if self.translation else None
        return found(inputs) if found else {}

    def present_outputs(self, attributes: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of the outputs of a node, given its complete attributes by role."""
        return tuple(
            row.name for row in self.outputs if not row.condition or attributes[row.condition]
        )

    def attribute_for(self, role: str) -> Attribute | None:
        """Return the attribute with a role, if there is one."""
        rows = self.attributes.values()
        return next((row for row in rows if (row.role or row.name) == role), None)

    def written(self, role: str, value: Any) -> dict[str, Any]:
        """Return the canonical value of a role as a node writes it, by name; {} if it has none."""
        row = self.attribute_for(role)
        return {row.name: row.spelled(value)} if row else {}

    @property
    def lengths_dtypes(self) -> tuple[str, ...]:
        """The element types that sequence lengths may have; none without such an input."""
        return next((row.dtypes for row in self.inputs if row.kind == "lengths"), ())

    @property
    def weights_dtypes(self) -> tuple[str, ...]:
        """The element types that quantised weights may have; none if weights are not quantised."""
        return next((row.dtypes for row in self.inputs if row.kind == "levels"), ())

    @property
    def states_dtypes(self) -> tuple[str, ...]:
        """The element types that states may have; none if they have those of all tensors."""
        return next((row.dtypes for row in self.inputs if row.kind == "states"), ())

    def choices_of(self, form: str) -> tuple[str, ...]:
        """Return the choices of a key of `FORMS`; none if no tensor has such a choice."""
        return FORMS[form] if any(row.form == form for row in self.inputs) else ()

    def input_dtypes(self, row: Input) -> tuple[str, ...]:
        """Return the element types that an input may have."""
        return row.dtypes or tuple(dict.fromkeys(row.types.values())) or self.dtypes


def by_name(*rows: Attribute) -> dict[str, Attribute]:
    """Return attribute rows by name."""
    return {row.name: row for row in rows}


# The dimensions that a model may leave open; all others are those of its weights.
OPEN = frozenset({"seq_length", "batch_size"})


class Spelling(NamedTuple):
    """How a model spells a node, which does not change what it computes."""

    empty_names: bool = False  # whether absent inputs at the end also become ""
    # whether steps and batch are names instead of numbers, as in exported models
    open_sizes: bool = False


PLAIN = Spelling()
