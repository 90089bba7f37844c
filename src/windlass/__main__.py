"""`python -m windlass`."""

import sys


def main() -> None:
    """Load the command line and run it."""
    try:
        from windlass.cli.main import main as run  # noqa: PLC0415 - an error of loading it is answered here
    except OSError as error:
        sys.exit(f"windlass: its code cannot be read: {error}")
    run()


if __name__ == "__main__":
    main()
