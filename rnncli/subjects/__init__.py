"""Implementations under test: runtimes, backends, vendors' commands and recorded results."""
