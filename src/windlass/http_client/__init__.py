"""The HTTP client; programs import it as `windlass.remote`."""
