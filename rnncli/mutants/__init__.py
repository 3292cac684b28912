"""Plausible kernel bugs: what a suite must notice, and what a wrong output is held to."""
