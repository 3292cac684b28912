"""The operators of each dialect, as rows of a table, and their evaluation."""

from rnncli.operators.checking import problems
from rnncli.operators.evaluation import arrays_of, evaluate
from rnncli.operators.node import Node, checked
from rnncli.operators.operator import Attribute, Dim, Input, Operator, Output
from rnncli.operators.operator_table import OPERATORS, operator_for, operator_named

__all__ = [
    "OPERATORS",
    "Attribute",
    "Dim",
    "Input",
    "Node",
    "Operator",
    "Output",
    "arrays_of",
    "checked",
    "evaluate",
    "operator_for",
    "operator_named",
    "problems",
]
