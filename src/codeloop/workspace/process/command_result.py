"""`CommandResult`: what a command printed and how it ended,
or that it goes on in the background.
"""

import signal
from pathlib import Path

from msgspec import Struct

from codeloop.workspace.process.running_command import RunningCommand
from codeloop.workspace.sandbox.protected_files import MovedFile


class CommandResult(Struct, frozen=True):
    """The result of a command.

    - `output`: for the model; `screen_text`: for the screen; `output_file`: the file with the whole
      output, if `output` lacks a part of it; `is_cut`: its middle is left out
    - `code`: the exit code; None if it did not end within its timeout (`timed_out`), or a signal
      ended it (`signal`, its name)
    - `job_id`: the id under which it goes on in the background; "": it has ended
    - `leftover_processes`: the number of processes that it had left running, which were ended
    - `duration`: in seconds; `line_count`: the lines of the whole output
    - `notes`: as of `RunningCommand.take_notes`; `moved_files`: files that appeared
      meanwhile and were moved away;
      `warnings`: for the user and the model
    """

    output: str
    screen_text: str
    code: int | None
    signal: str | None
    timed_out: bool
    leftover_processes: int
    is_cut: bool
    output_file: Path | None
    duration: float
    line_count: int
    job_id: str = ""
    notes: tuple[str, ...] = ()
    moved_files: tuple[MovedFile, ...] = ()
    warnings: tuple[str, ...] = ()


def take_result(
    running: RunningCommand, end: tuple[int, int] | None, duration: float, job_id: str = ""
) -> CommandResult:
    """Return the result of a command, with its output so far. `end`: see
    `RunningCommand.finish_within`.
    """
    code, leftover_processes = end or (None, 0)
    output = running.buffer.take()
    signal_name = name_signal(code)
    return CommandResult(
        output=output.text,
        screen_text=output.screen_text,
        code=None if signal_name else code,
        signal=signal_name,
        timed_out=end is None,
        leftover_processes=leftover_processes,
        is_cut=output.is_cut,
        # A last line without a line end counts too.
        line_count=running.buffer.line_ends
        + (bool(output.screen_text) and not output.screen_text.endswith("\n")),
        output_file=output.path,
        duration=duration,
        job_id=job_id,
        notes=running.take_notes(output.text, code),
        moved_files=running.take_moved_files(),
        warnings=running.take_warnings(),
    )


def name_signal(code: int | None) -> str | None:
    """Return the name of the signal that ended a command; None: it was not ended by one."""
    if code is None or code >= 0:
        return None
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
