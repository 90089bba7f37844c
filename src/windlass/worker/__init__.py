"""Runs jobs: claims them, calls their handlers, and reports how they ended."""
