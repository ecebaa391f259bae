"""Remembers which commands of a project took long,
so that they get more time when they are run again.
"""

from contextlib import suppress
from pathlib import Path

import msgspec

from codeloop.kit.small_files import read_start, write_atomically
from codeloop.schema.wire import DECODE_ERRORS

_MAX_SLOW_COMMANDS = 100
# The characters of a command by which it is recognised.
_NAME_CHARS = 300
_FILE_BYTES = 256 * 1024


class SlowCommands:
    """The seconds that slow commands took, by project, even in earlier processes.
    `scratch`: as in Workspace.
    """

    def __init__(self) -> None:
        # The file of a project -> its commands, the last one that was slow at the end -> seconds.
        self._commands_by_file: dict[Path, dict[str, float]] = {}

    def find_seconds(self, scratch: Path, command: str) -> float:
        """Return the seconds that a command took when it was slow last;
        0: it was not slow before.
        """
        return self._read_commands(scratch).get(_name_command(command), 0)

    def record(self, scratch: Path, command: str, seconds: float) -> None:
        """Store how long a command took. The oldest commands are forgotten."""
        commands = self._read_commands(scratch)
        name = _name_command(command)
        # Removed first, so that it becomes the last one.
        commands.pop(name, None)
        commands[name] = seconds
        for old_name in [*commands][:-_MAX_SLOW_COMMANDS]:
            del commands[old_name]
        with suppress(OSError):
            write_atomically(_get_file(scratch), msgspec.json.encode(commands))

    def _read_commands(self, scratch: Path) -> dict[str, float]:
        file = _get_file(scratch)
        if file not in self._commands_by_file:
            self._commands_by_file[file] = {}
            with suppress(OSError, *DECODE_ERRORS):
                content = read_start(file, _FILE_BYTES)
                self._commands_by_file[file] = msgspec.json.decode(content, type=dict[str, float])
        return self._commands_by_file[file]


def _get_file(scratch: Path) -> Path:
    """Return the file with the times of a project's slow commands.
    Sandboxed commands can't write there.
    """
    return scratch.with_name(f"{scratch.name}.slow.json")


def _name_command(command: str) -> str:
    """Return a command without the rest of its pipeline, such as `| tail`."""
    return command.partition(" | ")[0].strip()[:_NAME_CHARS]
