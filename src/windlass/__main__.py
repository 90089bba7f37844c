"""`python -m windlass`."""

import atexit
import gc
import sys


def main() -> None:
    """Load the command line and run it."""
    # Modules are no garbage: searching them while they load and again at the end is a fifth of a short command's time.
    # The search begins once the command is loaded, with what has come since.
    gc.disable()
    atexit.register(gc.freeze)
    try:
        from windlass.cli.main import main as run  # noqa: PLC0415 - an error of loading it is answered here
    except OSError as error:
        sys.exit(f"windlass: its code cannot be read: {error}")
    run()


if __name__ == "__main__":
    main()
