"""Runs the command line and reports its errors, `codeloop run` without loading click."""

import os
import sys
from contextlib import suppress
from pathlib import Path

from codeloop.kit.programs import exclude_project_folders
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.errors import CodeloopError
from codeloop.schema.installation import InstallationChanged


def run_command_line() -> None:
    """Run the command line. Errors are one or two lines: bad input never shows a traceback."""
    # Tests inject faults by this variable. A mistyped fault ends the program,
    # else a test would pass without it.
    if "CODELOOP_FAULT" in os.environ:
        from codeloop.kit import fault_injection

        if problem := fault_injection.find_variable_error():
            print_error(f"codeloop: {problem}")
            sys.exit(2)
    # Programs are never taken from the project, which may have planted a `git` or an `rg` of its
    # own. Where the current directory has been deleted, the command that needs it reports that.
    with suppress(OSError):
        exclude_project_folders(Path.cwd())
    try:
        code = _call_command(sys.argv[1:])
    except InstallationChanged as error:
        # Nothing more can be imported.
        print_error(f"codeloop: {error}")
        sys.exit(1)
    except CodeloopError as error:
        from codeloop.cli.exit_codes import choose_error_code

        code = choose_error_code(error)
        print_error(f"codeloop: {error}")
    sys.exit(code)


def _call_command(arguments: list[str]) -> int:
    """Call the command that the arguments name, and return its exit code."""
    if "_CODELOOP_COMPLETE" in os.environ:
        from codeloop.cli.commands.completion import register_bash

        register_bash()
    elif arguments[:1] == ["run"]:
        from codeloop.cli.option_values import read_plain_arguments

        if (options := read_plain_arguments(arguments[1:])) is not None:
            from codeloop.cli.run.start import run_once

            try:
                return run_once(options)
            except BrokenPipeError:
                # Whoever read the output has gone.
                return 1
    from codeloop.cli.command_table import call_command

    return call_command()


def print_error(text: str) -> None:
    """Print an error. It may quote a server, a repository or a file,
    so control sequences in it are escaped.
    """
    # click may not be loaded, and can't be once codeloop has been updated.
    sys.stderr.write(escape_controls(text) + "\n")
