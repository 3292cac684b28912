"""TFLite's integer LSTM in Python integers, one number at a time, under any readings.

It shares nothing with the package: whoever wrote it had tflite-micro's and CMSIS-NN's sources, and
checked it against both and against LiteRT on thousands of random models, whose every bit it gives.
gemmlowp's functions are not here; tests hold them to the hashes of what LiteRT computes.
"""

import math
import struct

GATES = ("input", "forget", "cell", "output")
ONE_MORE = (
    *(4, 8, 12, 14, 15, 16, 17, 19, 20, 21, 22, 25, 27, 28, 29, 30, 31, 33, 34, 35, 37, 39, 40, 41),
    *(43, 44, 45, 46, 49, 50, 54, 62, 63, 64, 66, 82, 86, 93, 100, 103, 112, 116, 135, 255),
)
TABLE = [
    math.floor(65536 / (1 + math.exp(-i / 24)) + 0.5) + (1 if i in ONE_MORE else 0)
    for i in range(256)
]


class UndefinedResult(Exception):  # noqa: N818 -- what C leaves open is no error of ours
    """The sources have no defined result."""


def float32(value):
    """The nearest float32."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def within(value, bits):
    """The value itself, if that many bits and a sign hold it."""
    if not -(1 << bits) <= value < 1 << bits:
        raise UndefinedResult
    return value


def saturated(value, bits=16):
    """The nearest integer of as many bits."""
    top = 1 << (bits - 1)
    return max(-top, min(top - 1, value))


def multiplier(factor, *, single):
    """Mantissa of 31 bits and shift of a factor."""
    fraction, shift = math.frexp(factor)
    mantissa = math.floor(fraction * 2147483648.0 + 0.5)
    if mantissa == 1 << 31:
        mantissa, shift = mantissa // 2, shift + 1
    if shift < -31:
        return 0, 0
    return ((1 << 31) - 1, 30) if single and shift > 30 else (mantissa, shift)


def shifted(x, bits):
    """RoundingDivideByPOT."""
    mask = (1 << bits) - 1
    return (x >> bits) + (1 if x & mask > (mask >> 1) + (1 if x < 0 else 0) else 0)


def scaled(x, factor, *, single):
    """MultiplyByQuantizedMultiplier of 32 bits."""
    mantissa, shift = factor
    within(x, 31)
    if single:
        return within((x * mantissa + (1 << (30 - shift))) >> (31 - shift), 31)
    product = within(x << max(shift, 0), 31) * mantissa
    nudged = product + ((1 << 30) if product >= 0 else 1 - (1 << 30))
    high = nudged >> 31 if nudged >= 0 else -(-nudged >> 31)
    return shifted(high, max(-shift, 0))


def scaled_wide(x, factor):
    """MultiplyByQuantizedMultiplier of 64 bits."""
    mantissa, shift = factor
    within(x, 47)
    if shift >= 8:
        raise UndefinedResult
    narrow = (mantissa + (1 << 15)) >> 16 if mantissa < 0x7FFF0000 else 0x7FFF
    return within((x * narrow + (1 << (14 - shift))) >> (15 - shift), 31)


def sigmoid(x):
    """The table's, of 12 bits of fraction, with 15."""
    v = 3 * x
    k = abs(v) >> 9
    found = 0x7FFF << 10
    if k < 255:
        found = (TABLE[k] << 9) + (abs(v) & 511) * (TABLE[k + 1] - TABLE[k])
    return (found + 512 if v >= 0 else (1 << 25) - found + 511) >> 10


def tanh(x, exponent=-12):
    """The table's, of x * 2^exponent."""
    shift = exponent + 12
    v = within(x * (3 << shift), 31) if shift >= 0 else (3 * x + (1 << (-shift - 1))) >> -shift
    k = abs(v) >> 8
    found = 0xFFFF << 8
    if k < 255:
        found = (TABLE[k] << 8) + (abs(v) & 255) * (TABLE[k + 1] - TABLE[k])
    return (found - (1 << 23) + 128 if v >= 0 else -found + (1 << 23) + 127) >> 8


def evaluate(attributes, inputs, read, functions=(sigmoid, tanh, tanh)):
    """Return output, final_output_state and final_cell_state as nested lists.

    `read` has a choice of every reading but the preset; the functions are those of gates, of the
    cell gate and, given the exponent, of the cell state.
    """
    a, single = attributes, read["rounding"] == "single"
    is_wide = inputs["input"].dtype.itemsize == 2
    x, W, R, b = (
        inputs["input"].tolist(),
        [inputs[f"input_to_{gate}_weights"].tolist() for gate in GATES],
        [inputs[f"recurrent_to_{gate}_weights"].tolist() for gate in GATES],
        [inputs[f"{gate}_gate_bias"].tolist() for gate in GATES],
    )
    if a["time_major"]:
        x = [list(sequence) for sequence in zip(*x, strict=True)]
    units, sc = range(len(R[0])), float32(a["cell_state_scale"])
    sx, sh = float32(a["input_scale"]), float32(a["output_state_scale"])
    zx, zh = a["input_zero_point"], a["output_state_zero_point"]
    product = float32 if read["scale-product"] == "float32" else float
    of_x = [
        multiplier(product(sx * float32(s)) * 4096, single=single) for s in a["input_weight_scales"]
    ]
    of_h = [
        multiplier(product(sh * float32(s)) * 4096, single=single)
        for s in a["recurrent_weight_scales"]
    ]
    exponent = round(math.log2(sc))
    kept_by = multiplier(2.0**-15, single=single)
    written_by = multiplier(2.0**-30 / sc, single=single)
    out, made_by = zh, multiplier(2.0**-30 / sh, single=single)
    if read["hidden-scale"] == "intermediate":
        scale, out = (
            (sh, zh) if a["hidden_scale"] is None else (a["hidden_scale"], a["hidden_zero_point"])
        )
        made_by = multiplier(float32(2.0**-30 / float32(scale)), single=single)
    clip = float32(a["cell_clip"])
    bound = int(min(clip / sc, 32767.0))
    is_clipped = clip > 0 if read["clip-test"] == "float" else bound > 0

    def sum_of(values, zero, weights, bias, factor):
        total = sum((v - zero) * w for v, w in zip(values, weights, strict=True)) + bias
        return scaled_wide(total, factor) if is_wide else scaled(total, factor, single=single)

    def argument(k, j, step, hidden):
        one = saturated(sum_of(step, zx, W[k][j], b[k][j], of_x[k]))
        other = sum_of(hidden, zh, R[k][j], 0, of_h[k])
        return saturated(one + (saturated(other) if read["gate-sum"] == "both-terms" else other))

    of_gate, of_cell_gate, of_cell = functions
    found, hs, cs = [], [], []
    given = "output_state" in inputs, "cell_state" in inputs
    for n, sequence in enumerate(x):
        is_fresh = read["state"] == "fresh"
        h = [zh for _ in units] if is_fresh or not given[0] else inputs["output_state"][n].tolist()
        c = [0 for _ in units] if is_fresh or not given[1] else inputs["cell_state"][n].tolist()
        steps = []
        for step in sequence:
            next_h, next_c = [], []
            for j in units:
                i, f, g, o = (argument(k, j, step, h) for k in range(4))
                i, f, o, g = of_gate(i), of_gate(f), of_gate(o), of_cell_gate(g)
                if read["cell-products"] == "shift":
                    kept, written = shifted(f * c[j], 15), shifted(i * g, 30 + exponent)
                else:
                    kept = saturated(scaled(f * c[j], kept_by, single=single))
                    written = scaled(i * g, written_by, single=single)
                if read["cell-sum"] == "both-terms":
                    written = saturated(written)
                new = saturated(kept + written)
                new = max(-bound, min(bound, new)) if is_clipped else new
                made = scaled(o * of_cell(new, exponent), made_by, single=single) + out
                next_c.append(new)
                next_h.append(saturated(made, 16 if is_wide else 8))
            h, c = next_h, next_c
            steps.append(h)
        found.append(steps)
        hs.append(h)
        cs.append(c)
    if a["time_major"]:
        found = [list(step) for step in zip(*found, strict=True)]
    return found, hs, cs
