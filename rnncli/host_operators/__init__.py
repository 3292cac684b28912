"""The operators of whole models that onnx's reference gets wrong or slow, as plain functions.

A kernel takes a node's inputs as arrays (None where omitted) and its attributes by name, and
returns one array or a tuple of them. An attribute the node leaves unset, and for which its operator
has no default, is not passed: the kernel's own default says what it then means. Which kernel serves
which operator and opsets is one table, `rnncli.host_operators.table`.
"""
