"""The message of `codeloop run`: the words of the command line, stdin, or both."""

import fcntl
import os
import stat
import sys
import termios
from array import array
from typing import NamedTuple

from codeloop.cli.exit_codes import UsageProblem
from codeloop.cli.run.options import Options

EXAMPLE = 'codeloop run "fix the failing test"'


class Message(NamedTuple):
    """What the command line says, and what came from stdin."""

    words: str
    piped: str = ""

    @property
    def text(self) -> str:
        """Both."""
        return "\n\n".join(filter(None, self))


def message_of(options: Options) -> Message:
    """Return the message; stdin is read only when it is asked for, so that an open pipe never hangs a script.

    Empty only when there is a file or a command. Raises UsageProblem when there is nothing to do.
    """
    if options.command is not None and "-" not in options.message:
        return Message(" ".join(map(quoted, options.message)))
    words = " ".join(word for word in options.message if word != "-").strip()
    if options.message and "-" not in options.message:
        if not words and not options.files:
            raise UsageProblem(f"The message is empty. Say what to do: {EXAMPLE}.")
        return Message(words)
    if sys.stdin is None or (sys.stdin.isatty() and not options.message):
        if options.files:
            return Message("")
        raise UsageProblem(f"Say what to do: {EXAMPLE}, or give it on stdin.")
    message = Message(words, sys.stdin.buffer.read().decode("utf-8", "replace").strip())
    if not message.text and not options.files:
        raise UsageProblem(f"There is no message: stdin is empty. Say what to do: {EXAMPLE}.")
    return message


def is_stdin_unread(options: Options) -> bool:
    """Return whether stdin is a pipe or a file in which something waits now that `message_of` leaves alone."""
    reads = "-" in options.message or not (options.message or options.command)
    if reads or sys.stdin is None:
        return False
    try:
        descriptor = sys.stdin.fileno()
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            return status.st_size > os.lseek(descriptor, 0, os.SEEK_CUR)
        if not (stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode)):
            return False
        waiting = array("i", [0])
        fcntl.ioctl(descriptor, termios.FIONREAD, waiting)
        return waiting[0] > 0
    except OSError:
        return False


def quoted(word: str) -> str:
    """Return a word of the command line so that a command reads it as one."""
    if word and not any(char.isspace() for char in word):
        return word
    return f"'{word}'" if '"' in word else f'"{word}"'
