"""A worker that has no database: it runs an application's tasks for a server, over HTTP."""
