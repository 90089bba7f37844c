"""How to speak to a server over HTTP; programs import it as `windlass.remote`."""
