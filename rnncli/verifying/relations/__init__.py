"""Tests without goldens: outputs of an operator and of a transformed operator must be related."""
