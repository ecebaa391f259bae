"""`python -m codeloop`."""

from codeloop.cli.main import main

main()
