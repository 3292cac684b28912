"""The equations of each cell, as the specification writes them, over any arithmetic.

In the code, `x` holds Xt*(W^T) + Wb + Rb of each gate and `R(H)` is H*(R^T) of each gate, so that
their sum is the pre-activation of every gate; `f`, `g`, `h` clip their argument before applying the
activation. The one bias not in `x` is the Rbh of a GRU with linear_before_reset.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.recurrence.integers import IntegerForm, IntegerKernel
    from rnncli.recurrence.unit import InnerLevels

Value = Any  # an array of the arithmetic's numbers, which supports + - * /
States: TypeAlias = "tuple[Value, ...]"


class Arithmetic(Protocol):
    """The functions of the equations: cells and activations use only these and `+ - * /`.

    They are elementwise, and stable over the whole range of their argument; NaN gives NaN.
    `numerics.NumPyArithmetic` implements them for NumPy arrays; other arithmetics (balls, for
    certified results) for their own arrays.
    """

    def tanh(self, x: Value, /) -> Value:
        """(1 - e^-2x)/(1 + e^-2x)."""

    def sigmoid(self, x: Value, /) -> Value:
        """1/(1 + e^-x)."""

    def softplus(self, x: Value, /) -> Value:
        """log(1 + e^x)."""

    def expm1(self, x: Value, /) -> Value:
        """e^x - 1."""

    def exp(self, x: Value, /) -> Value:
        """e^x."""

    def sqrt(self, x: Value, /) -> Value:
        """The square root of x."""

    def maximum(self, x: Value, bound: float, /) -> Value:
        """The larger of x and a number."""

    def minimum(self, x: Value, bound: float, /) -> Value:
        """The smaller of x and a number."""

    def absolute(self, x: Value, /) -> Value:
        """|x|."""

    def zero_below(self, x: Value, bound: float, *, inclusive: bool) -> Value:
        """0 where x < bound (inclusive: x <= bound), else x."""

    def nonnegative_else(self, x: Value, otherwise: Value, /) -> Value:
        """X where x >= 0, else `otherwise`."""

    def blend(self, z: Value, h: Value, H: Value, /) -> Value:
        """(1 - z) (.) h + z (.) H."""


class AttentionForm(NamedTuple):
    """The form of a linear attention: its sizes, and the terms of its update.

    X has, for each state of a head, in this order: q of each of the heads that read it, k, v, the
    decay and beta, those that there are.
    """

    group: int  # heads of q that read a state
    key_size: int  # the rows of a state
    value_size: int  # the columns of a state
    decays: int = 0  # the numbers of decay: none, 1 for a state, or key_size, one for each row
    has_beta: bool = False  # whether what is written corrects what is read for k, by beta
    scale: float = 0.0  # the factor of outputs; 0 stands for 1/sqrt(key_size)
    heads: int = 1  # the states of an element of the batch, which are next to each other
    shares_beta: bool = False  # whether beta was given once for all heads
    share: int = 1  # states next to each other that read the same q, which was given once
    shares_key: bool = False  # whether k was given once for these as well

    @property
    def widths(self) -> tuple[int, ...]:
        """How many numbers of X are q, k, v, the decay and beta."""
        key, value = self.key_size, self.value_size
        return self.group * key, key, value, self.decays, int(self.has_beta)

    def parts(self, x: Value) -> list[Value]:
        """Split X [..., sum(widths)] into q [..., group, key_size], k, v, the decay and beta."""
        q, *others = np.split(x, np.cumsum(self.widths)[:-1], axis=-1)
        return [q.reshape(*q.shape[:-1], self.group, self.key_size), *others]


class TokenForm(NamedTuple):
    """What is made of a token of a linear attention before its step: GatedDeltaNet does it.

    X has a_log and the numbers of dt_bias behind the others, if there is a gate.
    """

    normalises: bool = False  # whether q and k are divided by their lengths
    gate: str = "none"  # what makes the decay: none, softplus or sigmoid
    bound: float = 0.0  # the factor of the sigmoid
    activates_beta: bool = False  # whether beta is the argument of a sigmoid

    @property
    def epsilon(self) -> float:
        """What is added to the square of a length, of which ONNX Runtime's text says nothing."""
        return 1e-6 if self.gate == "sigmoid" else 1e-12

    def parts(self, form: AttentionForm, x: Value) -> list[Value]:
        """Split X into q, k, v, the decay, beta, a_log and dt_bias, as they are given."""
        given = sum(form.widths)
        return [*form.parts(x[..., :given]), x[..., given : given + 1], x[..., given + 1 :]]

    def activated(self, form: AttentionForm, numbers: Arithmetic, x: Value) -> list[Value]:
        """Return q, k, v, the decay and beta that the step takes."""
        q, k, v, decay, beta, a_log, dt_bias = self.parts(form, x)
        if self.normalises:
            squares = ((each * each).sum(axis=-1)[..., None] for each in (q, k))
            q, k = (
                each / numbers.sqrt(square + self.epsilon)
                for each, square in zip((q, k), squares, strict=True)
            )
        if self.gate == "softplus":
            decay = -numbers.exp(a_log) * numbers.softplus(decay + dt_bias)
        if self.gate == "sigmoid":
            decay = self.bound * numbers.sigmoid(numbers.exp(a_log) * (decay + dt_bias))
        if self.activates_beta:
            beta = numbers.sigmoid(beta)
        return [q, k, v, decay, beta]


class ProjectedForm(NamedTuple):
    """The form of an LSTM whose hidden state may be a projection: its gates and its bounds."""

    coupled: bool = False  # whether the input gate is 1 - ft
    cell_clip: float = 0.0  # the bound of the cell state; 0: none
    projection_clip: float = 0.0  # the bound of a projected hidden state; 0: none


# A NamedTuple, because keys of prepared calls hash and compare it at every call.
class CellOptions(NamedTuple):
    """The options of a cell: which line holds where its equations have several.

    Whatever tells recurrences apart, or copies one, takes the whole record. Each option is named
    after the attribute that sets it, or by the reading that does (`Reading.option`); the default is
    False.

    Attributes:
        input_forget: LSTM: the forget gate is 1 - it.
        linear_before_reset: GRU: reset after the linear transformation.
        peephole_previous: LSTM: Po multiplies Ct-1 instead of Ct.
        levels: which states and gates of a quantised unit are rounded to levels; None if none are.
            The evaluation rounds, not the equations.
        silu: convolution: its sum is activated by silu.
        unrounded_sum: convolution: its sum is not rounded before that.
        gap: convolution: the steps between those of two taps that follow each other.
        rounded_states: states are rounded to their type after each step, not only after the last.
        attention: linear attention: its form; None of other cells.
        token: linear attention: what is made of its tokens; None if nothing is.
        integers: integer LSTM: its scales and readings; None of other cells.
        projected: LSTM with a projection: its form; None of other cells.
    """

    input_forget: bool = False
    linear_before_reset: bool = False
    peephole_previous: bool = False
    levels: InnerLevels | None = None
    silu: bool = False
    unrounded_sum: bool = False
    gap: int = 0
    rounded_states: bool = False
    attention: AttentionForm | None = None
    token: TokenForm | None = None
    integers: IntegerForm | None = None
    projected: ProjectedForm | None = None

    def parts(self, x: Value) -> list[Value]:
        """Split X of a linear attention into q, k, v, the decay and beta, as they are given."""
        assert self.attention is not None
        given = self.token.parts(self.attention, x) if self.token else self.attention.parts(x)
        return given[:5]


NO_OPTIONS = CellOptions()
# The options that every backend evaluates. A kernel says which others it does, see `beyond`.
COMMON_OPTIONS = frozenset({"input_forget", "linear_before_reset"})


@cache
def beyond(options: CellOptions, known: frozenset[str]) -> tuple[str, ...]:
    """Return the options that are set, but that a kernel with the known ones would ignore."""
    named = zip(options._fields, options, strict=True)
    return tuple(name for name, is_set in named if is_set and name not in known)


# Never modified. Not frozen, for the same reason as `Recurrence`.
@dataclass(slots=True, kw_only=True, eq=False)
class Parameters:
    """The parameters of a step in one direction: everything but Xt and the states."""

    # (state [N, H], gates) -> state*(R^T) of each of those gates, [gates, N, H]
    R: Callable[..., Value]
    f: Callable[[Value], Value]  # the gates' activation, after clipping
    # the cell's (LSTM) or hidden gate's (GRU) activation, after clipping
    g: Callable[[Value], Value]
    # the LSTM's hidden activation, after clipping where the reading clip-scope says so
    h: Callable[[Value], Value]
    # (z, h, H) -> (1 - z) (.) h + z (.) H, in the form that suits the arithmetic
    blend: Callable[[Value, Value, Value], Value]
    P: Value | None = None  # peephole weights [3, H], gates i, o, f; or None
    Rbh: Value = 0  # recurrent bias [H] of the GRU's hidden gate; 0 where it is already in `x`
    options: CellOptions = NO_OPTIONS  # the lines that hold
    numbers: Arithmetic | None = None  # the functions of cells without letters for them
    W: Value | None = None  # the weights of a cell that does not project inputs, gates first
    scale: Value = 1  # the factor of a linear attention's outputs
    integers: IntegerKernel | None = None  # the arithmetic of an integer LSTM
    # Xt -> Xt*(W^T) + Wb of each gate [gates, N, H], of a cell that sees X itself
    x: Callable[[Value], Value] | None = None
    # a projected LSTM's o (.) h(C) -> its product with the projection, and its bias; None without
    project: Callable[[Value], Value] | None = None


def rnn_step(p: Parameters, x: Value, states: States) -> States:
    """Advance an RNN by one time step.

    Ht = f(Xt*(Wi^T) + Ht-1*(Ri^T) + Wbi + Rbi)
    """
    (H,) = states
    (i,) = x + p.R(H)
    return (p.f(i),)


def gru_step(p: Parameters, x: Value, states: States) -> States:
    """Advance a GRU by one time step.

    zt = f(Xt*(Wz^T) + Ht-1*(Rz^T) + Wbz + Rbz)
    rt = f(Xt*(Wr^T) + Ht-1*(Rr^T) + Wbr + Rbr)
    ht = g(Xt*(Wh^T) + (rt (.) Ht-1)*(Rh^T) + Rbh + Wbh)        when linear_before_reset = 0
    ht = g(Xt*(Wh^T) + (rt (.) (Ht-1*(Rh^T) + Rbh)) + Wbh)      when linear_before_reset != 0
    Ht = (1 - zt) (.) ht + zt (.) Ht-1
    """
    (H,) = states
    if p.options.linear_before_reset:
        product = p.R(H)
        z, r = p.f(x[:2] + product[:2])
        h = p.g(x[2] + r * (product[2] + p.Rbh))
    else:
        z, r = p.f(x[:2] + p.R(H, slice(0, 2)))
        h = p.g(x[2] + p.R(r * H, slice(2, 3))[0])
    return (p.blend(z, h, H),)


def lstm_step(p: Parameters, x: Value, states: States) -> States:
    """Advance an LSTM by one time step.

    it = f(Xt*(Wi^T) + Ht-1*(Ri^T) + Pi (.) Ct-1 + Wbi + Rbi)
    ft = f(Xt*(Wf^T) + Ht-1*(Rf^T) + Pf (.) Ct-1 + Wbf + Rbf)   or 1 - it with input_forget
    ct = g(Xt*(Wc^T) + Ht-1*(Rc^T) + Wbc + Rbc)
    Ct = ft (.) Ct-1 + it (.) ct
    ot = f(Xt*(Wo^T) + Ht-1*(Ro^T) + Po (.) Ct + Wbo + Rbo)     or Ct-1 with peephole-o=previous
    Ht = ot (.) h(Ct)
    """
    H, C = states
    i, o, f, c = x + p.R(H)
    Pi, Po, Pf = (None, None, None) if p.P is None else p.P
    i = p.f(_peep(i, Pi, C))
    f = 1 - i if p.options.input_forget else p.f(_peep(f, Pf, C))
    before, C = C, f * C + i * p.g(c)
    o = p.f(_peep(o, Po, before if p.options.peephole_previous else C))
    return o * p.h(C), C


def _peep(gate: Value, P: Value | None, C: Value) -> Value:
    """Add P (.) C. An absent P adds nothing at all: 0 times an infinite cell would be NaN."""
    return gate if P is None else gate + P * C


def attention_step(p: Parameters, x: Value, states: States) -> States:
    """Advance a linear attention by one time step.

    St = diag(exp(gt)) St-1          or St-1 without a decay
    ut = bt (vt - (St^T) kt)         or vt without beta
    St = St + kt (ut^T)
    ot = scale (St^T) qt             for each q of the group
    where GatedDeltaNet may have made qt/|qt|, kt/|kt|, sigmoid(bt), and for gt
    -exp(A) softplus(gt + d) or bound sigmoid(exp(A) (gt + d))
    """
    _, S = states
    form, token, numbers = p.options.attention, p.options.token, p.numbers
    assert form is not None
    assert numbers is not None
    q, k, v, decay, beta = token.activated(form, numbers, x) if token else form.parts(x)
    if form.decays:
        S = numbers.exp(decay)[..., None] * S
    if form.has_beta:
        v = beta * (v - (k[..., None, :] @ S)[..., 0, :])
    S = S + k[..., None] * v[..., None, :]
    o = p.scale * (q @ S)
    return o.reshape(*o.shape[:-2], form.group * form.value_size), S


def convolution_step(p: Parameters, x: Value, states: States) -> States:
    """Advance a causal depthwise convolution of k taps by one time step.

    at = Wb + W0 (.) Xt-(k-1)d + ... + Wk-2 (.) Xt-d + Wk-1 (.) Xt     d is the dilation, or 1
    yt = at (.) sigmoid(at)          with silu, or at
    """
    _, window = states
    assert p.W is not None
    window = np.concatenate([window, x[..., None]], axis=-1)
    a = (p.W * window[..., :: 1 + p.options.gap]).sum(axis=-1) + p.Rbh
    return p.f(a), window[..., 1:]


def integer_lstm_step(p: Parameters, x: Value, states: States) -> States:
    """Advance an integer LSTM by one time step.

    it, ft, ot = sigmoid(S(S(Xt*(W^T) + Wb) + S((Ht-1 - zh)*(R^T))))      of the gates i, f and o
    gt = tanh(S(S(Xt*(Wc^T) + Wbc) + S((Ht-1 - zh)*(Rc^T))))
    Ct = clip(S(S(ft (.) Ct-1) + S(it (.) gt)))
    Ht = S(ot (.) tanh(Ct) + zh)
    where S rounds a real number to units of its scale and saturates it; Xt lacks its zero point
    """
    kernel = p.integers
    assert kernel is not None
    H, C = (state.astype(np.int64) for state in states)
    i, f, c, o = kernel.arguments(x, H)
    i, f, o = p.f(np.stack([i, f, o]))
    C = kernel.cell(f, C, i, p.g(c))
    H = kernel.hidden(o, p.h(C))
    return H.astype(np.float64), C.astype(np.float64)


def projected_lstm_step(p: Parameters, x: Value, states: States) -> States:
    """Advance an LSTM whose hidden state may be a projection by one time step.

    it = f(Xt*(Wi^T) + Ht-1*(Ri^T) + Pi (.) Ct-1 + Wbi)         or 1 - ft where it is coupled
    ft = f(Xt*(Wf^T) + Ht-1*(Rf^T) + Pf (.) Ct-1 + Wbf)
    ct = g(Xt*(Wc^T) + Ht-1*(Rc^T) + Wbc)
    Ct = clip(ft (.) Ct-1 + it (.) ct, cell_clip)
    ot = f(Xt*(Wo^T) + Ht-1*(Ro^T) + Po (.) Ct + Wbo)
    mt = ot (.) h(Ct)
    Ht = clip(mt*(Wp^T) + Wbp, projection_clip)                 or mt without a projection
    """
    form, numbers = p.options.projected, p.numbers
    assert form is not None
    assert numbers is not None
    assert p.x is not None

    def clip(values: Value, bound: float) -> Value:
        return numbers.maximum(numbers.minimum(values, bound), -bound) if bound else values

    H, C = states
    i, o, f, c = p.x(x) + p.R(H)
    Pi, Po, Pf = (None, None, None) if p.P is None else p.P
    f = p.f(_peep(f, Pf, C))
    i = 1 - f if form.coupled else p.f(_peep(i, Pi, C))
    C = clip(f * C + i * p.g(c), form.cell_clip)
    m = p.f(_peep(o, Po, C)) * p.h(C)
    return m if p.project is None else clip(p.project(m), form.projection_clip), C


def placed(Wb: Value | None, Rb: Value | None, options: CellOptions) -> tuple[Value, Value]:
    """Return the bias added to Xt*(W^T) of each gate, and the Rbh of `Parameters`; None if absent.

    Args:
        Wb: the input biases, gates first.
        Rb: the recurrent biases, gates first.
        options: whether a GRU resets after the linear transformation.
    """
    if Rb is None or not options.linear_before_reset:
        return (Wb if Rb is None else Rb if Wb is None else Wb + Rb), None
    bias = np.zeros_like(Rb) if Wb is None else Wb.copy()
    bias[:2] += Rb[:2]
    return bias, Rb[2]


@dataclass(frozen=True, slots=True)
class Cell:
    """A kind of recurrent cell."""

    name: str
    # the canonical order of the gates along axis 1 of W, R and the biases, a letter each
    gates: str
    states: int  # the number of states: 1 (H) or 2 (H and C)
    activations: str  # the letters of its activation functions, in order
    defaults: tuple[str, ...]  # the default activation of each letter
    step: Callable[[Parameters, Value, States], States]  # the equations
    # whether X is multiplied by W for each gate, and R by the first state, before the step; a cell
    # that does not sees X itself, and its first state is its output, which no step reads
    projects: bool = True
    of_integers: bool = False  # whether all its tensors are integers, which have no tolerance

    @property
    def equations(self) -> str:
        """The specification's lines."""
        text = inspect.getdoc(self.step) or ""
        return text.partition("\n\n")[2]


CELLS: Mapping[str, Cell] = {
    cell.name: cell
    for cell in (
        Cell("RNN", gates="i", states=1, activations="f", defaults=("Tanh",), step=rnn_step),
        Cell(
            "GRU",
            gates="zrh",
            states=1,
            activations="fg",
            defaults=("Sigmoid", "Tanh"),
            step=gru_step,
        ),
        Cell(
            "LSTM",
            gates="iofc",
            states=2,
            activations="fgh",
            defaults=("Sigmoid", "Tanh", "Tanh"),
            step=lstm_step,
        ),
        Cell(
            "LinearAttention",
            gates="",
            states=2,
            activations="",
            defaults=(),
            step=attention_step,
            projects=False,
        ),
        Cell(
            "CausalConv",
            gates="w",
            states=2,
            activations="",
            defaults=(),
            step=convolution_step,
            projects=False,
        ),
        Cell(
            "IntegerLSTM",
            gates="ifco",
            states=2,
            activations="",
            defaults=(),
            step=integer_lstm_step,
            projects=False,
            of_integers=True,
        ),
        Cell(
            "ProjectedLSTM",
            gates="iofc",
            states=2,
            activations="fgh",
            defaults=("Sigmoid", "Tanh", "Tanh"),
            step=projected_lstm_step,
            projects=False,
        ),
    )
}
