"""Implementations under test: runtimes, backends, vendors' commands, folders of results."""
