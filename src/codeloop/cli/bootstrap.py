"""What has to work before anything else is loaded: signals, and the result of an early end.

It imports next to nothing: a Ctrl-C that comes while Python imports a module may be printed and forgotten.
"""

import os
import sys
from itertools import pairwise

TYPE_CHECKING = False  # `typing` takes longer to load than everything else here
if TYPE_CHECKING:
    from types import FrameType

_signal = __import__("_signal")
"""The core of `signal`, which makes enums of all that is in it: that takes longer than everything else here."""
INTERRUPTED = 130
RESULT = (
    b'{"type":"result","reason":"interrupted","exitCode":130,"message":"Interrupted.","text":"","cost":0.0,'
    b'"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"steps":0,"durationMs":0,"denied":[]}\n'
)


def list_end_signals() -> list[int]:
    """Return the numbers of the signals that end a command; SIGHUP stays ignored under `nohup`."""
    is_ignored = _signal.getsignal(_signal.SIGHUP) == _signal.SIG_IGN
    return [_signal.SIGINT, _signal.SIGTERM, *(() if is_ignored else (_signal.SIGHUP,))]


def catch_signals(arguments: list[str]) -> None:
    """Make a signal end the command of `arguments`: `run` with its result, any other by KeyboardInterrupt.

    Until its loop takes over, `run` has nothing open, so it may end at once; so may any command while it imports. An
    exception would leave half-imported modules behind, and what Python prints of it is of no use to anybody.
    """
    is_run = arguments[:1] == ["run"]

    def end_by_signal(_number: int, frame: "FrameType | None") -> None:
        if is_run or is_importing(frame):
            end(arguments)
        raise KeyboardInterrupt

    is_ignored = _signal.getsignal(_signal.SIGINT) == _signal.SIG_IGN  # a shell's background job
    for number in list_end_signals() if is_run else [] if is_ignored else [_signal.SIGINT]:
        _signal.signal(number, end_by_signal)


def is_importing(frame: "FrameType | None") -> bool:
    """Return whether a module is being imported where `frame` is."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def end(arguments: list[str]) -> None:
    """End the process as interrupted, with the JSON result of a `run` that was asked for JSON."""
    try:
        if arguments[:1] == ["run"] and wants_json(arguments):
            os.write(1, RESULT)
    finally:  # also when nobody can read it
        os._exit(INTERRUPTED)


def leave(code: str | int | None) -> None:
    """End the process with `code` without taking the interpreter apart first, which takes a tenth of a short run.

    Returns when there is something left to say: a code that is a message, or output that nobody takes.
    """
    if isinstance(code, str):
        return
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except OSError:
        return
    os._exit(code or 0)


def wants_json(arguments: list[str]) -> bool:
    """Return whether a run that has not parsed its options yet was asked for JSON."""
    return "--format=json" in arguments or ("--format", "json") in pairwise(arguments)
