"""Every verb as data, one file for each kind."""
