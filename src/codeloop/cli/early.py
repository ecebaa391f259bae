"""What must hold before a command's own modules are there: signals, and whether JSON was asked for."""

import signal
from itertools import pairwise


def handled() -> list[signal.Signals]:
    """Give the signals that end a command; `nohup` has SIGHUP ignored, and so it stays."""
    is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *(() if is_ignored else (signal.SIGHUP,))]


def hold_signals() -> None:
    """Let every signal that ends a command wait for `release_signals`, and then raise KeyboardInterrupt.

    An exception while modules are loaded leaves half of one behind, which then can't tell the result.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, handled())
    for number in handled():
        signal.signal(number, signal.default_int_handler)


def release_signals() -> None:
    """Let the signals come that were held back."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, handled())


def wants_json(arguments: list[str]) -> bool:
    """Tell whether a run that has not read its flags yet is to be told as JSON."""
    return "--format=json" in arguments or ("--format", "json") in pairwise(arguments)
