"""One forward LSTM layer: python lstm.py MODEL INPUTS.npz OUTPUTS.npz"""

import sys

import numpy as np
import onnx


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(X, W, R, B=0, sequence_lens=None, initial_h=0, initial_c=0):
    steps, batch, hidden = X.shape[0], X.shape[1], R.shape[2]
    Wb, Rb = np.split(np.broadcast_to(B, (1, 8 * hidden))[0], 2)
    lengths = np.full(batch, steps) if sequence_lens is None else sequence_lens
    h = np.broadcast_to(initial_h, (1, batch, hidden))[0]
    c = np.broadcast_to(initial_c, (1, batch, hidden))[0]
    Y = np.zeros((steps, 1, batch, hidden), "f")
    for t in range(steps):
        i, f, g, o = np.split(X[t] @ W[0].T + h @ R[0].T + Wb + Rb, 4, axis=1)
        live = t < lengths[:, None]
        c = np.where(live, sigmoid(f) * c + sigmoid(i) * np.tanh(g), c)
        h = np.where(live, sigmoid(o) * np.tanh(c), h)
        Y[t, 0] = h
    return {"Y": Y, "Y_h": h[None], "Y_c": c[None]}


model, inputs, outputs = sys.argv[1:]
made = lstm(**np.load(inputs))
asked = [output.name for output in onnx.load(model).graph.output]
np.savez(outputs, **{name: made[name].astype("f") for name in asked})
