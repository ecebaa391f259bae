"""Signal handling and process exit, usable before any other module of the command line is loaded.

This module imports next to nothing, so that its handler is set early: Python may print a
KeyboardInterrupt that is raised during an import, and go on. How `run`, `serve` and `ci` handle
signals while they work is in their own modules.
"""

import os
import sys
from itertools import pairwise

# Type checkers read the name as that of `typing`,
# which takes longer to load than everything else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

# The core of `signal`, which makes enums of all that is in it: that takes longer
# than everything else here.
_signal = __import__("_signal")
# What shells report for a program that SIGINT has ended: 128 + 2.
INTERRUPTED_EXIT_CODE = 130
# The results are spelled out as bytes, because encoding them would need modules
# that may not be loaded yet.
INTERRUPTED_RESULT = (
    b'{"type":"result","reason":"interrupted","exitCode":130,"message":"Interrupted.","text":"","cost":0.0,'
    b'"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"steps":0,"durationMs":0,"denied":[]}\n'
)
INTERRUPTED_STREAM_RESULT = (
    b'{"type":"result","subtype":"error_during_execution","is_error":true,"duration_ms":0,"duration_api_ms":0,'
    b'"num_turns":0,"total_cost_usd":0.0,"usage":{"input_tokens":0,"cache_creation_input_tokens":0,'
    b'"cache_read_input_tokens":0,"output_tokens":0},"modelUsage":{},"permission_denials":[],'
    b'"errors":["Interrupted."],"session_id":"","uuid":""}\n'
)
# The JSON formats of `run`, each with the option and the value that ask for it.
JSON_FORMAT_OPTIONS = {
    "json": ("--format", "json"),
    "stream-json": ("--output-format", "stream-json"),
    "result": ("--output-format", "json"),
}


def list_end_signals() -> list[int]:
    """Return the numbers of the signals that end a command; SIGHUP stays ignored under `nohup`."""
    is_ignored = _signal.getsignal(_signal.SIGHUP) == _signal.SIG_IGN
    return [_signal.SIGINT, _signal.SIGTERM, *(() if is_ignored else (_signal.SIGHUP,))]


def catch_signals(arguments: list[str]) -> None:
    """Make a signal end the command of `arguments`: `run` with its result,
    any other by KeyboardInterrupt.

    `run` ends at once, because it has nothing open until its event loop starts and sets handlers of
    its own. Any command ends at once while it imports a module.
    """
    is_run = arguments[:1] == ["run"]

    # A KeyboardInterrupt during an import would leave half-imported modules behind,
    # and a traceback of Python's own.
    def end_by_signal(_number: int, frame: "FrameType | None") -> None:
        if is_run or is_importing(frame):
            end_interrupted(arguments)
        raise KeyboardInterrupt

    # A shell starts its background jobs with SIGINT ignored. Only `run` takes it here all the same.
    is_ignored = _signal.getsignal(_signal.SIGINT) == _signal.SIG_IGN
    caught_signals = [] if is_ignored else [_signal.SIGINT]
    for number in list_end_signals() if is_run else caught_signals:
        _signal.signal(number, end_by_signal)


def cancel_on_signals() -> None:
    """Have a signal that ends a command cancel the current asyncio task,
    so that it closes what it has opened.
    """
    import asyncio

    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    for number in list_end_signals():
        loop.add_signal_handler(number, lambda: task.cancel() if task is not None else None)


def is_importing(frame: "FrameType | None") -> bool:
    """Return whether the frame, or one of its callers, is importing a module."""
    while frame is not None:
        # The import system is compiled into the interpreter,
        # under names such as `<frozen importlib._bootstrap>`.
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def end_interrupted(arguments: list[str]) -> None:
    """End the process as interrupted, with the JSON result of a `run` that was asked for JSON."""
    try:
        form = find_json_format(arguments) if arguments[:1] == ["run"] else ""
        if form:
            # The signal may have interrupted a print, which holds the buffer of `sys.stdout`;
            # the descriptor is free.
            os.write(1, INTERRUPTED_RESULT if form == "json" else INTERRUPTED_STREAM_RESULT)
    finally:
        # The process ends also when stdout is closed and the write fails.
        os._exit(INTERRUPTED_EXIT_CODE)


def exit_at_once(code: str | int | None) -> None:
    """End the process with `code` without the interpreter's own shutdown,
    which takes a tenth of a short run.

    Returns instead when the code is a message, which Python prints.
    Output that can't be written is reported.
    """
    # Python prints such a code on stderr and exits with 1.
    if isinstance(code, str):
        return
    try:
        # Both are None in a process that was started without them. `os._exit` flushes nothing.
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except OSError as error:
        end_without_output(error)
    os._exit(code or 0)


def open_missing_streams() -> None:
    """Open /dev/null where stdin, stdout or stderr is closed.

    The next file that is opened, such as the database, would get its number,
    and whatever prints would write into it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            spare = os.dup(null)
            # The lowest free number is given, so `null` is that of the stream.
            # Programs that we start inherit a copy.
            os.dup2(spare, number)
            os.close(spare)
        if getattr(sys, name) is None:
            setattr(
                sys,
                name,
                os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False),
            )


def is_print_error(error: OSError) -> bool:
    """Return whether an error was raised by printing: by click's `echo`,
    or by `write` in `main` and `print_error`.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_name in {"echo", "main", "print_error"}


def end_without_output(error: OSError) -> None:
    """End the process with exit code 1, since its output can't be written;
    a reader that has gone hears nothing.
    """
    try:
        if not isinstance(error, BrokenPipeError):
            os.write(2, f"codeloop: The output can't be written ({error.strerror}).\n".encode())
    finally:
        os._exit(1)


def find_json_format(arguments: list[str]) -> str:
    """Return the JSON format that the arguments of `run` ask for, a key of `JSON_FORMAT_OPTIONS`;
    "": none.

    It reads the raw arguments, because it is needed before, or instead of, parsing them.
    """
    # An option and its value are two arguments, or one with `=` between them.
    pairs = [
        *pairwise(arguments),
        *(argument.split("=", 1) for argument in arguments if "=" in argument),
    ]
    # Giving both options is an error, which is then shown in the format of `--output-format`.
    for form, option in reversed(JSON_FORMAT_OPTIONS.items()):
        if any((name, value) == option for name, value in pairs):
            return form
    return ""
