"""The HTTP server: one table of routes, one layer in front of it."""
