"""A kernel for RNN, GRU and LSTM blocked by hidden units, written from the specification.

Weights are packed in gate-interleaved panels of 8 units, sums run over blocks of 16 with a
remainder, the input's products are made for chunks of 16 steps, the batch is sorted by length, and
scratch buffers are kept between calls. Sizes of 1 and the first step take fast paths. Without bugs
it is right; each bug of `bugs.txt` acts where its name is asked for.
"""

import numpy as np
from kernels.bug import Switches
from kernels.units_functions import LANES, Functions
from kernels.units_packing import GATES, PANEL, Packer, read_layer

BLOCK = 16
CHUNK = 16


class UnitsKernel:
    """One session: its scratch buffers live as long as it does."""

    def __init__(self, bugs=()):
        self.bug = Switches(bugs)
        self.functions = Functions(self.bug)
        self.packer = Packer(self.bug)
        self.buffers = {}

    def __call__(self, operator, attributes, inputs, outputs):
        """Return the outputs asked for by name; takes the operator as `LSTM-14`."""
        with np.errstate(all="ignore"):
            layer = read_layer(operator, attributes, inputs, self.functions, self.bug)
            found = self._run(layer, outputs)
            return {name: self._given(layer, name, found[name]) for name in outputs if name}

    def scratch(self, name, shape, dtype):
        """Return a buffer kept between calls: whatever is in it is old."""
        size = int(np.prod(shape))
        kept = self.buffers.get((name, dtype))
        if kept is None or kept.size < size:
            kept = self.buffers[name, dtype] = np.zeros(size, dtype)
        return kept[:size].reshape(shape)

    def _run(self, layer, outputs):
        steps, batch, _, units = layer.sizes
        directions = len(layer.reverse)
        Y = self.scratch("Y", (steps, directions, batch, units), layer.X.dtype)
        self._clear_padding(layer, Y)
        last = np.zeros((2, directions, batch, units), layer.X.dtype)
        for d in range(directions):
            _Direction(self, layer, d, Y, last, writes="Y" in outputs).run()
        return {"Y": Y, "Y_h": last[0], "Y_c": last[1]}

    def _clear_padding(self, layer, Y):
        """Zero what no step writes."""
        if self.bug("padding-never-cleared"):
            return
        if self.bug("padding-cleared-to-longest-only") and layer.lengths.size:
            Y = Y[: layer.lengths.max()]
        if self.bug("padding-cleared-in-first-direction"):
            Y = Y[:, :1]
        Y[...] = 0

    def _given(self, layer, name, values):
        if layer.batch_first:
            values = self._batch_first(name, values)
        return values.astype(layer.dtype)

    def _batch_first(self, name, values):
        if name != "Y":
            if self.bug("layout-of-last-states-ignored"):
                return values.reshape(values.shape[1], values.shape[0], values.shape[2])
            return values.transpose(1, 0, 2)
        if self.bug("layout-of-y-keeps-directions-first"):
            steps, directions, batch, units = values.shape
            return values.transpose(2, 1, 0, 3).reshape(batch, steps, directions, units)
        return values.transpose(2, 0, 1, 3)


class _Direction:
    """One direction of one call.

    States, gates and inputs are in the order of the sorted batch, longest first.
    """

    def __init__(self, kernel, layer, d, Y, last, *, writes):
        self.kernel, self.layer, self.d, self.Y, self.last = kernel, layer, d, Y, last
        self.bug = kernel.bug
        self.writes = writes
        self.gates = GATES[layer.cell]
        self.functions = layer.functions[d]
        self.weights = kernel.packer.pack(layer, d)
        self.order = self._sorted(layer.lengths)
        self.lengths = layer.lengths[self.order]
        _, self.batch, self.inputs, self.units = layer.sizes
        self.panels = len(self.weights.R)

    def _sorted(self, lengths):
        if self.bug("sorts-first-sixteen-rows-only"):
            first = np.argsort(-lengths[:16], kind="stable")
            return np.concatenate([first, np.arange(len(first), len(lengths))])
        return np.argsort(-lengths, kind="stable")

    def scratch(self, name, *shape):
        return self.kernel.scratch(name, shape, self.layer.X.dtype)

    def run(self):
        """Walk the steps and leave the last states."""
        longest = int(self.lengths.max()) if self.batch else 0
        if not longest and self.bug("nothing-to-walk-leaves-old-states"):
            old = self.scratch("h", self.batch, self.units)
            self.last[0, self.d] = old
            return
        h, c = self._initial("h"), self._initial("c")
        self.pair = (h, self.scratch("h-next", *h.shape))
        if self.layer.X.shape[0] == 1:
            h, c = self._one_step(h, c)
        else:
            h, c = self._walk(h, c, longest)
        self._leave(h, c)

    def _initial(self, name):
        """Return the sorted initial state in a buffer of its own."""
        state = self.scratch(name, self.batch, self.units)
        given = getattr(self.layer, name)
        if given is None:
            if not self.bug(f"initial-{name}-not-cleared"):
                state[...] = 0
            return state
        order = self.order
        if self.bug(f"initial-{name}-not-sorted"):
            order = slice(None)
        state[...] = given[0 if self.bug(f"initial-{name}-of-forward") else self.d][order]
        return state

    def _one_step(self, h, c):
        """Do a single step without chunks."""
        live = self._live(0)
        if self.bug("one-step-ignores-lengths"):
            live = self.batch
        if self.bug("one-step-starts-from-zero-h"):
            h[...] = 0
        if self.bug("one-step-starts-from-zero-c"):
            c[...] = 0
        if live:
            pre = self._project(0, 1)[0]
            h, c = self._step(h, c, pre, live, self.layer.h is None)
            self._write(0, h, live)
        return h, c

    def _walk(self, h, c, longest):
        for start in range(0, longest, CHUNK):
            stop = min(start + CHUNK, longest)
            projected = self._project(start, stop)
            if start and self.bug("chunk-restarts-h"):
                h[...] = 0
            if start and self.bug("chunk-restarts-c"):
                c[...] = 0
            for s in range(start, stop):
                live = self._live(s)
                zero = s == 0 and self.layer.h is None
                if self.bug("first-step-of-chunk-skips-recurrence"):
                    zero = self.layer.h is None and s % CHUNK == 0
                if self.bug("first-step-skips-initial-h"):
                    zero = s == 0
                h, c = self._step(h, c, projected[s - start], live, zero)
                self._write(s, h, live)
                self._finish(s, h, live)
        return h, c

    def _finish(self, s, h, live):
        """Nothing to do: rows beyond the live ones are not touched."""
        if self.bug("longest-row-restarts-when-others-end") and 0 < live < self._live(s - 1) and s:
            h[0] = 0

    def _live(self, s):
        """Return how many rows still have a step `s`."""
        live = int(np.count_nonzero(self.lengths > s))
        if self.bug("live-rows-rounded-up-to-four"):
            live = min(-(-live // 4) * 4, self.batch) if live else 0
        if self.bug("live-rows-one-too-many-beyond-eight") and live > 8:
            live = min(live + 1, self.batch)
        return live

    def _times(self, s, live):
        """Return the index in time of step `s` of each live row."""
        if not self.layer.reverse[self.d]:
            return np.full(live, s)
        if self.bug("reverse-begins-in-padding"):
            return np.full(live, self.layer.X.shape[0] - 1 - s)
        # A row that is taken along although it has ended reads its first step again.
        return np.maximum(self.lengths[:live] - 1 - s, 0)

    def _write(self, s, h, live):
        if not self.writes:
            return
        times = self._times(s, live)
        if self.bug("reverse-output-in-walking-order"):
            times = np.full(live, s)
        rows = self.order[:live]
        if self.bug("y-not-unsorted"):
            rows = np.arange(live)
        if self.bug("y-offset-in-uint16"):
            fits = (times * self.Y[0].size + rows * self.units) < 65536
            times, rows = times[fits], rows[fits]
            self.Y[times, self.d, rows] = h[:live][fits]
            return
        self.Y[times, self.d, rows] = h[:live]

    def _leave(self, h, c):
        """Put the last states where the sequences stood before they were sorted."""
        for k, (name, state) in enumerate((("h", h), ("c", c))):
            rows = self.order
            if self.bug(f"last-{name}-not-unsorted"):
                rows = np.arange(self.batch)
            self.last[k, self.d, rows] = state
        empty = self.layer.lengths == 0
        if self.bug("zero-length-leaves-c"):
            self.last[0, self.d, empty] = 0
        else:
            self.last[:, self.d, empty] = 0
        if self.bug("last-h-from-y") and self.writes and not self.layer.reverse[self.d]:
            self.last[0, self.d] = self.Y[-1, self.d]
        if self.bug("last-h-without-y-is-of-longest") and not self.writes and self.batch:
            self.last[0, self.d, self.lengths[0] > self.layer.lengths] = 0

    # Products.

    def _project(self, start, stop):
        """Return [steps, batch, panels, gates * 8]: the input's products and the biases."""
        if self.bug("second-chunk-reads-first-inputs") and start:
            stop, start = stop - start, 0
        out = self.scratch("projected", stop - start, self.batch, self.panels, self.gates * PANEL)
        done = stop - start
        if self.bug("last-step-of-full-chunk-not-projected") and done == CHUNK:
            done -= 1
        for k in range(done):
            self._project_step(start + k, out[k])
        return out

    def _project_step(self, s, out):
        live = self._live(s)
        x = self.layer.X[self._times(s, live), self.order[:live]]
        out[...] = self.weights.bias
        if self.bug("bias-of-first-step-only") and s >= CHUNK:
            out[...] = 0
        if self.bug("bias-lost-beyond-65536-rows") and s * self.batch > 65536:
            out[...] = 0
        if self.inputs == 1 and self.units > 1:
            self._project_single(x, out, live)
            return
        rows = min(live, 64) if self.bug("only-64-rows-projected") else live
        for p in range(self.panels):
            self._multiply(x[:rows], self.weights.W[p], out[:rows, p], "input")

    def _project_single(self, x, out, live):
        """Multiply one input by the column of every panel."""
        if self.bug("one-input-drops-bias"):
            out[...] = 0
        W = self.weights.W[:, 0]
        if self.bug("one-input-first-panel-for-all"):
            W = np.broadcast_to(W[:1], W.shape)
        out[:live] += x[:, 0, None, None] * W

    def _multiply(self, a, panel, out, name):
        """Add a [rows, K] times panel [K, columns] to out, block by block."""
        K = a.shape[1]
        full = K // BLOCK * BLOCK
        limit = min(full, 2 * BLOCK) if self.bug(f"{name}-blocks-beyond-two-skipped") else full
        for k in range(0, limit, BLOCK):
            if self.bug(f"{name}-second-block-overwrites") and k == BLOCK:
                out[...] = 0
            source = 0 if self.bug(f"{name}-second-block-reads-first") and k == BLOCK else k
            out += a[:, source : source + BLOCK] @ panel[k : k + BLOCK]
        if full == K or (full and self.bug(f"{name}-remainder-skipped")):
            return
        if full and self.bug(f"{name}-remainder-overwrites"):
            out[...] = 0
        stop = K - 1 if full and self.bug(f"{name}-remainder-one-short") else K
        out += a[:, full:stop] @ panel[full:stop]

    def _recur(self, h, pre, live, first, last):
        """Add the state's products for gates first to last, panel by panel."""
        R, columns = self.weights.R, slice(first * PANEL, last * PANEL)
        if self.units == 1:
            self._recur_single(h, pre, live, columns)
            return
        h = self._stale(h)
        for p in range(self.panels):
            rows = live
            if self.bug("last-panel-misses-last-row") and p and p == self.panels - 1:
                rows = max(live - 1, 0)
            self._multiply(h[:rows], R[p][:, columns], pre[:rows, p, columns], "state")

    def _recur_single(self, h, pre, live, columns):
        """One unit: its state times one weight for each gate."""
        if self.bug("one-unit-has-no-recurrence"):
            return
        R = self.weights.R[0, 0]
        if self.bug("one-unit-uses-first-gate-weight"):
            R = np.repeat(R[::PANEL][:1], len(R))
        pre[:live, 0, columns] += h[:live, :1] * R[columns]

    def _stale(self, h):
        """Return the state to multiply by; a bug copies its second block one step late."""
        if self.bug("second-state-block-one-step-late"):
            old = self.scratch("stale", *h.shape)
            mixed = h.copy()
            mixed[:, BLOCK : 2 * BLOCK] = old[:, BLOCK : 2 * BLOCK]
            old[...] = h
            return mixed
        return h

    def _gate(self, pre, g):
        """Return one gate's columns of [live, panels, gates * 8] as [live, units]."""
        part = pre[:, :, g * PANEL : (g + 1) * PANEL]
        return part.reshape(len(part), -1)[:, : self.units]

    def _apply(self, which, values):
        clip = self.layer.clip
        if self.bug("clip-forgotten-backward") and self.d:
            clip = None
        if self.bug("one-unit-not-clipped") and self.units == 1:
            clip = None
        function = self.functions[which]
        if self.bug("one-row-uses-usual-functions") and self.batch == 1:
            function = (("tanh", "sigmoid")[len(self.functions) > 1 and which == 0], None, None)
        return self.kernel.functions.apply(function, values, clip)

    # Cells. Each returns the next state in a buffer of its own.

    def _step(self, h, c, pre, live, zero):
        """Do one step of the first `live` rows; `zero` says that h is all zeros."""
        pre = pre[:live]
        cell = {"RNN": self._rnn, "GRU": self._gru, "LSTM": self._lstm}[self.layer.cell]
        new = self.pair[h is self.pair[0]]
        new[live:] = h[live:]
        new[:live] = cell(h, c, pre, live, zero)
        if self.bug("ended-rows-lose-state"):
            new[live:] = 0
        return new, c

    def _rnn(self, h, _, pre, live, zero):
        if not zero:
            self._recur_maybe_in_place(h, pre, live)
        return self._apply(0, self._gate(pre, 0))

    def _recur_maybe_in_place(self, h, pre, live):
        if not self.bug("state-updated-panel-by-panel"):
            self._recur(h, pre, live, 0, 1)
            return
        for p in range(self.panels):
            part = slice(p * PANEL, min((p + 1) * PANEL, self.units))
            self._multiply(h[:live], self.weights.R[p], pre[:, p], "state")
            h[:live, part] = self._apply(0, self._gate(pre, 0))[:, part]

    def _gru(self, h, _, pre, live, zero):
        if not zero:
            self._recur(h, pre, live, 0, 2)
        z = self._apply(0, self._gate(pre, 0))
        r = self._apply(0, self._gate(pre, 1))
        hidden = self._hidden_products(h, pre, live, zero, r)
        new = self._apply(1, self._gate(pre, 2) + hidden)
        return self._blend(z, new, h[:live])

    def _hidden_products(self, h, pre, live, zero, r):
        """Return what the state adds to the h gate [live, units]."""
        name = "hidden-linear" if self.layer.linear_first else "hidden"
        out = self.scratch(name, live, self.panels, 3 * PANEL)
        if not (self.layer.B is None and self.bug("linear-output-not-cleared-without-bias")):
            out[...] = 0
        if self.layer.linear_first:
            out[:, :, 2 * PANEL :] += self.weights.hidden_bias
            if zero and self.bug("first-step-drops-hidden-bias"):
                out[...] = 0
            if not zero:
                self._recur(h, out, live, 2, 3)
            return self._gate(out, 2) * r
        if not zero:
            reset = h.copy()
            width = self.units
            if self.bug("reset-of-first-panel-only"):
                width = min(PANEL, width)
            reset[:live, :width] *= r[:, :width]
            if self.bug("reset-tail-unreset") and self.units > LANES:
                full = self.units // LANES * LANES
                reset[:live, full:] = h[:live, full:]
            self._recur(reset, out, live, 2, 3)
        return self._gate(out, 2)

    def _blend(self, z, new, h):
        mixed = (1 - z) * new + z * h
        full = self.units // LANES * LANES
        if self.bug("blend-inverted-in-tail") and full:
            mixed[:, full:] = (z * new + (1 - z) * h)[:, full:]
        if self.bug("blend-inverted"):
            mixed = z * new + (1 - z) * h
        return mixed

    def _lstm(self, h, c, pre, live, zero):
        if not zero:
            self._recur(h, pre, live, 0, 4)
        rows = self.batch if self.bug("ended-rows-update-c") else live
        Pi, Po, Pf = self.weights.P
        old = c[:live].copy()
        i = self._apply(0, self._gate(pre, 0) + Pi * old)
        if self.layer.coupled:
            f = 1 - i
            if self.bug("coupled-gates-exchanged"):
                i, f = f, i
        else:
            f = self._apply(0, self._gate(pre, 2) + Pf * old)
        if self.bug("forget-gate-through-usual-sigmoid"):
            f = 1 / (1 + np.exp(-(self._gate(pre, 2) + Pf * old)))
        candidate = self._apply(1, self._gate(pre, 3))
        c[:live] = self._cell(f, old, i, candidate)
        if rows > live:
            c[live:] *= 0.5
        seen = old if self.bug("output-peephole-sees-old-c") else c[:live]
        o = self._apply(0, self._gate(pre, 1) + Po * seen)
        if self.bug("clipped-c-is-kept") and self.layer.clip is not None:
            np.clip(c, -self.layer.clip, self.layer.clip, out=c)
        return o * self._apply(2, c[:live])

    def _cell(self, f, old, i, candidate):
        new = f * old + i * candidate
        full = self.units // LANES * LANES
        if self.bug("cell-tail-forgets-old") and full:
            new[:, full:] = (i * candidate)[:, full:]
        if self.bug("cell-body-last-vector-stale") and full >= 2 * LANES:
            new[:, full - LANES : full] = old[:, full - LANES : full]
        return new
