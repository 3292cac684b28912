"""Activations of the kernel blocked by batch: four lanes over a tile laid out flat.

A tile's units stand one row after the other. Whole groups of four lanes are computed in place; the
rest is loaded into a lane register that is kept between calls, computed, and stored under a mask.
"""

import numpy as np

LANES = 4

# Default alpha and beta; None where a function takes none.
DEFAULTS = {
    "affine": (1.0, 0.0),
    "elu": (1.0, None),
    "hardsigmoid": (0.2, 0.5),
    "leakyrelu": (0.01, None),
    "relu": (None, None),
    "scaledtanh": (1.0, 1.0),
    "sigmoid": (None, None),
    "softplus": (None, None),
    "softsign": (None, None),
    "tanh": (None, None),
    "thresholdedrelu": (1.0, None),
}
STANDARD = {"RNN": ("tanh",), "GRU": ("sigmoid", "tanh"), "LSTM": ("sigmoid", "tanh", "tanh")}
# Default values under a bug, by its name: (function, position, value).
WRONG_DEFAULTS = {
    "affine-default-alpha-zero": ("affine", 0, 0.0),
    "scaled-tanh-default-beta-zero": ("scaledtanh", 1, 0.0),
    "leaky-default-alpha-tenth": ("leakyrelu", 0, 0.1),
    "hard-sigmoid-default-alpha-sixth": ("hardsigmoid", 0, 1 / 6),
}


class Activations:
    """The functions of a node, bound and applied."""

    def __init__(self, bug):
        self.bug = bug
        self.register = np.zeros(LANES)
        self.kept = {}

    def of_node(self, cell, directions, attributes):
        """Return for each direction its functions as (name, alpha, beta)."""
        standard = STANDARD[cell]
        given = attributes.get("activations") or [*standard] * directions
        names = tuple(name.lower() for name in given)[: directions * len(standard)]
        if names in self.kept and self.bug("functions-kept-by-names"):
            return self.kept[names]
        alphas = list(attributes.get("activation_alpha") or ())
        betas = list(attributes.get("activation_beta") or ())
        if self.bug("beta-from-alpha-list"):
            betas = list(alphas)
        bound = [(name, self._next(name, 0, alphas), self._next(name, 1, betas)) for name in names]
        count = len(standard)
        if self.bug("functions-of-directions-interleaved") and directions > 1:
            bound = bound[0::2] + bound[1::2]
        self.kept[names] = [bound[d * count : (d + 1) * count] for d in range(directions)]
        return self.kept[names]

    def _next(self, name, position, values):
        default = DEFAULTS[name][position]
        for bug, (function, where, wrong) in WRONG_DEFAULTS.items():
            if (function, where) == (name, position) and self.bug(bug):
                default = wrong
        if default is None:
            return 0.0
        if len(values) == 1 and self.bug("last-alpha-serves-all"):
            return float(np.float32(values[0]))
        return float(np.float32(values.pop(0) if values else default))

    def __call__(self, function, values):
        """Return the function of values [rows, units], in a new array."""
        flat = values.reshape(-1)
        out = np.empty_like(flat)
        full = flat.size // LANES * LANES
        if full:
            out[:full] = self._compute(function, flat[:full])
        if full < flat.size:
            self._rest(function, flat[full:], out[full:], out, full)
        return out.reshape(values.shape)

    def _rest(self, function, flat, out, whole, full):
        count = len(flat)
        register = np.zeros(LANES, flat.dtype)
        register[:count] = flat
        if full and self.bug("rest-loads-first-lanes"):
            register[:count] = whole[:count]
        if full and self.bug("rest-with-default-values"):
            function = (function[0], *(value or 0.0 for value in DEFAULTS[function[0]]))
        found = self._compute(function, register)
        if self.bug("rest-stores-one-lane") and count > 1:
            out[1:] = flat[1:]
            count = 1
        out[:count] = found[:count]
        if full and self.bug("rest-stores-over-the-group-before"):
            whole[full - 1] = found[LANES - 1]
        if full and self.bug("rest-not-activated-when-two") and count == 2:
            out[:] = flat

    def _compute(self, function, x):
        name, alpha, beta = function
        if name in {"sigmoid", "tanh"}:
            return getattr(self, f"_{name}")(x)
        return getattr(self, f"_{name}")(x, alpha, beta)

    def _sigmoid(self, x):
        if self.bug("sigmoid-table"):
            return _looked_up(x, 8.0, 512, lambda t: 1 / (1 + np.exp(-t)))
        if self.bug("sigmoid-clamped-at-eight"):
            x = np.clip(x, -8, 8)
        if self.bug("sigmoid-by-tanh-of-x"):
            return (0.5 * np.tanh(x) + 0.5).astype(x.dtype)
        if self.bug("sigmoid-by-fast-exp"):
            return (1 / (1 + _fast_exp(-x))).astype(x.dtype)
        return 1 / (1 + np.exp(-x))

    def _tanh(self, x):
        if self.bug("tanh-table-interpolated"):
            return _interpolated(x, 5.0, 256, np.tanh)
        if self.bug("tanh-by-fast-exp"):
            return (2 / (1 + _fast_exp(-2 * x)) - 1).astype(x.dtype)
        if self.bug("tanh-continued-fraction"):
            y = np.clip(x, -4.97, 4.97)
            s = y * y
            top = y * (135135 + s * (17325 + s * (378 + s)))
            return (top / (135135 + s * (62370 + s * (3150 + s * 28)))).astype(x.dtype)
        e = np.expm1(-2 * np.abs(x))
        return np.copysign(-e / (2 + e), x)

    def _relu(self, x, _, __):
        if self.bug("relu-up-to-six"):
            return np.clip(x, 0, 6)
        if self.bug("relu-by-comparison"):
            return np.where(x > 0, x, 0).astype(x.dtype)
        return np.where(x <= 0, 0, x).astype(x.dtype)

    def _leakyrelu(self, x, alpha, _):
        if self.bug("leaky-relu-of-negative-only"):
            return (alpha * np.minimum(x, 0)).astype(x.dtype)
        return np.where(x < 0, alpha * x, x).astype(x.dtype)

    def _thresholdedrelu(self, x, alpha, _):
        if self.bug("thresholded-relu-subtracts"):
            return np.where(x < alpha, 0, x - alpha).astype(x.dtype)
        return np.where(x < alpha, 0, x).astype(x.dtype)

    def _affine(self, x, alpha, beta):
        return alpha * x + beta

    def _scaledtanh(self, x, alpha, beta):
        return alpha * self._tanh(np.asarray(beta * x, x.dtype))

    def _hardsigmoid(self, x, alpha, beta):
        y = alpha * x + beta
        if self.bug("hard-sigmoid-swallows-nan"):
            return np.fmin(np.fmax(y, 0), 1).astype(x.dtype)
        return np.clip(y, 0, 1)

    def _elu(self, x, alpha, _):
        if self.bug("elu-of-absolute-alpha"):
            alpha = abs(alpha)
        if self.bug("elu-without-minus-one"):
            return np.where(x < 0, alpha * np.exp(np.minimum(x, 0)), x).astype(x.dtype)
        return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x).astype(x.dtype)

    def _softsign(self, x, _, __):
        if self.bug("softsign-as-tanh"):
            return self._tanh(x)
        return x / (np.abs(x) + 1)

    def _softplus(self, x, _, __):
        if self.bug("softplus-overflows"):
            return np.log1p(np.exp(x))
        return np.logaddexp(x, x.dtype.type(0))


def _looked_up(x, limit, count, function):
    """Return the nearest entry of a table."""
    index = np.rint((np.clip(np.nan_to_num(x), -limit, limit) + limit) * (count / (2 * limit)))
    table = function(np.linspace(-limit, limit, count + 1))
    return np.where(np.isnan(x), x, table[index.astype(int)]).astype(x.dtype)


def _interpolated(x, limit, count, function):
    """Return a table's entries, interpolated linearly."""
    points = np.linspace(-limit, limit, count + 1)
    return np.where(np.isnan(x), x, np.interp(x, points, function(points))).astype(x.dtype)


def _fast_exp(x):
    """Return e^x by writing the exponent's bits, off by some percent."""
    bits = np.clip(12102203.0 * x + 1064866805.0, 1, 2139095039).astype(np.int32)
    return bits.view(np.float32)
