"""What holds from a command's first moment to its last: neither a signal nor a fault ends it without a word."""

import asyncio
import signal
from collections.abc import Callable

from codeloop.cli import exit_codes
from codeloop.cli.bootstrap import handled
from codeloop.cli.output.shown import view_of
from codeloop.cli.output.streams import Outlet, standard
from codeloop.cli.run.result import unfinished
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import OUTPUT_READER


class Signals:
    """The signals while the loop runs. `act` and `hurry` are called for the first; a second ends the process at once.

    `is_told`: the result was shown, and the process is about to end by itself: further signals change nothing.
    """

    def __init__(self, act: Callable[[], object], hurry: Callable[[], object]) -> None:
        self.act = act
        self._hurry = hurry
        self.name = ""
        self.is_second = False
        self.is_told = False
        loop = asyncio.get_running_loop()
        for number in handled():
            loop.add_signal_handler(number, self._came, number)

    def _came(self, number: signal.Signals) -> None:
        if self.is_told:
            return
        if self.name:
            self.is_second = True
            raise KeyboardInterrupt
        self.name = number.name
        self._hurry()
        self.act()


def to_the_end(form: str, command: Callable[[], int]) -> int:
    """Run a command and give its exit code. What it could not tell itself is told here, as text or as JSON."""
    is_told = False
    try:
        code = command()
        is_told = True
    except KeyboardInterrupt:
        code = tell(form, exit_codes.INTERRUPTED, "interrupted", "Interrupted.")
        is_told = True
    except CodeloopError as error:
        code = tell(form, exit_codes.of_error(error), "error", str(error))
        is_told = True
    finally:
        for number in handled():
            signal.signal(number, signal.SIG_IGN)
        if not is_told:
            tell(form, exit_codes.ERROR, "error", "codeloop failed. What follows belongs into a bug report.")
    return code


def tell(form: str, code: int, reason: str, message: str) -> int:
    """Show a result of a turn that never began; gives the exit code."""
    stdout, stderr = standard(Outlet(patience=OUTPUT_READER.seconds))
    view_of(form, stdout, stderr, "").finish(unfinished(reason, code, message))
    return code
