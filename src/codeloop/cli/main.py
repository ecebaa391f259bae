"""Where the program starts: what must be quick is answered here, everything else by the table of commands."""

import sys
from importlib import import_module

from codeloop import __version__


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(__version__ + "\n")
        return
    try:
        import_module("codeloop.cli.early").catch_signals(sys.argv[1:])
        import_module("codeloop.cli.commands").call()
    except KeyboardInterrupt:  # before a command could catch it: what was broken off there is imported anew
        import_module("codeloop.cli.early").end(sys.argv[1:])
