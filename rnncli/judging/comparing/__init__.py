"""Comparing outputs with the expected ones: rules, margins, verdicts, known failures."""
