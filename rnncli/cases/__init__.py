"""Cases from YAML: the reader, configs, fills, the specs that ship with the package, the schema."""
