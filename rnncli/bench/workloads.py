"""Workloads to measure: built-in ones, and any target of `rnncli run`, with their least cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rnncli.cases.case import Case
from rnncli.cases.config.config import parse_config
from rnncli.cases.library import target_names
from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.judging.tolerances.tolerance import Tolerance
from rnncli.models.model import Model
from rnncli.packs.conversion import with_model
from rnncli.packs.record import record_of_node
from rnncli.packs.vector import Answers, Vector
from rnncli.running.execution import execute
from rnncli.running.model_vector import vector_of_run
from rnncli.running.request import Request
from rnncli.running.target import cases_of, load_target, short_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rnncli.files.formats.format import Tensors


class Cost(NamedTuple):
    """Lower bounds on the cost of an evaluation; None if unknown."""

    # multiplications and additions of the matrix products; activations are not counted
    flops: int | None
    # bytes read or written: every input and output once, and the recurrent weights again in
    # each further step, be it from memory or from a cache
    moved: int | None
    held: int | None  # bytes of inputs, outputs and the input projection of all steps
    given: int | None  # bytes of the inputs, which exist beforehand


UNKNOWN = Cost(None, None, None, None)


def cost_of(case: Case, outputs: Tensors) -> Cost:
    """Return the cost of one operator, without the operations, but with the bytes, of padding.

    A linear recurrence reads and writes its state once, and holds nothing besides.
    """
    sizes, width = case.sizes, case.dtype.numpy.itemsize
    given = sum(values.nbytes for values in case.inputs.values())
    tensors = given + sum(values.nbytes for values in outputs.values())
    T, B = sizes["seq_length"], sizes["batch_size"]
    if not case.operator.cell.projects:
        terms = sizes.get("kernel_size", 0) * sizes.get("channels", 0)
        if "key_size" in sizes:
            reads = sizes["q_num_heads"] + sizes["kv_num_heads"] * (1 + ("beta" in case.inputs))
            terms = reads * sizes["key_size"] * sizes["value_size"]
        return Cost(flops=2 * T * B * terms, moved=tensors, held=tensors, given=given)
    I, H = sizes["input_size"], sizes["hidden_size"]  # noqa: E741 -- the specification's letter
    D = len(case.node.directions)
    G = len(case.operator.gates)
    lengths = [row.name for row in case.operator.inputs if row.role == "lengths"]
    told = [case.inputs[name] for name in lengths if name in case.inputs]
    live = int(told[0].sum()) if told else T * B
    return Cost(
        flops=2 * live * D * G * H * (I + H),
        moved=tensors + max(T - 1, 0) * D * G * H * H * width,
        held=tensors + T * B * D * G * H * width,
        given=given,
    )


class Sizes(NamedTuple):
    """The sizes of a workload: T steps, B sequences, I inputs, H units."""

    T: int
    B: int
    I: int  # noqa: E741 -- the specification's letter
    H: int


WORKLOADS: Mapping[str, Sizes] = {
    "tiny": Sizes(5, 2, 3, 4),
    "small": Sizes(32, 4, 32, 64),
    "medium": Sizes(100, 16, 128, 256),
    "large": Sizes(128, 64, 512, 512),
    "long": Sizes(2000, 1, 80, 256),
    "xl": Sizes(64, 32, 1024, 1024),
}
# Type -> its attributes. This form of the GRU is the only one that all runtimes support.
OPERATORS: Mapping[str, str] = {"LSTM": "{}", "GRU": "{linear_before_reset: 1}", "RNN": "{}"}
# The oldest opset with a dtype is the one that most runtimes support.
OPSETS: Mapping[str, int] = {"float32": 14, "float64": 14, "float16": 14, "bfloat16": 22}

# Linear recurrences, with a single token and with a prompt.
ATTENTION = """\
op: LinearAttention-27
sizes: {{seq_length: {T}, batch_size: {B}, q_num_heads: 32, kv_num_heads: 32, key_size: 128, \
  value_size: 128}}
dtype: {dtype}
seed: {seed}
attributes: {{update_rule: gated_delta}}
inputs:
  query: normal
  key: {{uniform: [-0.15, 0.15]}}  # of about length 1
  value: normal
  past_state: normal
  decay: {{uniform: [-1.0, 0.0]}}
  beta: {{uniform: [0.0, 1.0]}}
"""
CONVOLUTION = """\
op: CausalConvWithState-27
sizes: {{seq_length: {T}, batch_size: {B}, channels: 8192, kernel_size: 4}}
dtype: {dtype}
seed: {seed}
attributes: {{activation: silu}}
inputs: {{input: normal, weight: normal, bias: normal, past_state: normal}}
"""
# Name -> its config, T and B.
LINEAR: Mapping[str, tuple[str, int, int]] = {
    "decode": (ATTENTION, 1, 1),
    "decode_batch": (ATTENTION, 1, 32),
    "prefill": (ATTENTION, 4096, 1),
    "conv_decode": (CONVOLUTION, 1, 32),
    "conv_prefill": (CONVOLUTION, 4096, 1),
}
# What descriptions call the sizes.
LETTERS: Mapping[str, str] = {
    "seq_length": "T",
    "batch_size": "B",
    "input_size": "I",
    "hidden_size": "H",
    "q_num_heads": "Q",
    "kv_num_heads": "K",
    "key_size": "k",
    "value_size": "v",
    "channels": "C",
    "kernel_size": "w",
    "dilation": "d",
    "total_tokens": "P",
}

MODEL = "model"
# The number of output elements for measuring errors, within a number of runs on other data: the
# largest error of only a few elements is a matter of luck.
ENOUGH, MOST_DATA = 1 << 16, 32

# Weights as frameworks initialise them, so activations neither vanish nor saturate at any size.
CONFIG = """\
op: {operator}-{opset}
sizes: {{seq_length: {T}, batch_size: {B}, input_size: {I}, hidden_size: {H}}}
dtype: {dtype}
seed: {seed}
attributes: {attributes}
inputs:
  X: normal
  W: {{uniform: [-{bound}, {bound}]}}
  R: {{uniform: [-{bound}, {bound}]}}
  B: {{uniform: [-{bound}, {bound}]}}
"""


@dataclass(frozen=True, eq=False)
class Workload:
    """One evaluation to measure."""

    name: str  # the name of a row of `WORKLOADS`, or of the target
    operator: str  # its type, such as LSTM, or "model"
    description: str  # its sizes and dtype on one line
    vector: Vector  # a model with stored weights, and its inputs, for the implementations
    exact: Tensors  # its outputs in float64, rounded once
    cost: Cost  # its minimum cost
    # vectors and outputs on other data, only for errors
    others: tuple[tuple[Vector, Tensors], ...] = ()

    @property
    def is_model(self) -> bool:
        """Whether it is a whole model, not one operator."""
        return self.operator == MODEL


class PlannedWorkload(NamedTuple):
    """A workload whose tensors are not generated yet."""

    name: str  # the workload's name
    loaded: Case | Model  # the operator or the model
    request: Request  # the request, as for `rnncli run`
    # returns the operator with data from another seed; None if it has fixed data
    reseeded: Callable[[int], Case] | None = None

    @property
    def is_model(self) -> bool:
        """Whether it is a whole model, not one operator."""
        return isinstance(self.loaded, Model)

    def workload(self) -> Workload:
        """Generate its tensors and compute the expected outputs.

        Raises:
            RnncliError: it cannot be evaluated.
        """
        run = next(execute(self.loaded, self.request))
        loaded = self.loaded
        if isinstance(loaded, Case):
            first = of_operator(self.name, loaded, run.outputs)
            return replace(first, others=tuple(self._others(first)))

        # A whole model as a workload.
        shapes = (f"{n} {list(values.shape)}" for n, values in run.inputs.items())
        return Workload(
            name=self.name,
            operator="model",
            description=", ".join(shapes),
            vector=vector_of_run(self.name, loaded, run),
            exact=run.outputs,
            cost=UNKNOWN,
        )

    def _others(self, first: Workload) -> Iterator[tuple[Vector, Tensors]]:
        outputs = sum(values.size for values in first.exact.values())
        data = min(MOST_DATA, ENOUGH // max(1, outputs)) if self.reseeded else 1
        for seed in range(1, data):
            assert self.reseeded is not None
            case = self.reseeded(seed)
            other = of_operator(self.name, case, next(execute(case, self.request)).outputs)
            yield other.vector, other.exact


def planned(
    names: Sequence[str], operators: Iterable[str], dtype: str, dims: Mapping[str, int]
) -> list[PlannedWorkload]:
    """Return named workloads, built-in ones or targets of `rnncli run`.

    Args:
        names: the names; all workloads of gated operators if empty.
        operators: the operator types of workloads of gated operators.
        dtype: the element type of built-in workloads.
        dims: sizes of the models' symbolic dimensions.

    Raises:
        InvalidRequest: a target is wrong.
    """
    request = Request(tolerance=Tolerance(), dims=dims)
    found = []
    for name in names or WORKLOADS:
        if name in WORKLOADS or name in LINEAR:
            for each in operators if name in WORKLOADS else ("",):
                make = partial(built_in, name, each, dtype)
                found.append(PlannedWorkload(name, make(), request, make))
        else:
            near = did_you_mean(name, [*WORKLOADS, *LINEAR])
            if near and name not in target_names() and not Path(name).exists():
                raise InvalidRequest(f"{name}: no workload, file, config or suite{near}")
            cases = cases_of(name)
            pairs = zip(short_names(cases), cases, strict=True)
            found += [
                PlannedWorkload(short, load_target(target), request) for short, target in pairs
            ]
    return found


def built_in(name: str, operator: str, dtype: str = "float32", seed: int = 0) -> Case:
    """Return a built-in workload as a case; a linear recurrence has its own operator."""
    if name in LINEAR:
        text, T, B = LINEAR[name]
        return parse_config(text.format(T=T, B=B, dtype=dtype, seed=seed), f"<{name}>")
    sizes = WORKLOADS[name]
    text = CONFIG.format(
        operator=operator,
        opset=OPSETS[dtype],
        dtype=dtype,
        seed=seed,
        attributes=OPERATORS[operator],
        bound=f"{1 / math.sqrt(sizes.H):.6f}",
        **sizes._asdict(),
    )
    return parse_config(text, f"<{name}>")


def of_operator(name: str, case: Case, exact: Tensors) -> Workload:
    """Return a single node as a workload, with the weights stored in the runtimes' model."""
    record = record_of_node(
        name,
        case.operator,
        attributes=case.attributes,
        sizes=case.sizes,
        dtype=case.dtype.name,
        inputs=case.inputs,
        outputs=case.outputs,
        weights="initializers",
        readings=case.readings,
    )
    sizes = [f"{LETTERS[size]} {count}" for size, count in case.sizes.items()]
    return Workload(
        name=name,
        operator=case.operator.type,
        description=", ".join([*sizes, case.dtype.name]),
        vector=with_model(Vector(name, b"", case.inputs, (), Answers(exact), {}, record)),
        exact=exact,
        cost=cost_of(case, exact),
    )
