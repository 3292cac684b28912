"""Files and the names of files, at the only place that opens, writes, renames or locks any."""
