"""Packs: conformance vectors on disk, with a manifest that describes each."""
