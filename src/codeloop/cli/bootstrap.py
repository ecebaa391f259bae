"""What has to work before a command's own modules are loaded: signals, and the result of an early end."""

import os
import signal
import sys
from contextlib import suppress
from itertools import pairwise
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130
RESULT = (
    b'{"type":"result","reason":"interrupted","exitCode":130,"message":"Interrupted.","text":"","cost":0.0,'
    b'"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"steps":0,"durationMs":0,"denied":[]}\n'
)


def handled() -> list[signal.Signals]:
    """Return the signals that end a command; SIGHUP stays ignored under `nohup`."""
    is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *(() if is_ignored else (signal.SIGHUP,))]


def catch_signals(arguments: list[str]) -> None:
    """Make a signal end the command of `arguments`: `run` with its result, any other by KeyboardInterrupt.

    Until its loop takes over, `run` has nothing open, so it may end at once. An exception would leave half-imported
    modules behind, which could not show the result.
    """
    if arguments[:1] != ["run"]:
        return

    def came(_number: int, _frame: FrameType | None) -> None:
        end(arguments)

    for number in handled():
        signal.signal(number, came)


def end(arguments: list[str]) -> NoReturn:
    """End the process as interrupted, with the JSON result of a `run` that was asked for JSON."""
    if arguments[:1] == ["run"] and wants_json(arguments):
        with suppress(OSError):
            os.write(1, RESULT)
    os._exit(INTERRUPTED)


def leave(code: str | int | None) -> None:
    """End the process with `code` without taking the interpreter apart first, which takes a tenth of a short run.

    Returns when there is something left to say: a code that is a message, or output that nobody takes.
    """
    if isinstance(code, str):
        return
    with suppress(OSError):
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        os._exit(code or 0)


def wants_json(arguments: list[str]) -> bool:
    """Return whether a run that has not parsed its options yet was asked for JSON."""
    return "--format=json" in arguments or ("--format", "json") in pairwise(arguments)
