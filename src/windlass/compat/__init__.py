"""Other systems' APIs over the one engine."""
