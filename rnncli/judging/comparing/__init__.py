"""Comparing outputs with what is expected: rules, margins, verdicts, reports of packs."""
