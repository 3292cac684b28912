"""Judging outputs: tolerances, comparison, explanation of failures, scores."""
