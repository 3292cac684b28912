"""Kernels for operators that onnx's reference evaluates wrongly or slowly, as plain functions.

A kernel takes a node's inputs as arrays (None where omitted) and its attributes by name, and
returns one array or a tuple of them. Their names, shapes and meaning are those of the operator in
ONNX's specification, which docstrings here do not repeat. An attribute that the node leaves unset
and whose operator has no default is not passed, so the kernel's own default applies.
`rnncli.models.host_operators.kernel_table` lists the kernel of each operator and opset.
"""
