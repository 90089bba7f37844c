"""Clients that enqueue jobs and read them."""
