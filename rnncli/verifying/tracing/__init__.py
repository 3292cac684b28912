"""Traceability: the specifications' statements and the cases that check them."""
