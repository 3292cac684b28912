"""Cases from YAML: reader, configs, suites, fills, shipped specs and schemas."""
