"""Signals and faults from a run's first moment to its last: none of them ends it without a result."""

import asyncio
import signal
from collections.abc import Callable

from codeloop.cli import exit_codes
from codeloop.cli.bootstrap import list_end_signals
from codeloop.cli.output.result import make_unfinished
from codeloop.cli.output.streams import Outlet, standard
from codeloop.cli.output.view import view_of
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import OUTPUT_READER_TIME


class Signals:
    """Signals while the loop runs. The first calls `act` and `hurry`; a second ends the process at once.

    `is_over`: the result has been shown and the process is about to end, so that further signals change nothing.
    """

    def __init__(self, act: Callable[[], object], hurry: Callable[[], object]) -> None:
        self.act = act
        self._hurry = hurry
        self.name = ""
        self.is_second = False
        self.is_over = False
        loop = asyncio.get_running_loop()
        for number in list_end_signals():
            loop.add_signal_handler(number, self._take, number)

    def _take(self, number: int) -> None:
        if self.is_over:
            return
        if self.name:
            self.is_second = True
            raise KeyboardInterrupt
        self.name = signal.Signals(number).name
        self._hurry()
        self.act()


def run_to_result(form: str, command: Callable[[], int]) -> int:
    """Run a command and return its exit code; show the result of one that could not do so itself."""
    is_over = False
    code = exit_codes.ERROR
    try:
        code = command()
        is_over = True
    except KeyboardInterrupt:
        code = show_result(form, exit_codes.INTERRUPTED, "interrupted", "Interrupted.")
        is_over = True
    except CodeloopError as error:
        code = show_result(form, exit_codes.of_error(error), "error", str(error))
        is_over = True
    finally:
        for number in list_end_signals():
            signal.signal(number, signal.SIG_IGN)
        if not is_over:
            show_result(form, exit_codes.ERROR, "error", "codeloop crashed. Please report what follows as a bug.")
    return code


def show_result(form: str, code: int, reason: str, message: str) -> int:
    """Show the result of a turn that never began, and return its exit code."""
    stdout, stderr = standard(Outlet(patience=OUTPUT_READER_TIME.seconds))
    view_of(form, stdout, stderr, "").finish(make_unfinished(reason, code, message))
    return code
