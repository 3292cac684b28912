"""Judging an implementation by a pack or by relations, and a suite by its bugs and statements."""
