"""Reports: tables, JSON lines, sentences for failures, pages and plots."""
