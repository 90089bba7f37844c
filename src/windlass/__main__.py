"""`python -m windlass`."""

from windlass.cli.main import main

main()
