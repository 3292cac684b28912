"""Tests without goldens: an operator and a transformed one, whose outputs must be related."""
