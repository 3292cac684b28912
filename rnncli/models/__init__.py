"""Whole ONNX models: loading, inputs, evaluation, and the recurrent nodes inside them."""
