	BY_hJ60uv0u0u(v0u0uô~0u0uyLv0u0u0uvô~0uÙ~0w0u‹~0uBxózQz
y