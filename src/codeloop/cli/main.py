"""Where the program starts: what must be quick is answered here, everything else by the table of commands."""

import signal
import sys
from importlib import import_module

from codeloop import __version__


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(__version__ + "\n")
        return
    # While the program is still being loaded, Ctrl-C just ends it: no half-imported module gets to say anything.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    import_module("codeloop.cli.commands").call()
