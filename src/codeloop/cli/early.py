"""What must hold before a command's own modules are there: signals, and whether JSON was asked for."""

import signal
from itertools import pairwise


def handled() -> list[signal.Signals]:
    """Give the signals that end a command; `nohup` has SIGHUP ignored, and so it stays."""
    is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *(() if is_ignored else (signal.SIGHUP,))]


def catch_signals() -> None:
    """Have every signal that ends a command raise KeyboardInterrupt."""
    for number in handled():
        signal.signal(number, signal.default_int_handler)


def wants_json(arguments: list[str]) -> bool:
    """Tell whether a run that has not read its flags yet is to be told as JSON."""
    return "--format=json" in arguments or ("--format", "json") in pairwise(arguments)
