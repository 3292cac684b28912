"""What a kernel reads and writes of a recurrence, by the names that its author has for it.

Each kind of plain kernel has a call, which also says as what functions the parts of its text run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants import words_of_edits, words_of_integers
from rnncli.mutants.equivalence import is_same, lengths_of
from rnncli.mutants.words_of_edits import ABSENT, MATH
from rnncli.mutants.words_of_integers import NUMBERS
from rnncli.numerics import round_to
from rnncli.recurrence import integers
from rnncli.recurrence.cells import CellOptions, TokenForm
from rnncli.recurrence.integers import Scaled
from rnncli.recurrence.recurrence import Direction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.numerics import Array
    from rnncli.recurrence.cells import Parameters, States
    from rnncli.recurrence.integers import IntegerForm, IntegerKernel
    from rnncli.recurrence.recurrence import Recurrence

READING, PREPARING, STEPPING, WRITING = "Reading", "Preparing", "Stepping", "Writing"
PARTS = (READING, PREPARING, STEPPING, WRITING)
FIELDS = (
    *("X", "W", "R", "Wb", "Rb", "P", "lengths"),
    *("directions", "activations", "clip", "clip_hidden", "keep_initial"),
)
STARTS = ("initial_h", "initial_c")
READ = (*FIELDS, *STARTS, *CellOptions._fields)
OUTPUTS = ("Y", "Y_h", "Y_c")
_READING = """\
def function(r):
    {lines}
    return locals()
"""


class KernelCall:
    """What a kernel of a gated cell reads: the names of a recurrence.

    What is not given is `ABSENT`.
    """

    kernel = "kernel.txt", "kernel"  # the text of its plain kernel, and the function there
    words: Mapping[str, Any] = vars(words_of_edits)  # what it may say
    # the modules of words that no specification has, which is printed with the kernel
    spelled: tuple[str, ...] = ()
    # part of the kernel -> the function that its lines become
    frames: Mapping[str, str] = {
        READING: _READING,
        STEPPING: """\
def function(r):
    def step(p, x, states):
        functions, times, peepholes, Rbh = (p.f, p.g, p.h), p.R, p.P, p.Rbh
        {options} = {values}
        {lines}
        return new
    return step
""",
        WRITING: """\
def function(Y, Y_h, Y_c, steps, reverse, live, initial_h, initial_c, state_at):
    (T, D, N, H), written = Y.shape, SimpleNamespace()
    {lines}
    return vars(written)
""",
    }

    def __init__(self, recurrence: Recurrence) -> None:
        self._recurrence = recurrence

    def __getattr__(self, name: str) -> Any:
        r = self._recurrence
        if name in STARTS:
            found = r.initial[STARTS.index(name)]
        else:
            found = getattr(r.options if name in CellOptions._fields else r, name)
        vars(self)[name] = ABSENT if found is None else found
        return vars(self)[name]

    @property
    def sizes(self) -> tuple[int, ...]:
        """T, N, I, D, G and H."""
        return (*self._recurrence.X.shape, *self._recurrence.W.shape[:3])

    @property
    def steps(self) -> Array:
        """The number of steps of each sequence [N], also where no lengths are given."""
        return lengths_of(self._recurrence)

    def reading(self, values: Mapping[str, Any]) -> Recurrence:
        """Return the recurrence of a kernel that reads some names otherwise."""
        r = self._recurrence
        changed = {
            name: _as_field(name, value)
            for name, value in values.items()
            if name in READ and value is not getattr(self, name)
        }
        if not changed.keys().isdisjoint(STARTS):
            starts = (changed.pop(k, v) for k, v in zip(STARTS, r.initial, strict=False))
            changed["initial"] = tuple(starts)
        options = {k: changed.pop(k) for k in CellOptions._fields if k in changed}
        if options:
            changed["options"] = r.options._replace(**options)
        return replace(r, **changed) if changed else r

    def writing(self, function: Callable[..., Any], Y: Array, last: States) -> tuple[Array, States]:
        """Return what a kernel writes of right results by a function, that of its lines."""
        r = self._recurrence
        reverse = np.array([d is Direction.REVERSE for d in r.directions])[:, None]
        steps, T = lengths_of(r), len(Y)
        starts = [
            np.zeros_like(state) if given is None else given.astype(state.dtype)
            for given, state in zip(r.initial, last, strict=True)
        ]

        def state_at(t: Array) -> Array:
            """H after step t of each direction and sequence, or before the first."""
            if not T:
                return np.asarray(last[0])
            index = np.broadcast_to(np.maximum(t, 0), last[0].shape[:2])[None, :, :, None]
            found = np.where((t >= 0)[..., None], np.take_along_axis(Y, index, 0)[0], starts[0])
            return np.asarray(np.where((steps > 0)[:, None], found, last[0]))

        found = function(
            *(Y, last[0], last[-1], steps, reverse),
            (np.arange(T)[:, None] < steps)[:, None, :, None],
            *(starts[0], starts[-1], state_at),
        )
        names = OUTPUTS[: 1 + len(last)]
        made = [np.asarray(found[name]).astype(Y.dtype, copy=False) for name in names]
        return made[0], tuple(made[1:])


def _as_field(name: str, value: Any) -> Any:
    """Return a field of a recurrence as it has it."""
    if value is ABSENT or value is None:
        return None
    if name == "lengths":
        return np.asarray(value, np.int64)
    if name == "activations":
        return tuple(map(tuple, value))
    if name == "directions":
        return tuple(value)
    return float(value) if name == "clip" else value


class LinearCall(KernelCall):
    """A call of an operator whose state is a tensor of its own beside what it returns."""

    def results(self, outputs: Array, state: Array) -> tuple[Array, States]:
        """Return outputs and a state, as the kernel has them, as results of the recurrence."""
        raise NotImplementedError

    def of_results(self, Y: Array, last: States) -> tuple[Array, Array]:
        """Return results of the recurrence as outputs and a state, as the kernel has them."""
        raise NotImplementedError

    def written(self, outputs: Any, state: Any, like: States) -> tuple[Array, States]:
        """Return what is written as results of the recurrence, of the types of right ones."""
        Y, last = self.results(np.asarray(outputs), np.asarray(state))
        pairs = zip(last, like, strict=True)
        return Y.astype(like[0].dtype), tuple(one.astype(other.dtype) for one, other in pairs)

    def writing(self, function: Callable[..., Any], Y: Array, last: States) -> tuple[Array, States]:
        """Return what a kernel writes of right results by a function, that of its lines."""
        with np.errstate(all="ignore"):
            found = function(self, *self.of_results(Y, last))
        return self.written(found["output"], found["present_state"], last)


class AttentionCall(LinearCall):
    """What a kernel of LinearAttention reads: the tensors of the node."""

    kernel = "linear_kernel.txt", "linear_attention"
    frames: Mapping[str, str] = {
        READING: _READING,
        STEPPING: """\
def function(r):
    def step(p, x, states):
        (_, S), scale, token = states, p.scale, token_of(p.options, x)
        exp, sqrt, sigmoid, tanh = p.numbers.exp, p.numbers.sqrt, p.numbers.sigmoid, p.numbers.tanh
        made, softplus = p.options.token or NO_TOKEN_FORM, p.numbers.softplus
        normalises, gate, bound, activates = made
        epsilon, (a_log, dt_bias) = made.epsilon, made.parts(p.options.attention, x)[5:]
        minimum, maximum, (dk, dv) = p.numbers.minimum, p.numbers.maximum, S.shape[-2:]
        {lines}
        return o.reshape(*o.shape[:-2], o.shape[-2] * o.shape[-1]), S
    return step
""",
        WRITING: """\
def function(r, outputs, S):
    N, T, K, group, dk, dv, rows, rates = r.sizes
    written, past, ends = SimpleNamespace(), r.past_state, r.steps
    {lines}
    return vars(written)
""",
    }

    @property
    def sizes(self) -> tuple[int, ...]:
        """N, T, K, group, dk, dv, the numbers of decay for a state, and those of beta."""
        form, (T, states, _) = self._recurrence.options.attention, self._recurrence.X.shape
        assert form is not None
        K = form.heads
        rates = 0 if not form.has_beta else 1 if form.shares_beta else K
        dims = (form.group, form.key_size, form.value_size, form.decays, rates)
        return (states // K, T, K, *dims)

    @property
    def steps(self) -> Array:
        """The number of steps of each sequence [N], also where no lengths are given."""
        K = max(self.sizes[2], 1)
        return lengths_of(self._recurrence)[::K]

    def __getattr__(self, name: str) -> Any:
        names = ("query", "key", "value", "decay", "beta")
        r, form = self._recurrence, self._recurrence.options.attention
        assert form is not None
        N, T, K, _, dk, dv, _, rates = self.sizes
        if name == "past_state":
            found = r.initial[1]
            return ABSENT if found is None else found.reshape(N, K, dk, dv)
        if name == "packed":
            return r.lengths is not None
        if name == "run_on":
            return states_run_on(r.plain, K)
        if name in names:
            part = r.options.parts(r.X)[names.index(name)]
            if not part.size and name in {"decay", "beta"} and not form.widths[names.index(name)]:
                return ABSENT
            packed = part.reshape(T, N, K * form.widths[names.index(name)]).swapaxes(0, 1)
            return packed[..., :1] if name == "beta" and rates == 1 else packed
        token = r.options.token or TokenForm()
        if name in {"a_log", "dt_bias"}:  # of each head [K, 1 or dk], the same at each step
            given = token.parts(form, r.X)[5 + (name == "dt_bias")]
            return given[0, :K] if given.size else ABSENT
        return getattr(token if name in {*TokenForm._fields, "epsilon"} else form, name)

    def reading(self, values: Mapping[str, Any]) -> Recurrence:
        """Return the recurrence of a kernel that reads some names otherwise."""
        r, form = self._recurrence, self._recurrence.options.attention
        assert form is not None
        N, T, K, *_ = self.sizes
        widths = zip(r.options.parts(r.X), form.widths, strict=True)
        parts = [part.reshape(T, N * K, width) for part, width in widths]
        parts.append(r.X[..., sum(form.widths) :])
        changed: dict[str, Any] = {}
        for k, name in enumerate(("queries", "keys", "values", "decays", "betas")):
            if (value := values.get(name, ABSENT)) is not ABSENT:
                of_heads = np.broadcast_to(value, (N, T, K, *value.shape[3:])).swapaxes(0, 1)
                parts[k] = of_heads.reshape(T, N * K, int(np.prod(value.shape[3:])))
                changed["X"] = parts
        if parts[3].shape[-1] != form.decays:
            changed["options"] = r.options._replace(
                attention=form._replace(decays=parts[3].shape[-1])
            )
        if "scale" in values:
            changed["options"] = r.options._replace(
                attention=form._replace(scale=float(values["scale"]))
            )
        if "past" in values:
            changed["initial"] = (None, _state_of(values["past"], r, 1))
        if "X" in changed:
            typed = [part.astype(r.X.dtype) for part in parts if part.shape[-1]]
            changed["X"] = np.concatenate(typed, axis=-1)
        return replace(r, **changed) if changed else r

    def results(self, outputs: Array, state: Array) -> tuple[Array, States]:
        """Return outputs [N, T, K*group*dv] and a state as results of the recurrence."""
        N, T, K, group, dk, dv, *_ = self.sizes
        of_heads = outputs.reshape(N, T, K, group * dv).swapaxes(0, 1)
        Y = np.ascontiguousarray(of_heads.reshape(T, N * K, group * dv)[:, None])
        first = np.zeros((1, N * K, group * dv), Y.dtype)
        if T:
            first[0] = Y[lengths_of(self._recurrence) - 1, 0, np.arange(N * K)]
        return Y, (first, state.reshape(1, N * K, dk, dv))

    def of_results(self, Y: Array, last: States) -> tuple[Array, Array]:
        """Return results as outputs [N, T, K, group, dv] and S [N, K, dk, dv]."""
        N, T, K, group, dk, dv, *_ = self.sizes
        outputs = Y[:, 0].reshape(T, N, K, group, dv).swapaxes(0, 1)
        return outputs, last[1].reshape(N, K, dk, dv)


def states_run_on(r: Recurrence, heads: int) -> Array:
    """Return the states before each packed sequence of a plain attention, which run on."""
    form, ends = r.options.attention, lengths_of(r)[::heads]
    assert form is not None
    _, k, v, decay, beta = form.parts(r.X.astype(np.float64))
    past = r.initial[1]
    S = np.zeros((heads, *r.widths[1])) if past is None else past[0, :heads].astype(np.float64)
    found = []
    for n, end in enumerate(ends):
        found.append(S)
        own = np.s_[n * heads : (n + 1) * heads]
        for t in range(end):
            kt, u = k[t, own], v[t, own]
            if form.decays:
                S = np.exp(decay[t, own])[..., None] * S
            if form.has_beta:
                u = beta[t, own] * (u - (kt[..., None, :] @ S)[..., 0, :])
            S = S + kt[..., None] * u[..., None, :]
    return np.stack([*found, S])


class ConvolutionCall(LinearCall):
    """What a kernel of CausalConvWithState reads: the tensors of the node."""

    kernel = "linear_kernel.txt", "causal_conv"
    frames: Mapping[str, str] = {
        READING: _READING,
        STEPPING: """\
def function(r):
    def step(p, x, states):
        (_, window), taps, bias, silu, activates = states, p.W, p.Rbh, p.f, p.options.silu
        w, dilation = taps.shape[-1], 1 + p.options.gap
        exp, sigmoid, tanh = p.numbers.exp, p.numbers.sigmoid, p.numbers.tanh
        minimum, maximum = p.numbers.minimum, p.numbers.maximum
        {lines}
        return y, window
    return step
""",
        WRITING: """\
def function(r, outputs, window):
    N, C, T, w, held = r.sizes
    written, past, X, ends = SimpleNamespace(), r.past_state, r.input, r.steps
    {lines}
    return vars(written)
""",
    }

    def silu(self, a: Array) -> Array:
        """Return x sigmoid(x) of a sum, which is rounded first unless a reading says otherwise."""
        r = self._recurrence
        if not r.options.unrounded_sum:
            a = round_to(a, r.dtype).astype(a.dtype)
        return np.asarray(a * MATH.sigmoid(a))

    @property
    def sizes(self) -> tuple[int, ...]:
        """N, C, T, w, and the steps that a state has."""
        (T, N, C), W = self._recurrence.X.shape, self._recurrence.W
        return N, C, T, W.shape[1], self._recurrence.widths[1][1]

    def __getattr__(self, name: str) -> Any:
        r = self._recurrence
        if name == "input":
            return np.moveaxis(r.X, 0, -1)
        if name == "weight":
            return np.moveaxis(r.W[0, :, :, 0], 0, -1)[:, None]
        if name == "bias":
            return ABSENT if r.Wb is None else r.Wb[0, 0]
        if name == "past_state":
            return ABSENT if r.initial[1] is None else r.initial[1][0]
        if name == "activation":
            return "silu" if r.options.silu else "none"
        if name == "dilation":
            return 1 + r.options.gap
        if name == "packed":
            return r.lengths is not None
        raise AttributeError(name)

    def reading(self, values: Mapping[str, Any]) -> Recurrence:
        """Return the recurrence of a kernel that reads some names otherwise."""
        r, changed = self._recurrence, dict[str, Any]()
        if "X" in values:
            changed["X"] = np.moveaxis(values["X"], -1, 0).astype(r.X.dtype)
        if "taps" in values:
            changed["W"] = np.moveaxis(values["taps"], -1, 0)[None, :, :, None].astype(r.W.dtype)
        if "bias" in values:
            bias = values["bias"]
            changed["Wb"] = None if bias is ABSENT else bias[None, None].astype(r.X.dtype)
        if "past" in values:
            changed["initial"] = (None, _state_of(values["past"], r, 1))
        if "activates" in values:
            changed["options"] = r.options._replace(silu=bool(values["activates"]))
        return replace(r, **changed) if changed else r

    def results(self, outputs: Array, state: Array) -> tuple[Array, States]:
        """Return outputs [N, C, T] and a window as results of the recurrence."""
        N, C, T, *_ = self.sizes
        Y = np.ascontiguousarray(np.moveaxis(outputs, -1, 0)[:, None])
        last = Y[self.steps - 1, 0, np.arange(N)] if T else np.zeros((N, C), Y.dtype)
        return Y, (last[None], state[None])

    def of_results(self, Y: Array, last: States) -> tuple[Array, Array]:
        """Return results as outputs [N, C, T] and a window."""
        return np.moveaxis(Y[:, 0], 0, -1), last[1][0]


class IntegerCall(KernelCall):
    """What a kernel of TFLite's integer LSTM reads: tensors, scales and zero points of the node."""

    kernel = "integer_kernel.txt", "integer_lstm"
    words = vars(words_of_integers)
    spelled = words_of_integers.__name__, integers.__name__
    # Kernels prepare once what they need of weights and scales, and step with that.
    frames: Mapping[str, str] = {
        READING: _READING,
        STEPPING: """\
def function(call):
    def prepared(r):
        {reading}
        {preparing}
        def stepped(x, h, c):
            {lines}
            return wrapped(h, bits), wrapped(c)
        return zx, stepped
    return call.stepping(prepared)
""",
        WRITING: """\
def function(r, y, h, c):
    written, h_0, c_0 = SimpleNamespace(), r.output_state, r.cell_state
    zh, bits = r.output_state_zero_point, r.bits
    {lines}
    return vars(written)
""",
    }

    def __getattr__(self, name: str) -> Any:
        r = self._recurrence
        form, initial = r.options.integers, zip(_STATES, r.initial, strict=True)
        assert form is not None
        if name == "input":
            return r.X.astype(np.int64) + form.inputs.zero_point
        for own, state in initial:
            if own == name:  # of one direction
                given = np.zeros(r.X.shape[1:2] + r.W.shape[2:3]) if state is None else state[0]
                return given.astype(np.int64)
        if name in _PARAMETERS:
            return getattr(r, _PARAMETERS[name])[0].astype(np.int64)
        return _of_form(form, name)

    def stepping(self, prepared: Callable[[Any], Any]) -> Callable[..., States]:
        """Return a step of the equations that a kernel prepares from what it reads.

        A step knows of its tensors and scales by its parameters, which others may have changed.
        """
        known: dict[int, Any] = {}

        def step(p: Parameters, x: Any, states: States) -> States:
            assert p.integers is not None
            if id(p.integers) not in known:
                known.clear()
                known[id(p.integers)] = (p.integers, *prepared(_Prepared(p.integers)))
            _, zx, stepped = known[id(p.integers)]
            h, c = stepped(x.astype(np.int64) + zx, *(s.astype(np.int64) for s in states))
            return h.astype(np.float64), c.astype(np.float64)

        return step

    def reading(self, values: Mapping[str, Any]) -> Recurrence:
        """Return the recurrence of a kernel that reads some names otherwise."""
        r, form = self._recurrence, self._recurrence.options.integers
        assert form is not None
        new = {name: values.get(name, getattr(self, own)) for name, own in _NAMES.items()}
        tensors: dict[str, Any] = {
            field: _fitting(new[name][None], getattr(r, field))
            for name, field in (("W", "W"), ("R", "R"), ("bias", "Wb"))
            if name in values
        }
        if not values.keys().isdisjoint({"X", "zx"}):
            tensors["X"] = _fitting(new["X"] - new["zx"], r.X)
        if not values.keys().isdisjoint({"h", "c"}):
            pairs = zip((new["h"], new["c"]), r.dtypes, strict=True)
            tensors["initial"] = tuple(state[None].astype(dtype.numpy) for state, dtype in pairs)
        form = form._replace(
            inputs=Scaled(new["sx"], new["zx"]),
            hidden=Scaled(new["sh"], new["zh"]),
            input_scales=tuple(new["sw"]),
            recurrent_scales=tuple(new["sr"]),
            cell_scale=new["sc"],
            clip=new["clip"],
        )
        options = r.options._replace(integers=form)
        if is_same(r, changed := replace(r, options=options, **tensors)):
            return r
        # What its other numbers make leave int32 is no reason to refuse them.
        return replace(changed, options=options._replace(integers=form._replace(wraps=True)))

    def writing(self, function: Callable[..., Any], Y: Array, last: States) -> tuple[Array, States]:
        """Return what a kernel writes of right results by a function, that of its lines."""
        given = (Y[:, 0], *(state[0] for state in last))
        found = function(self, *(each.astype(np.int64) for each in given))
        names = ("output", "final_output_state", "final_cell_state")
        y, *states = (
            np.asarray(found[name]).astype(like.dtype)
            for name, like in zip(names, (Y, *last), strict=True)
        )
        return y[:, None], tuple(state[None] for state in states)


class ProjectedCall(KernelCall):
    """What a kernel of TFLite's float LSTM reads: the tensors and the bounds of the node."""

    kernel = "projected_kernel.txt", "projected_lstm"
    frames: Mapping[str, str] = {
        READING: _READING,
        STEPPING: """\
def function(r):
    def step(p, x, states):
        (h, c), form, (sigmoid, tanh) = states, p.options.projected, (p.f, p.h)
        products, times, project, peepholes = p.x, p.R, p.project, p.P
        coupled, cell_clip, proj_clip = form
        minimum, maximum = p.numbers.minimum, p.numbers.maximum
        bounded = lambda values, bound: maximum(minimum(values, bound), -bound)
        {lines}
        return h, c
    return step
""",
        WRITING: """\
def function(r, y, h, c):
    written, h_0, c_0 = SimpleNamespace(), r.output_state, r.cell_state
    {lines}
    return vars(written)
""",
    }

    def __getattr__(self, name: str) -> Any:
        r = self._recurrence
        form = r.options.projected
        assert form is not None
        O, H = (width for (width,) in r.widths)  # noqa: E741 -- as of the operator's sizes
        states = {"output_state": (0, O), "cell_state": (1, H)}
        if name in states:
            which, width = states[name]
            given = r.initial[which]
            return np.zeros((r.X.shape[1], width), r.X.dtype) if given is None else given[0]
        if name in _PROJECTED:
            field, index = _PROJECTED[name]
            values = getattr(r, field)
            if values is None:
                return None if field == "P" else ABSENT
            return values[index]
        return dict(zip(_OF_FORM, form, strict=True))[name]

    def reading(self, values: Mapping[str, Any]) -> Recurrence:
        """Return the recurrence of a kernel that reads some names otherwise."""
        r, form = self._recurrence, self._recurrence.options.projected
        assert form is not None
        changed: dict[str, Any] = {}
        for name, field in (("W", "W"), ("R", "R"), ("bias", "Wb"), ("peepholes", "P")):
            if name in values and values[name] is not None:
                changed[field] = np.asarray(values[name])[None].astype(r.X.dtype)
        if "X" in values:
            changed["X"] = values["X"].astype(r.X.dtype)
        if not values.keys().isdisjoint({"h", "c"}):
            pairs = (values.get(n, getattr(self, of)) for n, of in (("h", _H), ("c", _C)))
            changed["initial"] = tuple(state[None].astype(r.X.dtype) for state in pairs)
        parts = [values.get(n, getattr(self, of)) for n, of in (("Wp", _WP), ("bp", _BP))]
        if r.projection is not None and not values.keys().isdisjoint({"Wp", "bp"}):
            weights, bias = parts
            both = np.concatenate([weights, bias[:, None]], axis=-1)
            changed["projection"] = both[None].astype(r.X.dtype)
        own = (values.get(name, getattr(self, name)) for name in _OF_FORM)
        options = r.options._replace(projected=type(form)(*own))
        other = replace(r, options=options, **changed)
        return r if is_same(r, other) else other

    def writing(self, function: Callable[..., Any], Y: Array, last: States) -> tuple[Array, States]:
        """Return what a kernel writes of right results by a function, that of its lines."""
        found = function(self, Y[:, 0], *(state[0] for state in last))
        names = ("output", "final_output_state", "final_cell_state")
        y, *states = (np.asarray(found[name]).astype(Y.dtype) for name in names)
        return y[:, None], tuple(state[None] for state in states)


_OF_FORM = ("coupled", "cell_clip", "proj_clip")
# Name of an operator of a projected LSTM -> the field that has it, and where.
_H, _C, _WP, _BP = "output_state", "cell_state", "projection_weights", "projection_bias"
_PROJECTED: Mapping[str, tuple[str, Any]] = {
    "input": ("X", ...),
    "input_weights": ("W", 0),
    "recurrent_weights": ("R", 0),
    "biases": ("Wb", 0),
    "peepholes": ("P", 0),
    _WP: ("projection", np.s_[0, :, :-1]),
    _BP: ("projection", np.s_[0, :, -1]),
}
# Name of the operator -> of the recurrence; and name in the kernel -> of the operator.
_PARAMETERS = {"input_weights": "W", "recurrent_weights": "R", "biases": "Wb"}
_STATES = ("output_state", "cell_state")
_NAMES = {
    "X": "input",
    "h": "output_state",
    "c": "cell_state",
    "W": "input_weights",
    "R": "recurrent_weights",
    "bias": "biases",
    "sx": "input_scale",
    "zx": "input_zero_point",
    "sh": "output_state_scale",
    "zh": "output_state_zero_point",
    "sw": "input_weight_scales",
    "sr": "recurrent_weight_scales",
    "sc": "cell_state_scale",
    "clip": "cell_clip",
}


def _of_form(form: IntegerForm, name: str) -> Any:
    """Return an attribute of the operator, or a reading."""
    made_in = NUMBERS["float32" if form.reads("hidden-scale") == "intermediate" else "float64"]
    own = {
        "bits": form.bits,
        "input_scale": form.inputs.scale,
        "input_zero_point": form.inputs.zero_point,
        "output_state_scale": form.hidden.scale,
        "output_state_zero_point": form.hidden.zero_point,
        "hidden_scale": made_in(form.made.scale),
        "hidden_zero_point": form.made.zero_point,
        "input_weight_scales": form.input_scales,
        "recurrent_weight_scales": form.recurrent_scales,
        "cell_state_scale": form.cell_scale,
        "cell_clip": form.clip,
    }
    return own[name] if name in own else form.reads(name.replace("_", "-"))


class _Prepared:
    """What a kernel reads of the parameters of a step; sequences and states come later."""

    input = output_state = cell_state = None

    def __init__(self, kernel: IntegerKernel) -> None:
        self._form = kernel.form
        W, R = kernel.weights
        bias = np.zeros(1) if kernel.biases is None else kernel.biases[..., 0, :]
        self.input_weights, self.recurrent_weights, self.biases = (
            each.astype(np.int64) for each in (W, R, bias)
        )

    def __getattr__(self, name: str) -> Any:
        return _of_form(self._form, name)


def _fitting(values: Array, like: Array) -> Array:
    """Return integers in the type of others, if they fit it."""
    own = values.astype(like.dtype)
    return own if (own == values).all() else values


def _state_of(state: Any, r: Recurrence, which: int) -> Array | None:
    """Return an initial state as a recurrence has it."""
    if state is ABSENT:
        return None
    dtype = r.dtypes[which].numpy
    return np.asarray(state).astype(dtype).reshape(1, r.X.shape[1], *r.widths[which])


_CALLS: Mapping[str, type[KernelCall]] = {
    "LinearAttention": AttentionCall,
    "CausalConv": ConvolutionCall,
    "IntegerLSTM": IntegerCall,
    "ProjectedLSTM": ProjectedCall,
}


def call_of(cell: str) -> type[KernelCall]:
    """Return the kind of call of a cell's kernel."""
    return _CALLS.get(cell, KernelCall)
