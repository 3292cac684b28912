"""Packs: conformance vectors on disk, with a manifest that says what each is for."""
