"""What `rnncli run` does: from targets to outputs, summaries and files."""
