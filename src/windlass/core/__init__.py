"""Pure decisions of the engine: no I/O, no event loop, no clock of its own."""
