"""Traceability: what the specifications say, sentence by sentence, and which case checks it."""
