"""Executors: many tasks in this process, in several, or on a Dask cluster."""
