"""The path of the kernel blocked by batch for tiny nodes: plain loops over sequences and units."""

import math

import numpy as np


class SmallNode:
    """A node of at most four units over all its sequences."""

    def __init__(self, node, functions, activations, bug, kept):
        self.node, self.functions, self.activations, self.bug = node, functions, activations, bug
        self.kept = kept
        self.d = 0

    def run(self, Y, Y_h, Y_c):
        """Write the outputs, sequence by sequence."""
        for d in range(self.node.directions):
            self.d = 0 if self.bug("small-backward-has-forward-weights") else d
            for n in range(self.node.batch):
                h, c = self._begin(d, n)
                length = int(self.node.lengths[n])
                if self.bug("small-ignores-lengths"):
                    length = self.node.steps
                for step in range(length):
                    t = self._time(d, step, length)
                    h, c = self._step(self.node.X[t, n], h, c)
                    Y[t, d, n] = h
                if length or self.bug("small-zero-length-writes-zero-h-only"):
                    Y_c[d, n] = c
                if length:
                    Y_h[d, n] = h

    def _begin(self, d, n):
        zero = np.zeros(self.node.units, self.node.work)
        h0, c0 = self.node.h0, self.node.c0
        h = zero if h0 is None else h0[d, n]
        if self.bug("small-ignores-initial-c"):
            c0 = None
        if self.bug("small-initial-h-of-first-sequence") and h0 is not None:
            h = h0[d, 0]
        return h.copy(), (zero if c0 is None else c0[d, n]).copy()

    def _time(self, d, step, length):
        if not self.node.runs_backward(d):
            return step
        if self.bug("small-reverse-walks-forward"):
            return step
        return length - 1 - step

    def _sum(self, gate, u, x, h, biases=True):
        """Return one unit's products for one gate, the input's and the state's apart."""
        row = gate * self.node.units + u
        W, R = self.node.W[self.d], self.node.R[self.d]
        left, right = float(W[row] @ x), float(R[row] @ h)
        if self.bug("small-first-input-only") and len(x) > 1:
            left = float(W[row, 0] * x[0])
        if self.node.B is not None and biases:
            Wb, Rb = np.split(self.node.B[self.d], 2)
            left += float(Wb[row])
            if not self.bug("small-has-no-recurrent-bias"):
                right += float(Rb[row])
        return left, right

    def _apply(self, which, value):
        clip = self.node.clip
        if clip is not None and not self.bug("small-does-not-clip"):
            value = value if math.isnan(value) else min(max(value, -clip), clip)
        function = self.functions[self.d][which]
        if self.bug("small-functions-without-values"):
            function = (function[0], 1.0, 0.0)
        return self.activations(function, np.full(1, value, self.node.work))[0]

    def _step(self, x, h, c):
        new = h if self.bug("small-updates-in-place") else h.copy()
        cell = {"RNN": self._rnn, "GRU": self._gru, "LSTM": self._lstm}[self.node.cell]
        for u in range(self.node.units):
            new[u] = cell(u, x, h, c)
        return new, c

    def _rnn(self, u, x, h, _):
        return self._apply(0, sum(self._sum(0, u, x, h)))

    def _gru(self, u, x, h, _):
        z = self._apply(0, sum(self._sum(0, u, x, h)))
        if self.node.attributes.get("linear_before_reset", 0):
            r = self._apply(0, sum(self._sum(1, u, x, h)))
            left, right = self._sum(2, u, x, h)
            if self.bug("small-linear-before-reset-ignored"):
                r = self.node.work(1)
            n = self._apply(1, left + float(r) * right)
        else:
            n = self._apply(1, sum(self._sum(2, u, x, self._reset(x, h))))
        if self.bug("small-blend-inverted"):
            z = 1 - z
        return (1 - z) * n + z * h[u]

    def _reset(self, x, h):
        r = [self._apply(0, sum(self._sum(1, u, x, h))) for u in range(self.node.units)]
        if self.bug("small-reset-of-first-unit"):
            r = r[:1] * len(r)
        return h * np.array(r, self.node.work)

    def _lstm(self, u, x, h, c):
        P = self.node.P
        has = P is not None and not self.bug("small-has-no-peepholes")
        Pi, Po, Pf = P[self.d].reshape(3, -1)[:, u] if has else (0.0, 0.0, 0.0)
        i, o, f, g = (sum(self._sum(gate, u, x, h)) for gate in range(4))
        i = self._apply(0, i + float(Pi * c[u]))
        coupled = self.node.attributes.get("input_forget", 0)
        if coupled and not self.bug("small-input-forget-ignored"):
            f = 1 - i
        else:
            f = self._apply(0, f + float(Pf * c[u]))
        c[u] = f * c[u] + i * self._apply(1, g)
        return self._apply(0, o + float(Po * c[u])) * self._apply(2, float(c[u]))
