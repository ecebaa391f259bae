"""Where the program starts: what must be quick is answered here, everything else by the table of commands."""

import sys

from codeloop import __version__
from codeloop.cli.bootstrap import catch_signals, end_interrupted, exit_at_once


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(__version__ + "\n")
        return
    try:
        catch_signals(sys.argv[1:])
        from codeloop.cli.command_table import run_command_line

        run_command_line()
    except KeyboardInterrupt:
        # Before a command could catch it: what was being imported is imported again.
        end_interrupted(sys.argv[1:])
    except SystemExit as error:
        exit_at_once(error.code)
        raise
