"""Ids in, ids out: methods.py searches, constraints.py says what must not be found, ensemble.py joins models."""
