"""Runs jobs: claims them, calls their handlers, and says what became of them."""
