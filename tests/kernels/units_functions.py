"""Activations of the kernel blocked by units: a vector body of full lanes and a scalar tail.

The two are written apart, as intrinsics and plain C are. Both take x, alpha and beta.
"""

import math

import numpy as np

LANES = 8

# Name in lower case -> default alpha and beta, or None where the function takes none.
TAKES = {
    "relu": (None, None),
    "tanh": (None, None),
    "sigmoid": (None, None),
    "affine": (1.0, 0.0),
    "leakyrelu": (0.01, None),
    "thresholdedrelu": (1.0, None),
    "scaledtanh": (1.0, 1.0),
    "hardsigmoid": (0.2, 0.5),
    "elu": (1.0, None),
    "softsign": (None, None),
    "softplus": (None, None),
}
USUAL = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}


def single(value):
    """Return an attribute as the model holds it, in single precision."""
    return None if value is None else float(np.float32(value))


class Functions:
    """Binds a node's functions and applies them to rows of units."""

    def __init__(self, bug):
        self.bug = bug

    def bind(self, cell, directions, attributes):
        """Return (name, alpha, beta) of each function of each direction."""
        names = self._names(cell, directions, attributes.get("activations"))
        alphas = self._values(names, 0, attributes.get("activation_alpha"), directions)
        betas = self._values(names, 1, attributes.get("activation_beta"), directions)
        bound = list(zip(names, alphas, betas, strict=True))
        count = len(USUAL[cell])
        split = [bound[d * count : (d + 1) * count] for d in range(directions)]
        if self.bug("backward-functions-are-forwards"):
            split = [split[0]] * directions
        return split

    def _names(self, cell, directions, given):
        usual = USUAL[cell] * directions
        names = (list(given) if given else usual)[: len(usual)]
        if self.bug("names-case-sensitive"):
            known = {"Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu"}
            known |= {"ScaledTanh", "HardSigmoid", "Elu", "Softsign", "Softplus"}
            names = [n if n in known else u for n, u in zip(names, usual, strict=True)]
        return [name.lower() for name in names]

    def _values(self, names, which, given, directions):
        """Hand the values out in order to the functions that take one."""
        queue = [single(value) for value in given or []]
        found = []
        for k, name in enumerate(names):
            if self.bug("alpha-queue-restarts-backward") and k * directions == len(names):
                queue = [single(value) for value in given or []]
            default = self._default(name, which)
            value = queue.pop(0) if default is not None and queue else default
            if self.bug("zero-alpha-is-absent"):
                value = value or default
            found.append(value)
        return found

    def _default(self, name, which):
        if which and name == "hardsigmoid" and self.bug("hard-sigmoid-default-beta-zero"):
            return 0.0
        if not which and name == "thresholdedrelu" and self.bug("thresholded-default-alpha-zero"):
            return 0.0
        return single(TAKES[name][which])

    def apply(self, function, x, clip):
        """Return the function of rows [n, units], clipped first; full lanes first, then the rest.

        Args:
            function: (name, alpha, beta).
            x: pre-activations, not changed.
            clip: the bound, or None.
        """
        out = np.empty_like(x)
        full = x.shape[1] // LANES * LANES
        if full:
            out[:, :full] = self._body(function, x[:, :full], clip)
        for row in range(x.shape[0]):
            self._tail(function, x[row, full:], clip, out[row, full:], full)
        return out

    def _body(self, function, x, clip):
        name, alpha, beta = function
        if clip is not None and not self.bug("body-not-clipped"):
            if self.bug("body-clips-second-vector-not"):
                x = np.concatenate([np.clip(x[:, :LANES], -clip, clip), x[:, LANES:]], axis=1)
            else:
                x = np.clip(x, -clip, clip)
        if self.bug("body-uses-default-alpha"):
            alpha, beta = map(single, TAKES[name])
        if self.bug("body-uses-default-beta"):
            beta = single(TAKES[name][1])
        with np.errstate(all="ignore"):
            return getattr(self, f"_v_{name}")(x, alpha, beta)

    def _tail(self, function, x, clip, out, full):
        name, alpha, beta = function
        if full and self.bug("tail-uses-default-alpha"):
            alpha, beta = map(single, TAKES[name])
        scalar = getattr(self, f"_s_{name}")
        clipped = clip is not None and not (self.bug("tail-not-clipped") and full)
        for k, raw in enumerate(x.tolist()):
            value = self._clipped(raw, clip) if clipped else raw
            out[k] = scalar(value, alpha, beta)
            if full and (
                (self.bug("tail-stops-after-four") and k >= 4)
                or (self.bug("tail-last-unit-raw") and k == len(x) - 1)
            ):
                out[k] = raw

    def _clipped(self, value, clip):
        if self.bug("tail-clipped-above-only"):
            return value if math.isnan(value) else min(value, clip)
        if self.bug("tail-clip-swallows-nan"):
            return clip if math.isnan(value) else max(-clip, min(clip, value))
        if value > clip:
            return clip
        return max(value, -clip)

    # The vector body.

    def _v_sigmoid(self, x, _, __):
        if self.bug("body-sigmoid-rational"):
            return 0.5 + 0.5 * x / (1 + np.abs(x))
        if self.bug("body-sigmoid-saturates-early"):
            return np.where(x > 6, 1, np.where(x < -6, 0, 1 / (1 + np.exp(-x)))).astype(x.dtype)
        if self.bug("body-sigmoid-without-maximum"):
            e = np.exp(np.minimum(x, 80))
            return e / (1 + e) if x.dtype == np.float64 else np.minimum(e / (1 + e), 0.9999)
        e = np.exp(-np.abs(x))
        return np.where(x >= 0, 1 / (1 + e), e / (1 + e))

    def _v_tanh(self, x, _, __):
        if self.bug("body-tanh-literal"):
            e = np.exp(-2 * x)
            return (1 - e) / (1 + e)
        if self.bug("body-tanh-polynomial"):
            y = np.clip(x, -3, 3)
            return (y * (27 + y * y) / (27 + 9 * y * y)).astype(x.dtype)
        if self.bug("body-tanh-saturates-at-three"):
            return np.where(np.abs(x) > 3, np.sign(x), np.tanh(x)).astype(x.dtype)
        return np.tanh(x)

    def _v_relu(self, x, _, __):
        if self.bug("body-relu-swallows-nan"):
            return np.fmax(x, 0).astype(x.dtype)
        return np.maximum(x, 0)

    def _v_affine(self, x, alpha, beta):
        return alpha * x + beta

    def _v_leakyrelu(self, x, alpha, _):
        if self.bug("body-leaky-relu-as-maximum"):
            return np.maximum(x, alpha * x)
        return np.where(x >= 0, x, np.where(np.isnan(x), x, alpha * x)).astype(x.dtype)

    def _v_thresholdedrelu(self, x, alpha, _):
        return np.where((x >= alpha) | np.isnan(x), x, 0).astype(x.dtype)

    def _v_scaledtanh(self, x, alpha, beta):
        return alpha * np.tanh(beta * x)

    def _v_hardsigmoid(self, x, alpha, beta):
        return np.minimum(np.maximum(alpha * x + beta, 0), 1)

    def _v_elu(self, x, alpha, _):
        if self.bug("body-elu-without-alpha"):
            alpha = 1.0
        return np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0))).astype(x.dtype)

    def _v_softsign(self, x, _, __):
        return x / (1 + np.abs(x))

    def _v_softplus(self, x, _, __):
        if self.bug("body-softplus-overflows"):
            return np.log(1 + np.exp(x))
        return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)

    # The scalar tail.

    def _s_sigmoid(self, x, _, __):
        if self.bug("tail-sigmoid-is-hard"):
            return min(max(0.2 * x + 0.5, 0.0), 1.0)
        e = math.exp(-abs(x))
        return 1 / (1 + e) if x >= 0 else e / (1 + e)

    def _s_tanh(self, x, _, __):
        if self.bug("tail-tanh-series"):
            return x - x * x * x / 3 if abs(x) < 0.5 else math.tanh(x)
        return math.tanh(x)

    def _s_relu(self, x, _, __):
        if self.bug("tail-relu-swallows-nan"):
            return x if x > 0 else 0.0
        return 0.0 if x <= 0 else x

    def _s_affine(self, x, alpha, beta):
        return alpha * x + beta

    def _s_leakyrelu(self, x, alpha, _):
        return alpha * x if x < 0 else x

    def _s_thresholdedrelu(self, x, alpha, _):
        return 0.0 if x < alpha else x

    def _s_scaledtanh(self, x, alpha, beta):
        if self.bug("tail-scaled-tanh-alpha-beta-swapped"):
            alpha, beta = beta, alpha
        return alpha * math.tanh(beta * x)

    def _s_hardsigmoid(self, x, alpha, beta):
        y = alpha * x + beta
        if self.bug("tail-hard-sigmoid-unbounded-above"):
            return max(y, 0.0)
        if y < 0:
            return 0.0
        return 1.0 if y > 1 else y

    def _s_elu(self, x, alpha, _):
        return alpha * math.expm1(x) if x < 0 else x

    def _s_softsign(self, x, _, __):
        if math.isinf(x):
            return math.nan
        if self.bug("tail-softsign-one-sided"):
            return x / (1 + x) if x > -0.99 else x / (1 - x)
        return x / (1 + abs(x))

    def _s_softplus(self, x, _, __):
        if self.bug("tail-softplus-cut-early"):
            return x if x > 4 else math.log1p(math.exp(x))
        if math.isnan(x):
            return x
        return math.log1p(math.exp(-abs(x))) + max(x, 0.0)
