"""Validation: closure, coverage and pseudo-experiments."""
