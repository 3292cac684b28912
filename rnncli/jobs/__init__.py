"""Jobs: many tasks in several processes or on a Dask cluster; how Python is started; plug-ins."""
