"""Runtimes, one module each: how a vector's model is loaded, run, and its outputs named."""
