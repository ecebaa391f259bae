"""`python -m codeloop`."""

import sys

if not sys.flags.safe_path:
    del sys.path[
        0
    ]  # the folder that it was started in, whose modules would stand in for those that are imported

from codeloop.cli.main import main

main()
