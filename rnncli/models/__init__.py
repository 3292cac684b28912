"""Whole models: loading, inputs, sessions, weights, and recurrent and other nodes inside them."""
