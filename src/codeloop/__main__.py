"""`python -m codeloop`."""

import sys

if not sys.flags.safe_path:
    # The folder that it was started in, whose modules would stand in for those that are imported.
    del sys.path[0]

from codeloop.cli.main import main

main()
