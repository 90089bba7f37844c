"""Copies a whole database into an empty one, of the same kind or the other."""
