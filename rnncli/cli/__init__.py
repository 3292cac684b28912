"""The command line: each command parses, calls and prints; nothing else."""

from rnncli.cli.group import main

__all__ = ["main"]
