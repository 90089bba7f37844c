"""The pages of the dashboard: drawn by the server, kept up to date by a small script, acting through the HTTP API."""
