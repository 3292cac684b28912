"""Runtimes, one module each: loading a vector's model, running it and naming its outputs."""
