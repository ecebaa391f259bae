"""Handlers of signals and crashes for `run`, so that it always ends with a result."""

import asyncio
import signal
from collections.abc import Callable

from codeloop.cli import exit_codes
from codeloop.cli.bootstrap import list_end_signals
from codeloop.cli.output.result import make_unfinished
from codeloop.cli.output.streams import OutputQueue, open_standard_streams
from codeloop.cli.output.view import make_view
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import OUTPUT_READER_TIME


class SignalHandlers:
    """Handles signals while the event loop runs. A second signal ends the process at once.

    `on_first`, `shorten_waits`: called at the first signal. `name`: the name of that signal, ""
    before. `is_second`: another one has come. `is_over`: the result was shown,
    so that further signals change nothing.
    """

    def __init__(self, on_first: Callable[[], object], shorten_waits: Callable[[], object]) -> None:
        self.on_first = on_first
        self._shorten_waits = shorten_waits
        self.name = ""
        self.is_second = False
        self.is_over = False
        loop = asyncio.get_running_loop()
        for number in list_end_signals():
            loop.add_signal_handler(number, self._handle_signal, number)

    def _handle_signal(self, number: int) -> None:
        if self.is_over:
            return
        if self.name:
            self.is_second = True
            raise KeyboardInterrupt
        self.name = signal.Signals(number).name
        self._shorten_waits()
        self.on_first()


def run_to_result(form: str, command: Callable[[], int]) -> int:
    """Run a command and return its exit code; if it raises, show a result first.

    `form`: a value of `Options.format`.
    """
    has_result = False
    code = exit_codes.ERROR
    try:
        code = command()
        has_result = True
    except KeyboardInterrupt:
        code = show_result(form, exit_codes.INTERRUPTED, "interrupted", "Interrupted.")
        has_result = True
    except CodeloopError as error:
        code = show_result(form, exit_codes.choose_error_code(error), "error", str(error))
        has_result = True
    finally:
        # Nothing is left to stop, and a result that is being written must not be cut off.
        for number in list_end_signals():
            signal.signal(number, signal.SIG_IGN)
        # A crash: the exception goes on, and Python prints it.
        if not has_result:
            show_result(
                form,
                exit_codes.ERROR,
                "error",
                "codeloop crashed. Please report what follows as a bug.",
            )
    return code


def show_result(form: str, code: int, reason: str, message: str) -> int:
    """Show the result of a turn that never began, and return `code`, its exit code."""
    stdout, stderr = open_standard_streams(OutputQueue(timeout=OUTPUT_READER_TIME.seconds))
    make_view(form, stdout, stderr, "").finish(make_unfinished(reason, code, message))
    return code
