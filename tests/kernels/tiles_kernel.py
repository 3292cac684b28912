"""A kernel for RNN, GRU and LSTM blocked by batch, written from the specification.

Four sequences make a tile; tiles are shared out to three workers, the directions to two if there
is one tile only. A tile walks all steps under a mask; its states swap between two buffers. One
product of [X, H] with [W, R] is unrolled four times over its terms and blocked by 16 columns.
Buffers live as long as the process and are found by shape. Tiny nodes take `tiles_small`. Without
bugs it is right; each bug of `bugs.txt` acts where its name is asked for.
"""

import numpy as np
from kernels.bug import Switches
from kernels.tiles_functions import Activations
from kernels.tiles_node import Node, Weights
from kernels.tiles_small import SmallNode

TILE = 4
WORKERS = 3
UNROLL = 4
COLUMN_BLOCK = 16
SMALL = 4


class TilesKernel:
    """A process with its buffers."""

    def __init__(self, bugs=()):
        self.bug = Switches(bugs)
        self.activations = Activations(self.bug)
        self.buffers = {}
        self.kept = {}
        self.clip = None

    def __call__(self, operator, attributes, inputs, outputs):
        """Return the outputs asked for by name; takes the operator as `GRU-14`."""
        with np.errstate(all="ignore"):
            node = Node(operator, attributes, inputs, self.bug)
            self._remembered(node)
            functions = self.activations.of_node(node.cell, node.directions, attributes)
            found = dict(zip(("Y", "Y_h", "Y_c"), self._run(node, functions, outputs), strict=True))
            if self.bug("y-c-alone-is-y-h") and list(outputs) == ["Y_c"]:
                found["Y_c"] = found["Y_h"]
            return {name: node.stored(name, found[name]) for name in outputs if name}

    def _remembered(self, node):
        """Nothing is remembered of earlier calls but buffers."""
        if self.bug("clip-kept-when-absent"):
            node.clip = self.clip = node.clip or self.clip
        if self.bug("lengths-kept-by-shape"):
            node.lengths = self.kept.setdefault((node.steps, node.batch), node.lengths)

    def buffer(self, dtype):
        """Return what finds buffers of a dtype by name and shape; they hold what they held."""

        def find(name, *shape):
            key = (name, shape, dtype)
            if key not in self.buffers:
                self.buffers[key] = np.zeros(shape, dtype)
            return self.buffers[key]

        return find

    def _run(self, node, functions, outputs):
        find = self.buffer(node.work)
        found = Y, Y_h, Y_c = node.blank(find)
        if 0 < node.batch * node.units <= SMALL and node.steps:
            Y[...] = 0
            SmallNode(node, functions, self.activations, self.bug, self.kept).run(*found)
            return found
        weights = [Weights(node, d, self.kept, self.bug) for d in range(node.directions)]
        if self.bug("weights-kept-by-shape"):
            key = (node.cell, node.W.shape, node.R.shape)
            weights = self.kept.setdefault(key, weights)
        for d, worker, tiles in self._shares(node):
            if self.bug("backward-skipped-without-y") and d and "Y" not in outputs:
                continue
            for first in tiles:
                _Tile(self, node, weights[d], functions[d], d, worker=worker, first=first).run(
                    *found
                )
        if self.bug("backward-states-are-forwards"):
            Y_h[1:], Y_c[1:] = Y_h[:1], Y_c[:1]
        return found

    def _shares(self, node):
        """Yield (direction, worker, first rows of its tiles)."""
        tiles = list(range(0, node.batch, TILE))
        if self.bug("remainder-tile-dropped") and node.batch > TILE and node.batch % TILE:
            tiles.pop()
        for d in range(node.directions):
            if len(tiles) == 1:
                yield d, d, tiles
                continue
            share, left = divmod(len(tiles), WORKERS)
            begin = 0
            for worker in range(WORKERS):
                count = share + (worker < left)
                if self.bug("workers-drop-tiles-left-over") and share:
                    count = share
                if self.bug("last-worker-repeats-first-tiles") and worker == WORKERS - 1:
                    begin = 0
                if self.bug("backward-on-first-worker-only") and d and worker:
                    continue
                yield d, worker, tiles[begin : begin + count]
                begin += count


class _Tile:
    """Up to four rows of one direction."""

    def __init__(self, kernel, node, weights, functions, d, *, worker, first):
        self.kernel, self.node, self.weights, self.functions = kernel, node, weights, functions
        self.bug, self.d, self.first = kernel.bug, d, first
        self.rows = slice(first, min(first + TILE, node.batch))
        self.count = self.rows.stop - first
        find = kernel.buffer(node.work)
        self.pair = [find(f"{name}{worker}", self.count, node.units) for name in ("even", "odd")]
        self.c = find(f"c{worker}", self.count, node.units)
        self.sums = find(f"sums{worker}", self.count, weights.WR.shape[1])
        self.xh = find(f"xh{worker}", self.count, node.inputs + node.units)
        self.lengths = node.lengths[self._rows_of("lengths")]
        self.clip = node.clip

    def _rows_of(self, what):
        """Return the rows to read; of the first tile with a bug."""
        if self.bug(f"{what}-of-first-tile"):
            return slice(0, self.count)
        return self.rows

    def run(self, Y, Y_h, Y_c):
        """Walk all steps; write the rows of the outputs."""
        self._begin()
        turn = 0
        for step in range(self._steps()):
            t = self._time(step)
            active = self._active(t, step)
            if not active.any():
                if self.bug("walk-ends-at-first-empty-step"):
                    break
                if not (self.bug("padding-cleared-in-first-tile") and self.first):
                    Y[t, self.d, self.rows] = 0
                continue
            if self.bug("tile-waits-for-its-first-row") and not active[0]:
                Y[t, self.d, self.rows] = 0
                continue
            turn = self._step(t, active, turn, Y)
        self._end(turn, Y, Y_h, Y_c)

    def _steps(self):
        if self.bug("steps-in-a-byte"):
            return self.node.steps & 0xFF
        return self.node.steps

    def _time(self, step):
        return self.node.steps - 1 - step if self.node.runs_backward(self.d) else step

    def _active(self, t, step):
        lengths = self.lengths
        if self.bug("reverse-mask-counts-from-the-end") and self.node.runs_backward(self.d):
            t = step
        if self.bug("mask-of-first-row-for-tile"):
            lengths = np.full_like(lengths, lengths[0])
        if self.bug("mask-forgets-last-row-of-full-tile") and self.count == TILE:
            lengths = np.append(lengths[:-1], self.node.steps)
        if self.bug("last-valid-step-masked-if-ragged"):
            lengths = np.where(lengths < self.node.steps, lengths - 1, lengths)
        return (t < lengths)[:, None]

    def _begin(self):
        """Fill the states; an initial state that is absent is zero."""
        for state, given, name in (
            (self.pair[0], self.node.h0, "h"),
            (self.c, self.node.c0, "c"),
        ):
            if given is not None:
                state[...] = given[self.d][self._rows_of(f"initial-{name}")]
            elif not self._keeps(name):
                state[...] = 0

    def _keeps(self, name):
        if self.bug(f"{name}-carried-from-tile-to-tile") and self.first:
            return True
        if self.bug("backward-starts-from-forward-state") and self.d:
            self.pair[0][...] = self.kernel.kept.get("last-h", self.pair[0])[: self.count]
            return name == "h"
        return self.bug(f"absent-initial-{name}-keeps-buffer")

    def _step(self, t, active, turn, Y):
        h, new = self.pair[turn], self.pair[1 - turn]
        self._load(t, h, active)
        cell = {"RNN": self._rnn, "GRU": self._gru, "LSTM": self._lstm}[self.node.cell]
        value = cell(h, active)
        if self.bug("units-beyond-128-are-zero"):
            value[:, 128:] = 0
        if self.bug("mask-by-multiplying"):
            mask = active.astype(h.dtype)
            new[...] = value * mask + h * (1 - mask)
        elif self.bug("ended-rows-not-copied"):
            np.copyto(new, value, where=active)
        elif self.bug("states-run-on-in-padding"):
            new[...] = value
        else:
            new[...] = np.where(active, value, h)
        rest = h if self.bug("padding-repeats-state") else 0
        if self.bug("padding-cleared-in-first-tile") and self.first:
            rest = Y[t, self.d, self.rows]
        Y[t, self.d, self.rows] = np.where(active, value, rest)
        return 1 - turn

    def _load(self, t, h, active):
        inputs = self.node.inputs
        x = self.node.X[t, self._rows_of("x")]
        if self.bug("x-offset-in-int16") and t * self.node.X[0].size > 32767:
            x = self.node.X[0, self.rows]
        if (
            self.bug("last-row-of-tile-loses-first-input")
            and self.count == TILE
            and inputs > UNROLL
        ):
            x = x.copy()
            x[-1, 0] = 0
        if self.bug("reverse-flips-inputs") and self.node.runs_backward(self.d):
            x = self.node.X[self.node.steps - 1 - t, self.rows, ::-1]
        self.xh[:, :inputs] = x
        self.xh[:, inputs:] = h

    def _end(self, turn, Y, Y_h, Y_c):
        last = self.pair[0 if self.bug("last-h-from-even-buffer") else turn]
        self.kernel.kept["last-h"] = last.copy()
        Y_h[self.d, self.rows], Y_c[self.d, self.rows] = last, self.c
        if self.bug("reverse-last-h-at-the-end") and self.node.runs_backward(self.d):
            for k, length in enumerate(self.lengths):
                Y_h[self.d, self.first + k] = Y[max(length - 1, 0), self.d, self.first + k]
        empty = np.flatnonzero(self.lengths == 0) + self.first
        Y_h[self.d, empty] = 0
        if self.bug("zero-length-h-from-row-before"):
            Y_h[self.d, empty] = Y_h[self.d, empty - 1]
        if not self.bug("zero-length-keeps-initial-c"):
            Y_c[self.d, empty] = 0

    # The product.

    def _multiply(self, a, b, out):
        """Write a [rows, K] times b [K, columns] to out, in blocks of columns."""
        columns = b.shape[1]
        if a.dtype == np.float32 and self.node.dtype == np.float16 and self.bug("sums-in-float16"):
            out[...] = _summed_in_float16(a.astype(np.float16), b.astype(np.float16))
            return
        full = columns // COLUMN_BLOCK * COLUMN_BLOCK
        for begin in range(0, columns, COLUMN_BLOCK):
            block = slice(begin, min(begin + COLUMN_BLOCK, columns))
            if begin == full and full and self.bug("column-remainder-left-old"):
                continue
            source = block
            if self.bug("third-column-block-is-second") and begin == 2 * COLUMN_BLOCK:
                source = slice(begin - COLUMN_BLOCK, block.stop - COLUMN_BLOCK)
            out[:, block] = self._unrolled(a, b[:, source])
            if begin == full and full and self.bug("column-remainder-first-row-only"):
                out[1:, block] = out[:1, block]

    def _unrolled(self, a, b):
        """Sum four partial sums of every fourth term, and the terms that are left."""
        terms = a.shape[1]
        full = terms // UNROLL * UNROLL
        parts = [a[:, k:full:UNROLL] @ b[k:full:UNROLL] for k in range(UNROLL)]
        if self.bug("fourth-partial-sum-lost-beyond-32") and terms > 32:
            parts.pop()
        if self.bug("sums-restart-after-64") and full > 64:
            parts = [
                a[:, 64 + k : full : UNROLL] @ b[64 + k : full : UNROLL] for k in range(UNROLL)
            ]
        total = sum(parts[1:], parts[0])
        if full == terms:
            return total
        if full and self.bug("terms-left-over-skipped"):
            return total
        if full and self.bug("one-term-left-over-counts"):
            return total + a[:, full : full + 1] @ b[full : full + 1]
        if len(a) == 1 and full > 8 and self.bug("single-row-skips-terms-left-over"):
            return total
        return total + a[:, full:] @ b[full:]

    def _product(self):
        """Return [X, H] times [W, R] with both biases [rows, columns]."""
        self._multiply(self.xh, self.weights.WR, self.sums)
        bias = self.weights.Wb + self.weights.Rb
        if self.bug("bias-for-first-row-of-tile"):
            found = self.sums.copy()
            found[0] += bias
            return found
        if self.bug("bias-not-in-third-tile") and self.first >= 2 * TILE:
            return self.sums.copy()
        if self.bug("bias-added-after-clip") and self.clip is not None:
            return np.clip(self.sums, -self.clip, self.clip) + bias
        return self.sums + bias

    def _apply(self, which, values, clipped=True):
        clip = self.clip
        if self.bug("clip-only-in-first-tile") and self.first:
            clip = None
        if clip is not None and clipped:
            if self.bug("clip-by-comparison-swallows-nan"):
                values = np.where(values > -clip, np.where(values < clip, values, clip), -clip)
                values = values.astype(self.node.work)
            else:
                values = np.clip(values, -clip, clip)
        if self.bug("second-tile-uses-standard-functions") and self.first == TILE:
            plain = (
                ("tanh", 0.0, 0.0) if which or self.node.cell == "RNN" else ("sigmoid", 0.0, 0.0)
            )
            return self.kernel.activations(plain, np.ascontiguousarray(values))
        if self.bug("function-h-is-g") and which == 2:
            which = 1
        return self.kernel.activations(self.functions[which], np.ascontiguousarray(values))

    # Cells: the next H [rows, units], before the mask.

    def _rnn(self, _, __):
        return self._apply(0, self._product())

    def _gru(self, h, _):
        units = self.node.units
        product = self._product()
        z = self._apply(0, product[:, :units])
        r = self._apply(0, product[:, units : 2 * units])
        n = self._apply(1, self._candidate(h, r, product), not self.bug("hidden-gate-not-clipped"))
        if self.bug("reset-kept-in-state"):
            h = h * r
        if self.bug("blend-adds-z-to-candidate"):
            return n + z * h
        if self.bug("update-gate-of-next-unit") and units > 8:
            z = np.roll(z, -1, axis=1)
        return n + z * (h - n) if not np.isinf(n).any() else (1 - z) * n + z * h

    def _candidate(self, h, r, product):
        """Return the pre-activation of the h gate."""
        units, inputs = self.node.units, self.node.inputs
        weights = self.weights
        WR, Wb, Rb = (m[..., 2 * units :] for m in (weights.WR, weights.Wb, weights.Rb))
        linear = bool(self.node.attributes.get("linear_before_reset", 0))
        if self.bug("linear-before-reset-ignored") or (
            self.bug("linear-before-reset-without-b-ignored") and self.node.B is None
        ):
            linear = False
        if not linear:
            self.xh[:, inputs:] = h * (r[:1] if self.bug("reset-of-first-row") else r)
            out = np.zeros((self.count, units), h.dtype)
            self._multiply(self.xh, WR, out)
            return out + (Wb + Rb)
        x_part, h_part = (np.zeros((self.count, units), h.dtype) for _ in range(2))
        self._multiply(self.xh[:, :inputs], WR[:inputs], x_part)
        self._multiply(self.xh[:, inputs:], WR[inputs:], h_part)
        if self.bug("input-bias-inside-reset"):
            return x_part + r * (h_part + Rb + Wb)
        if self.bug("hidden-bias-twice"):
            return x_part + Wb + Rb + r * (h_part + Rb)
        return x_part + Wb + r * (h_part + Rb)

    def _lstm(self, _, active):
        units = self.node.units
        product = self._product()
        i, o, f, g = (product[:, k * units : (k + 1) * units] for k in range(4))
        P = self.weights.P
        if P is not None and self.bug("peepholes-skip-remainder-tile") and self.count < TILE:
            P = np.zeros_like(P) if self.first else P
        old = self.c.copy()
        i = self._gate(i, P, 0, old)
        f = self._forget(f, i, P, old)
        if self.bug("coupled-by-forget-gate") and self.node.attributes.get("input_forget"):
            f = self._gate(product[:, 2 * units : 3 * units], P, 2, old)
            i = 1 - f
        g = self._apply(1, g, not self.bug("cell-gate-not-clipped"))
        new = f * old + i * g
        if self.bug("c-runs-on-in-padding"):
            self.c[...] = new
        else:
            self.c[...] = np.where(active, new, old)
        if self.bug("peephole-of-o-missing"):
            P = None
        o = self._gate(o, P, 1, new)
        if self.bug("h-of-old-c"):
            new = old
        return o * self._apply(2, new)

    def _gate(self, values, P, which, c):
        if P is None:
            return self._apply(0, values)
        if self.bug("peepholes-added-after-clip") and self.clip is not None:
            values = np.clip(values, -self.clip, self.clip) + P[which] * c
            return self._apply(0, values, clipped=False)
        if self.bug("peephole-state-of-first-row"):
            c = np.broadcast_to(c[:1], c.shape)
        return self._apply(0, values + P[which] * c)

    def _forget(self, f, i, P, old):
        if not self.node.attributes.get("input_forget", 0):
            return self._gate(f, P, 2, old)
        if self.bug("coupled-without-peephole") and P is not None:
            return 1 - self._apply(0, self._product()[:, : self.node.units])
        return 1 - i


def _summed_in_float16(a, b):
    """Return a product whose sums are rounded to float16 after each term."""
    total = np.zeros((len(a), b.shape[1]), np.float16)
    for k in range(len(b)):
        total += a[:, k : k + 1] * b[k : k + 1]
    return total
