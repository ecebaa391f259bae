"""The entry point of the program `codeloop`: answers `--version` at once and leaves
the rest to the command table.
"""

import gc
import os
import sys
from io import TextIOWrapper

from codeloop.cli.bootstrap import (
    catch_signals,
    end_interrupted,
    end_without_output,
    exit_at_once,
    is_print_error,
    open_missing_streams,
)

# Type checkers read the name as that of `typing`,
# which takes longer to load than everything else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

# New objects in containers before the collector looks through them,
# which takes some 5 ms: a short run makes fewer.
_COLLECTION_THRESHOLD = 100_000


def main() -> None:
    """Run the command line."""
    if sys.platform == "win32":
        sys.exit(
            "codeloop: it does not run on Windows itself. Install and start it in WSL 2: see docs/getting-started.md."
        )
    open_missing_streams()
    _prefer_own_modules()
    _use_utf8()
    # What loads stays alive; by default the collector would look through it
    # after each 700 new objects.
    gc.set_threshold(_COLLECTION_THRESHOLD)
    try:
        # Neither click nor any command is loaded for the version.
        if sys.argv[1:] == ["--version"]:
            from codeloop.kit.version import VERSION

            sys.stdout.write(VERSION + "\n")
            sys.exit(0)
        catch_signals(sys.argv[1:])
        from codeloop.cli.command_line import run_command_line
        from codeloop.schema.installation import watch_late_imports

        watch_late_imports()
        sys.excepthook = _report_crash
        run_command_line()
    except KeyboardInterrupt:
        # The signal came before a command could catch it.
        end_interrupted(sys.argv[1:])
    except OSError as error:
        if is_print_error(error):
            end_without_output(error)
        raise
    except SystemExit as error:
        exit_at_once(error.code)
        # It returned, because the interpreter has to print a message.
        raise


def _prefer_own_modules() -> None:
    """Look modules up where Python and codeloop are installed first: PYTHONPATH is for
    the programs of a project.
    """
    added = {os.path.realpath(each) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep)}
    later = (
        [each for each in sys.path if os.path.realpath(each) in added]
        if os.environ.get("PYTHONPATH")
        else []
    )
    sys.path[:] = [*(each for each in sys.path if each not in later), *later]


def _use_utf8() -> None:
    """Make names, texts and output UTF-8 in every locale;
    in one of another charset, the program starts again.
    """
    if sys.getfilesystemencoding() != "utf-8" and sys.executable:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    for stream in (sys.stdout, sys.stderr):
        # The user may have asked for another one by PYTHONIOENCODING.
        if isinstance(stream, TextIOWrapper) and stream.encoding != "utf-8":
            stream.reconfigure(errors="replace")


def _report_crash(
    kind: type[BaseException], error: BaseException, trace: "TracebackType | None"
) -> None:
    """Print the report of a crash, unless it comes from an update of codeloop in the meantime."""
    from codeloop.schema.installation import find_change

    if change := find_change(error):
        sys.stderr.write(f"codeloop: {change}\n")
    else:
        sys.__excepthook__(kind, error, trace)
