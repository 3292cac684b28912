"""A model of our own with states, for any number of steps and sequences, and faults beside it."""

import numpy as np
import onnx
from onnx import numpy_helper

import rnncli

# A convolution over the last three steps, then an LSTM: any number of steps and sequences.
LAYERS = """<ir_version: 8, opset_import: ["": 17]>
layers (float[N,4,T] x, float[N,4,2] past_in, float[1,N,3] h_in, float[1,N,3] c_in)
    => (float[T,1,N,3] y, float[N,4,2] past_out, float[1,N,3] h_out, float[1,N,3] c_out) {
    all = Concat <axis = -1> (past_in, x)
    begin = Constant <value = int64[1] {-2}> ()
    end = Constant <value = int64[1] {9223372036854775807}> ()
    last = Constant <value = int64[1] {2}> ()
    past_out = Slice (all, begin, end, last)
    features = Conv (all, K)
    X = Transpose <perm = [2, 0, 1]> (features)
    y, h_out, c_out = LSTM <hidden_size = 3> (X, W, R, , , h_in, c_in)
}"""


SWAPPED = LAYERS.replace("y, h_out, c_out", "y, c_out, h_out")


def layers(text=LAYERS):
    """The layers with seeded weights."""
    return weighted(text, K=(5, 4, 3), W=(1, 12, 5), R=(1, 12, 3))


def weighted(text, **shapes):
    """A model with seeded weights, by name and shape."""
    proto = onnx.parser.parse_model(text)
    random = np.random.default_rng(1)
    for name, shape in shapes.items():
        values = random.uniform(-0.7, 0.7, shape).astype(np.float32)
        proto.graph.initializer.append(numpy_helper.from_array(values, name))
    return proto


class Wrapper:
    """Right calls of a model, with inputs and outputs changed on the way.

    Args:
        inputs: maps inputs, and what is kept between calls, to those that the model gets.
        outputs: maps outputs, the inputs and what is kept to those that are given.
    """

    def __init__(self, *, inputs=None, outputs=None):
        self.inputs, self.outputs, self.kept, self.session = inputs, outputs, {}, None

    def __call__(self, vector):
        """Run a call."""
        self.session = self.session or rnncli.prepare(onnx.load_from_string(vector.model))
        given = dict(vector.inputs)
        if self.inputs:
            self.inputs(given, self.kept)
        made = {name: values.copy() for name, values in self.session.run(given).items()}
        return self.outputs(made, vector.inputs, self.kept) or made if self.outputs else made
