"""Additions of every kind, as somebody from outside makes them: the files that each one changes.

`added_to` makes them in a copy of the package. An addition is a new file, or text that takes the
place of a text that stands once in a file.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Edit(NamedTuple):
    """Text in place of one that stands once in a file."""

    place: str
    text: str


def before(place, text):
    """Text before one that stands once in a file."""
    return Edit(place, text + place)


# An activation: its own derivative, and a bound of its second one, |alpha|*e^-|alpha x| (2 + |alpha
# x|).
SWISH = """\

    Activation(
        "Swish",
        "x*Sigmoid(alpha*x)",
        lambda math, x, alpha, _: x * math.sigmoid(alpha * x),
        Sensitivity(
            derivative=lambda x, _, a, __: (
                (s := NumPyArithmetic.sigmoid(a * x)) * (1 + a * x * (1 - s))
            ),
            curvature=lambda r, a, _: abs(a)
            * np.minimum(0.5, np.exp(-abs(a) * r) * (2 + abs(a) * r)),
        ),
        alpha=1.0,
    ),"""
# A cell: the minimal gated unit of Zhou et al., 2016: https://arxiv.org/abs/1603.09420.
MGU_STEP = '''

def mgu_step(p: Parameters, x: Value, states: States) -> States:
    """Advance a minimal gated unit by one time step.

    ft = f(Xt*(Wf^T) + Ht-1*(Rf^T) + Wbf + Rbf)
    ht = g(Xt*(Wh^T) + (ft (.) Ht-1)*(Rh^T) + Wbh + Rbh)
    Ht = (1 - ft) (.) Ht-1 + ft (.) ht
    """
    (H,) = states
    (f,) = p.f(x[:1] + p.R(H, slice(0, 1)))
    h = p.g(x[1] + p.R(f * H, slice(1, 2))[0])
    return (p.blend(f, H, h),)
'''
MGU_CELL = """
        Cell(
            "MGU",
            gates="fh",
            states=1,
            activations="fg",
            defaults=("Sigmoid", "Tanh"),
            step=mgu_step,
        ),"""
MGU_KERNEL = """\
            (H,) = states  # MGU
            (forget,) = f(x[:1] + times(H, np.s_[:1]))  # MGU
            hidden = g(x[1] + times(forget * H, np.s_[1:])[0])  # MGU
            new = ((1 - forget) * H + forget * hidden,)  # MGU
"""
MGU_ROW = """
MGU = replace(
    _RNN_14,
    type="MGU",
    domain="org.example",
    cell=CELLS["MGU"],
    gates="fh",
    inputs=_inputs(2),
    attributes={
        **_RNN_14.attributes,
        "activations": _activations("two activations, f (gate) and g (hidden),"),
    },
    default_activations=CELLS["MGU"].defaults,
    spare_activation=False,
)
"""
# Statements, with a condition of their own.
MGU_STATEMENTS = """\
operators: MGU
sections:
- section: equations
  statements:
    equations.h:
      says: ht is g of Xt's product, the product of what ft keeps of Ht-1, and both biases.
      when: [is monotone, gives B]
      against: recurrent-weights-transposed input-bias-dropped
    direction.refused:
      says: There is no other direction than the three.
      kind: rejection
      when: breaks direction alone
"""
MONOTONE = """
    "is monotone": lambda c: len(c.node.directions) == 1,"""
# A reading: the paper that the GRU is from, https://arxiv.org/abs/1406.1078, has zt the other way.
UPDATE = """
    "update-gate": Reading(
        "what zt of a GRU multiplies",
        {
            "keeps": "zt (.) Ht-1, as ONNX says",
            "renews": "zt (.) ht",
        },
        option="update_renews",
    ),"""
RENEWED_STATEMENTS = """\
operators: GRU
sections:
- section: equations
  statements:
    update.renews:
      says: Ht is what 1 - zt keeps of Ht-1, and zt of ht.
      when: has another answer under update-gate=renews
"""
# A relation.
ZEROS = """

@relation(
    "an initial state of zeros instead of none",
    "an initial state that is taken from an earlier call, or from nowhere",
    Applicability(
        "no initial_h is given",
        lambda call: "" if call.get("initial_h") is None else "an initial_h is given",
    ),
)
def _zeros_given(call: NodeCall, ask: Asker) -> Tensors:
    row = call.named("initial_h")
    shape = [dim.multiple * call.size(dim.symbol) for dim in call.dims(row.name)]
    return ask(call.with_changes({row.name: np.zeros(shape, call.dtype.numpy)}))
"""
# A runtime, in a package of its own.
RUNTIME = """\
import rnncli


class Looped:
    def __init__(self, settings, threads):
        pass

    def describe(self):
        return {"version": "7"}

    def prepare(self, vector):
        from rnncli.subjects.runtime import Prepared

        return Prepared(lambda: self.run(vector), lambda outputs: outputs)

    def run(self, vector):
        return rnncli.prepare(vector.model, backend="reference").run(vector.fed)
"""
METADATA = "Metadata-Version: 2.1\nName: looped\nVersion: 7\n"
# A dialect: names, shapes and an order of gates of its own, and no axis of directions.
DIALECT = '''\
"""The operator of a dialect that is nobody's."""

from __future__ import annotations

from rnncli.operators.operator import Attribute, Input, Operator, Output, by_name, shape
from rnncli.recurrence.cells import CELLS

ROWS = (
    Operator(
        type="gru",
        version=1,
        versioned=False,
        domain="plain",
        dialect="Plain",
        cell=CELLS["GRU"],
        gates="rhz",
        inputs=(
            Input("x", "X", (shape("T N I"),), "inputs"),
            Input("weight_ih", "W", (shape("3*H I"),), "input weights"),
            Input("weight_hh", "R", (shape("3*H H"),), "recurrent weights"),
            Input("bias", "B", (shape("3*H"),), "the sum of both biases", optional=True),
            Input("initial", "initial_h", (shape("N H"),), "initial state", optional=True),
        ),
        outputs=(
            Output("steps", "Y", (shape("T N H"),), "state after each step", optional=True),
            Output("state", "Y_h", (shape("N H"),), "state after the last", optional=True),
        ),
        attributes=by_name(
            Attribute(
                "way",
                "string",
                "which way time is walked",
                default="on",
                choices=("on", "back"),
                role="direction",
                aliases={"on": "forward", "back": "reverse"},
            ),
        ),
        dtypes=("float32", "float64"),
        activations=("Sigmoid", "Tanh"),
        default_activations=CELLS["GRU"].defaults,
        bias="sum",
        empty_sizes=False,
        fixed=dict.fromkeys(("activations", "activation_alpha", "activation_beta", "clip")),
        readings={},
    ),
)
'''
DIALECT_STATEMENTS = """\
operators: plain.gru
sections:
- section: gates
  statements:
    gates.order:
      says: The gates are in the order r, h, z.
      against: gates-z-r-swapped
"""

# A bug of kernels.
RESET_HALVED = """
reset-halved: The reset gate is rt / 2.
- reset * H
+ reset / 2 * H
- reset * (product[2] + Rbh)
+ reset / 2 * (product[2] + Rbh)
"""

# Addition -> its files, and what changes in each.
# An option of a function of Python, and so of its command and of the line that repeats a case.
MOST_CASES = [
    Edit(
        "    diagnose: bool = False,\n    progress",
        "    diagnose: bool = False,\n    most_cases: int | None = None,\n    progress",
    ),
    Edit(
        "        diagnose: Name the bug behind wrong outputs, as `rnncli diagnose` does.\n",
        "        diagnose: Name the bug behind wrong outputs, as `rnncli diagnose` does.\n"
        "        most_cases: Exit with 2 if more cases are selected.\n",
    ),
    Edit(
        "    plan = _plan(VerificationPlan, verify, pack, asked)\n",
        """\
    plan = _plan(VerificationPlan, verify, pack, asked)
    from rnncli.verifying.verification import select

    if most_cases is not None and len(select(plan).asked) > most_cases:
        raise InvalidRequest(f"--most-cases {most_cases}: more cases are selected")
""",
    ),
]
COUNT = [
    Edit(
        "    statements: bool = False,\n    as_json",
        "    statements: bool = False,\n    count: bool = False,\n    as_json",
    ),
    before("        statements: With --json", "        count: Print only how many there are.\n"),
    Edit(
        "    if as_json:\n        for record",
        "    if count:\n        click.echo(len(records))\n    elif as_json:\n        for record",
    ),
]
ADDITIONS = {
    "activation": {
        "rnncli/recurrence/activations.py": [before("\n)\nACTIVATIONS: ", SWISH)],
    },
    "cell": {
        "rnncli/recurrence/cells.py": [
            before("\n\n@dataclass(frozen=True, slots=True)\nclass Cell:", MGU_STEP),
            before("\n    )\n}\n", MGU_CELL),
        ],
        "rnncli/operators/onnx_rows.py": [
            Edit("\nROWS = (\n", f"{MGU_ROW}\nROWS = (\n    MGU,\n"),
        ],
        "rnncli/mutants/kernel.txt": [before("            (i,) = x + times(H)", MGU_KERNEL)],
    },
    "statement": {
        "specs/statements/mgu.yaml": MGU_STATEMENTS,
        "rnncli/verifying/tracing/conditions.py": [
            before('\n}\n"""Conditions that stand alone', MONOTONE),
        ],
    },
    "reading": {
        "rnncli/recurrence/readings.py": [before("\n}\n# Choice of the reading `preset`", UPDATE)],
        "rnncli/recurrence/cells.py": [
            Edit(
                "    peephole_previous: bool = False\n",
                "    peephole_previous: bool = False\n    update_renews: bool = False\n",
            ),
            Edit(
                "    return (p.blend(z, h, H),)\n",
                "    return (p.blend(z, H, h) if p.options.update_renews else p.blend(z, h, H),)\n",
            ),
        ],
        "rnncli/operators/onnx_rows.py": [
            Edit(
                "    spare_activation=False,\n)\n_LSTM_1 = ",
                "    spare_activation=False,\n"
                '    readings={**_UNTRANSPOSED, "update-gate": "keeps"},\n)\n_LSTM_1 = ',
            ),
        ],
        "specs/statements/renewed.yaml": RENEWED_STATEMENTS,
        "rnncli/mutants/kernel.txt": [
            before(
                "    linear_before_reset = r.linear", "    update_renews = r.update_renews  # GRU\n"
            ),
            before(
                "            new = ((1 - z)",
                "            hidden, H = (H, hidden) if update_renews else (hidden, H)  # GRU\n",
            ),
        ],
    },
    "bug": {
        "rnncli/mutants/bugs.txt": [before("\nreset-inverted: ", RESET_HALVED)],
    },
    "option": {"rnncli/api/commands.py": MOST_CASES},
    "option of a command alone": {"rnncli/cli/vectors.py": COUNT},
    "relation": {
        "rnncli/verifying/relations/relations.py": [before("\n\ndef relation_named(", ZEROS)],
    },
    "runtime": {
        "looped.py": RUNTIME,
        "looped-7.dist-info/METADATA": METADATA,
        "looped-7.dist-info/entry_points.txt": "[rnncli.subjects]\nlooped = looped:Looped\n",
    },
    "dialect": {
        "rnncli/operators/plain_rows.py": DIALECT,
        "rnncli/operators/operator_table.py": [
            Edit("    webnn_rows,\n", "    plain_rows,\n    webnn_rows,\n"),
            Edit("tflite_float_rows),\n", "tflite_float_rows, plain_rows),\n"),
        ],
        "specs/statements/plain.yaml": DIALECT_STATEMENTS,
    },
}


def added_to(folder):
    """Copy the package to a folder, and make every addition there."""
    for name in ("rnncli", "specs"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for files in ADDITIONS.values():
        for name, changes in files.items():
            file = folder / name
            file.parent.mkdir(exist_ok=True)
            if isinstance(changes, str):
                assert not file.exists()
                file.write_text(changes, encoding="utf-8")
                continue
            text = file.read_text(encoding="utf-8")
            for place, new in changes:
                assert text.count(place) == 1, (name, place)
                text = text.replace(place, new)
            file.write_text(text, encoding="utf-8")
