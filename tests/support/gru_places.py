"""One GRU, seen from wherever it may stand in a model; W and R are outer values."""

import numpy as np
import onnx

from rnncli.models.loading import model_from

WEIGHTS = {
    "X": np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 2, 3),
    "W": np.linspace(-1, 1, 18, dtype=np.float32).reshape(1, 6, 3),
    "R": np.linspace(1, -1, 12, dtype=np.float32).reshape(1, 6, 2),
}
SIGNATURE = "(float[4,2,3] X, float[1,6,3] W, float[1,6,2] R) => (float[1,2,2] out)"
PLACES = {
    "graph": "{ _, out = GRU <hidden_size: int = 2> (X, W, R) }",
    "If": """{
        yes = Constant <value = bool {1}> ()
        out = If (yes) <then_branch = t () => (h) { _, h = GRU <hidden_size: int = 2> (X, W, R) },
                        else_branch = e () => (z) { z = Identity (W) }>
    }""",
    "If in If": """{
        yes = Constant <value = bool {1}> ()
        out = If (yes) <
            then_branch = t () => (o) {
                o = If (yes) <
                    then_branch = tt () => (h) { _, h = GRU <hidden_size: int = 2> (X, W, R) },
                    else_branch = te () => (z) { z = Identity (R) }> },
            else_branch = e () => (y) { y = Identity (W) }>
    }""",
    "Loop": """{
        one = Constant <value = int64 {1}> ()
        yes = Constant <value = bool {1}> ()
        start = Constant <value = float[1,2,2] {0, 0, 0, 0}> ()
        out = Loop (one, yes, start) <body = b (int64 i, bool go, float[1,2,2] old) => (on, h) {
            on = Identity (go)
            _, h = GRU <hidden_size: int = 2> (X, W, R, "", "", old)
        }>
    }""",
    "Scan": """{
        zero = Constant <value = float[1] {0}> ()
        _, all = Scan <num_scan_inputs: int = 1, body = b (float[1] s, float[2,3] row) => (s2, h2) {
            s2 = Identity (s)
            _, h2 = GRU <hidden_size: int = 2> (X, W, R)
        }> (zero, X)
        first = Constant <value = int64 {0}> ()
        out = Gather (all, first)
    }""",
    "function": """{ out = pkg.Layer <units = 2> (X, W, R) }
        <domain: "pkg", opset_import: ["" : 17]>
        Layer <units> (x, w, r) => (h) { _, h = GRU <hidden_size: int = @units> (x, w, r) }""",
    "If in a function in a function": """{ out = pkg.Outer <n = 2> (X, W, R) }
        <domain: "pkg", opset_import: ["" : 17, "pkg" : 1]>
        Outer <n> (x, w, r) => (h) { h = pkg.Inner <units: int = @n> (x, w, r) }
        <domain: "pkg", opset_import: ["" : 17]>
        Inner <units> (x, w, r) => (h) {
            yes = Constant <value = bool {1}> ()
            h = If (yes) <
                then_branch = t () => (k) { _, k = GRU <hidden_size: int = @units> (x, w, r) },
                else_branch = e () => (z) { z = Identity (w) }>
        }""",
}

HELD = (
    "(float[4,2,3] X) => (float[1,2,2] out)\n<"
    + ", ".join(
        f"float[{','.join(map(str, WEIGHTS[name].shape))}] {name} = "
        f"{{{', '.join(map(repr, WEIGHTS[name].ravel().tolist()))}}}"
        for name in "WR"
    )
    + ">\n"
)
"""The same signature, W and R initializers."""


def text_of(place, signature=SIGNATURE):
    """The model as text."""
    return f"g {signature}{PLACES[place]}".replace("_, ", "unused, ")


def model_of(text, opset=17):
    """A loaded model of a text, which may call functions of the domain `pkg`."""
    header = f'<ir_version: 8, opset_import: ["" : {opset}, "pkg" : 1]>\n'
    return model_from(onnx.parser.parse_model(header + text), "m.onnx")
