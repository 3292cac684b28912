"""What people and scripts see: tables, JSON lines, sentences for failures."""
