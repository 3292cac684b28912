"""Benchmarks: ratios within one run, medians of interleaved rounds."""
