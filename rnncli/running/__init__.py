"""Running targets: from the command line's targets to outputs, summaries and files."""
