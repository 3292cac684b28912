"""A kernel built as real ones are: packed, blocked, tiled, chunked, with buffers that it keeps."""
