"""The entry point of the program `codeloop`: answers `--version` at once and leaves the rest to the command table."""

import sys

from codeloop.cli.bootstrap import catch_signals, end_interrupted, exit_at_once


def main() -> None:
    """Run the command line."""
    # Neither click nor any command is loaded for the version.
    if sys.argv[1:] == ["--version"]:
        from codeloop.kit.version import VERSION

        sys.stdout.write(VERSION + "\n")
        return
    try:
        catch_signals(sys.argv[1:])
        from codeloop.cli.command_table import run_command_line

        run_command_line()
    except KeyboardInterrupt:
        # The signal came before a command could catch it.
        end_interrupted(sys.argv[1:])
    except SystemExit as error:
        exit_at_once(error.code)
        # It returned, because the interpreter has to print a message or report that stdout is closed.
        raise
