"""Structural mutants: bugs of the data movement around the equations, in the blocked kernel."""
