"""How rounding errors arise in a cell and travel through its recurrence."""
