"""Doing many tasks at once: in this process, in several, or on a Dask cluster."""
