"""Starts the program of a local server, in a sandbox or without, and reads and writes its lines."""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from msgspec import Struct

from codeloop.extend.mcp.definition import LocalDefinition
from codeloop.kit.paths import expand_user_path
from codeloop.kit.programs import find_program
from codeloop.kit.small_files import create_private_folder
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import MCP_MESSAGE, MCP_STOP, SHELL_TERM_TIME
from codeloop.workspace.process.child_process import Pipe
from codeloop.workspace.process.program_environment import make_program_environment
from codeloop.workspace.process.program_log import ProgramLog
from codeloop.workspace.process.program_sandboxes import ProgramSandboxes
from codeloop.workspace.process.uncancelled import finish_uncancelled
from codeloop.workspace.sandbox.launched_process import Launch, LaunchedProcess
from codeloop.workspace.sandbox.program_profile import (
    ProgramProfile,
    find_code_folders,
    list_named_paths,
    widen_profile,
)
from codeloop.workspace.sandbox.sandboxes import SandboxUnavailable

# A folder that exists everywhere, and holds nothing of a project.
_ROOT_FOLDER = Path("/")
_DOT_FOLDERS = (".", "..")


class ServerProject(Struct, frozen=True):
    """The project that servers are started for: its directory and its top, both resolved, and whether it is trusted."""

    directory: Path
    root: Path
    is_trusted: bool


class LaunchSpec(Struct, frozen=True):
    """A program to launch. `words`: the path of the program and its arguments; `environment`: all its variables.

    `profile`: the profile of its sandbox; None: no sandbox.
    """

    words: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    profile: ProgramProfile | None


def make_user_spec(
    config: LocalDefinition, project: ServerProject, environment: Mapping[str, str], own: Path
) -> LaunchSpec:
    """Return the launch of a user's server, in its own folder `own`.

    Interpreters and package runners take options and code from the folder that they start in, and from those above it.
    So that is a folder of the project only if the definition says so and the project is trusted. Raises CodeloopError.
    """
    project_folders = (project.directory, project.root)
    folder = _find_folder(config, project.directory)
    if folder is None or (not project.is_trusted and _is_inside(folder, project_folders)):
        create_private_folder(own)
        # The server's own folder lies inside the project when the user's data folder does.
        folder = _ROOT_FOLDER if _is_inside(own, project_folders) else own
    words = config.command
    if project.is_trusted:
        words = [_resolve_word(word, project.directory) for word in words]
    variables = make_program_environment(environment, config.environment, project_folders)
    program = _find_program(words[0], folder, variables)
    return _make_spec((program, *words[1:]), folder, variables, config, project, own)


def make_project_spec(
    config: LocalDefinition, project: ServerProject, environment: Mapping[str, str], own: Path
) -> LaunchSpec:
    """Return the launch of a trusted project's server, in the project's directory. Raises CodeloopError."""
    folder = _find_folder(config, project.directory) or project.directory
    variables = make_program_environment(environment, config.environment)
    program = _find_program(config.command[0], folder, variables)
    return _make_spec((program, *config.command[1:]), folder, variables, config, project, own)


def _make_spec(
    words: tuple[str, ...],
    folder: Path,
    environment: Mapping[str, str],
    config: LocalDefinition,
    project: ServerProject,
    own: Path,
) -> LaunchSpec:
    if project.directory in folder.parents or project.directory == folder or words[1:] != tuple(config.command[1:]):
        # It may run code of the project (words that differ from the configured ones are paths there): keep Python from
        # leaving .pyc files in it.
        environment = {"PYTHONDONTWRITEBYTECODE": "1", **environment}
    code_folders = find_code_folders(words, Path(environment.get("HOME") or "/nonexistent"))
    readable = (*code_folders, *list_named_paths(config.environment.values()), folder)
    profile = ProgramProfile(own, readable=readable, network="on")
    return LaunchSpec(words, folder, environment, widen_profile(profile, config.effective_sandbox, project.root))


def _find_folder(config: LocalDefinition, directory: Path) -> Path | None:
    """Return the folder that a definition names. Raises CodeloopError when it is not there."""
    if not config.cwd:
        return None
    folder = directory / expand_user_path(config.cwd)
    if not folder.is_dir():
        raise CodeloopError(f"its directory {folder} does not exist")
    return folder


def _is_inside(folder: Path, project_folders: Sequence[Path]) -> bool:
    real_folder = Path(os.path.realpath(folder))
    return any(real_folder.is_relative_to(os.path.realpath(each)) for each in project_folders)


def _resolve_word(word: str, directory: Path) -> str:
    """Return a word of a command; a relative path starting with a dot becomes absolute."""
    is_dot_path = word in _DOT_FOLDERS or word.startswith(("./", "../"))
    return os.path.normpath(directory / word) if is_dot_path else word


def _find_program(name: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Return the absolute path of a program. Raises CodeloopError when it is not on the PATH."""
    if "/" in name:
        return os.path.normpath(folder / expand_user_path(name))
    path = find_program(name, environment.get("PATH"))
    if path is None:
        raise CodeloopError(f"There is no program {name!r} on the PATH. Install it, or give its path as `command`.")
    return path


class MessageTooLong(CodeloopError):
    """A server sent more in one message than is read."""


class ServerProcess:
    """A running program. It reads lines from stdin and writes lines to stdout; its stderr goes to the log."""

    def __init__(self, process: LaunchedProcess, streams: "_Streams", errors: Pipe) -> None:
        self._process = process
        self._streams = streams
        self._errors = errors

    async def read_lines(self) -> AsyncGenerator[bytes]:
        """Yield the lines of its stdout until it ends. Raises MessageTooLong."""
        rest = bytearray()
        while chunk := await self._streams.reader.read(2**16):
            rest += chunk
            if b"\n" in chunk:
                # Split only when a line has ended, so that a long message is not searched again with each chunk.
                *lines, last = bytes(rest).split(b"\n")
                rest = bytearray(last)
                for line in lines:
                    yield line
            elif len(rest) > MCP_MESSAGE.value:
                raise MessageTooLong(f"it sent a message of more than {MCP_MESSAGE.value:,} bytes")

    async def write(self, line: bytes) -> None:
        """Write a line to its stdin; waits while it reads nothing. Raises OSError when it has closed it."""
        self._streams.writer.write(line + b"\n")
        await self._streams.writer.drain()

    @property
    def exit_code(self) -> int | None:
        """The exit code (negative: the signal); None while it runs."""
        return self._process.exited.result() if self._process.exited.done() else None

    async def wait_briefly(self, seconds: float) -> None:
        """Wait for its end, for so long at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.shield(self._process.exited)

    async def close(self) -> None:
        """End the program: close its input, then send signals to its process tree. A cancelled caller waits, too."""
        # The end of its input is how an MCP server is asked to stop.
        self._streams.writer.close()
        try:
            await finish_uncancelled(self._end())
        finally:
            self._streams.output.close()
            self._errors.close()

    async def _end(self) -> None:
        await self.wait_briefly(MCP_STOP.seconds)
        await self._process.end(SHELL_TERM_TIME.seconds)


class _Streams(Struct, frozen=True):
    """Our ends of a program's stdin and stdout. `output` keeps the connection that `reader` reads from."""

    writer: asyncio.StreamWriter
    reader: asyncio.StreamReader
    output: asyncio.StreamWriter


async def start_server(program_sandboxes: ProgramSandboxes, spec: LaunchSpec, log: ProgramLog) -> ServerProcess:
    """Start a program. Raises CodeloopError."""
    log.record_start()
    errors = Pipe(log.feed)
    ours_in, theirs_in = socket.socketpair()
    ours_out, theirs_out = socket.socketpair()
    # Whatever fails below, no descriptor stays open.
    with ExitStack() as on_failure:
        for close in (errors.close, ours_in.close, ours_out.close):
            on_failure.callback(close)
        with theirs_in, theirs_out:
            descriptors = {0: theirs_in.fileno(), 1: theirs_out.fileno(), 2: errors.writer}
            try:
                launch = Launch(spec.words, spec.folder, spec.environment, descriptors)
                process = await program_sandboxes.start(launch, spec.profile)
            except SandboxUnavailable as error:
                raise CodeloopError(f"{error} The configuration requires one (sandbox).") from error
            except OSError as error:
                where = error.filename or spec.words[0]
                raise CodeloopError(f"{where} can't be started: {error.strerror}.") from error
        # The process is started: its streams are closed by `ServerProcess` now.
        on_failure.pop_all()
    errors.listen()
    _, writer = await asyncio.open_connection(sock=ours_in)
    reader, output = await asyncio.open_connection(sock=ours_out)
    return ServerProcess(process, _Streams(writer, reader, output), errors)
