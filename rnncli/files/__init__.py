"""Files: the only package that opens, writes, renames or locks files, and formats of tensors."""
