"""What the kernel blocked by batch reads of a node; layout 1 is a matter of strides.

X, the states and the outputs are seen through views [steps, batch, ...], whatever the layout.
"""

import numpy as np

COLUMNS = {"RNN": 1, "GRU": 3, "LSTM": 4}


class Node:
    """A node's inputs as views, and its outputs as arrays with views to write through."""

    def __init__(self, operator, attributes, inputs, bug):
        self.bug = bug
        self.cell = operator.partition("-")[0]
        self.dtype = inputs["X"].dtype
        self.work = np.float64 if self.dtype == np.float64 else np.float32
        self.layout = attributes.get("layout", 0)
        self.attributes = attributes
        self.W, self.R = (inputs[name].astype(self.work) for name in "WR")
        self.X = self._x(inputs["X"])
        self.steps, self.batch, self.inputs = self.X.shape
        self.directions, _, self.units = self.R.shape
        self.B = self._optional(inputs, "B")
        self.P = self._optional(inputs, "P")
        self.h0 = self._state(inputs, "initial_h")
        self.c0 = self._state(inputs, "initial_c")
        lengths = inputs.get("sequence_lens")
        self.lengths = np.full(self.batch, self.steps) if lengths is None else self._taken(lengths)
        self.clip = self._clip()
        self.backward = attributes.get("direction", "forward") == "reverse"

    def runs_backward(self, d):
        """Whether a direction is walked from the end."""
        return self.backward or d == 1

    def _x(self, X):
        X = X.astype(self.work)
        if self.bug("float64-inputs-through-float32"):
            X = X.astype(np.float32).astype(self.work)
        if self.layout:
            square = X.shape[0] == X.shape[1]
            return X if square and self.bug("layout-of-square-x-ignored") else X.transpose(1, 0, 2)
        if self.bug("steps-equal-batch-taken-for-layout-1") and X.shape[0] == X.shape[1]:
            return X.transpose(1, 0, 2)
        return X

    def _optional(self, inputs, name):
        return inputs[name].astype(self.work) if name in inputs else None

    def _state(self, inputs, name):
        state = self._optional(inputs, name)
        if state is None:
            return None
        if self.layout:
            state = state.transpose(1, 0, 2)
        square = state.shape[1] == state.shape[2]
        if square and self.bug("square-initial-states-transposed"):
            state = state.transpose(0, 2, 1)
        if self.bug("initial-states-of-directions-exchanged"):
            state = state[::-1]
        return state

    def _taken(self, lengths):
        if self.bug("lengths-in-signed-bytes"):
            lengths = lengths.astype(np.int8)
        if self.bug("longest-length-for-all"):
            lengths = np.full_like(lengths, lengths.max(initial=0))
        if self.bug("lengths-below-two-are-full"):
            lengths = np.where(lengths < 2, self.steps, lengths)
        return lengths.astype(np.int64)

    def _clip(self):
        clip = self.attributes.get("clip")
        if clip is None:
            return None
        if self.bug("clip-rounded-to-float16"):
            return float(np.float16(clip))
        return float(np.float32(clip))

    def blank(self, buffer):
        """Return Y, Y_h, Y_c as views [steps, directions, batch, units] and [directions, ...]."""
        shape = (self.steps, self.directions, self.batch, self.units)
        states = (self.directions, self.batch, self.units)
        return buffer("Y", *shape), np.zeros(states, self.work), np.zeros(states, self.work)

    def stored(self, name, values):
        """Return an output in the node's layout and dtype."""
        if self.layout:
            values = self._batch_first(name, values)
        return values.astype(self.dtype)

    def _batch_first(self, name, values):
        if name != "Y":
            if name == "Y_c" and self.bug("layout-of-y-c-ignored"):
                return values.reshape(values.shape[1], values.shape[0], values.shape[2])
            return values.transpose(1, 0, 2)
        if self.bug("layout-1-exchanges-directions"):
            values = values[:, ::-1]
        if self.bug("layout-1-y-as-steps-first"):
            turned = values.transpose(0, 2, 1, 3)
            return turned.reshape(self.batch, self.steps, self.directions, self.units)
        return values.transpose(2, 0, 1, 3)


class Weights:
    """One direction's [W, R] concatenated: [inputs + units, columns], with biases and peepholes."""

    def __init__(self, node, d, kept, bug):
        self.bug = bug
        count, units = COLUMNS[node.cell], node.units
        W, R = (self._gates(node, m, name) for m, name in ((node.W[d], "w"), (node.R[d], "r")))
        if self.bug("square-w-transposed") and node.inputs == units:
            W = W.reshape(count, units, units).transpose(0, 2, 1).reshape(count * units, units)
        if self.bug("r-of-each-gate-transposed"):
            R = R.reshape(count, units, units).transpose(0, 2, 1).reshape(count * units, units)
        self.WR = np.concatenate([W.T, R.T])
        if self.bug("state-weights-at-aligned-row") and node.inputs % 4:
            self.WR[node.inputs :] = np.roll(self.WR[node.inputs :], -node.inputs % 4, axis=0)
        if self.bug("more-inputs-than-units-cut") and node.inputs > units:
            self.WR[units : node.inputs] = 0
        self.Wb, self.Rb = self._biases(node, d, count * units, kept)
        self.P = self._peepholes(node, d, kept)

    def _gates(self, node, matrix, name):
        """Return the rows in the kernel's order, which is ONNX's."""
        if node.cell == "RNN":
            return matrix
        order = list(range(COLUMNS[node.cell]))
        if self.bug(f"update-and-reset-of-{name}-exchanged") and node.cell == "GRU":
            order = [1, 0, 2]
        if self.bug(f"{name}-in-order-ifco") and node.cell == "LSTM":
            order = [0, 2, 3, 1]
        return np.concatenate([matrix[g * node.units : (g + 1) * node.units] for g in order])

    def _biases(self, node, d, columns, kept):
        B = node.B
        if B is None:
            if self.bug("bias-kept-when-absent") and (columns, node.cell) in kept:
                B = kept[columns, node.cell][:1].repeat(node.directions, axis=0)
            else:
                zeros = np.zeros(columns, node.work)
                return zeros, zeros
        kept[columns, node.cell] = B
        if self.bug("bias-of-forward") and d:
            d = 0
        Wb, Rb = B[d][:columns], B[d][columns:]
        if self.bug("second-input-bias-from-recurrent") and d:
            Wb = Rb
        Wb, Rb = Wb.copy(), Rb.copy()
        if self.bug("bias-in-order-ifco") and node.cell == "LSTM":
            Wb = Wb.reshape(4, -1)[[0, 2, 3, 1]].ravel()
        if self.bug("forget-bias-plus-one") and node.cell == "LSTM":
            Wb.reshape(4, -1)[2] += 1
        return Wb, Rb

    def _peepholes(self, node, d, kept):
        P = node.P
        if P is None:
            if not (self.bug("peepholes-kept-when-absent") and ("P", node.units) in kept):
                return None
            P = kept["P", node.units][:1].repeat(node.directions, axis=0)
        kept["P", node.units] = P
        P = P[d].reshape(3, node.units)
        return P[[2, 1, 0]] if self.bug("peepholes-of-i-and-f-exchanged") else P
