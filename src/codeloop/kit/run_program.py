"""Starts programs without a sandbox, and runs them to their end so that no process is left behind."""

import os
import signal
import sys
from asyncio import CancelledError, create_subprocess_exec, ensure_future, shield, timeout
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from codeloop.kit.new_file import write_new_file
from codeloop.kit.programs import find_program, make_safe_environment

_STREAM_LIMIT_BYTES = 64 * 1024
"""The limit of asyncio for a line that `readline` returns."""
_REAP_SECONDS = 1.0
"""How long the end of a killed program is waited for. asyncio reports it only when the program's pipes are closed, too,
and a process that has left the group may keep them open for ever."""
# In a process of its own: some browsers block `webbrowser.open`, or print to the terminal.
_BROWSER_CODE = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.argv[1]))"


class ProgramResult(NamedTuple):
    """The result of a program that has ended. `code`: its exit code, negative for the signal that ended it."""

    code: int
    stdout: bytes
    stderr: bytes


async def run_program(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    timeout_seconds: float,
    folder: Path | str = "/",
    stdin: bytes = b"",
    is_apart: bool = True,
) -> ProgramResult:
    """Run a program to its end and return its output. Raises OSError (it can't be started) and TimeoutError.

    No process of it is left when this returns or raises, also when the call is cancelled: those that it started in the
    background are killed. `is_apart`: run it in a session of its own. Without, it can use the terminal, but only the
    program itself is killed.
    """
    process = await start_program(command, environment=environment, folder=folder, is_apart=is_apart)
    try:
        async with timeout(timeout_seconds):
            stdout, stderr = await process.communicate(stdin)
    finally:
        await kill_program(process, is_apart=is_apart)
    return ProgramResult(process.returncode or 0, stdout, stderr)


async def start_program(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path | str = "/",
    stderr: int | None = PIPE,
    limit_bytes: int = _STREAM_LIMIT_BYTES,
    is_apart: bool = True,
) -> Process:
    """Start a program with pipes for its stdin and stdout. Raises OSError.

    `stderr` is as in asyncio; `limit_bytes`: of a line that `readline` returns. `is_apart`: see `run_program`.
    """
    starting = ensure_future(
        create_subprocess_exec(
            *command,
            cwd=folder,
            env=dict(environment),
            stdin=PIPE,
            stdout=PIPE,
            stderr=stderr,
            limit=limit_bytes,
            start_new_session=is_apart,
        )
    )
    try:
        return await shield(starting)
    except CancelledError:
        # If asyncio is cancelled while it starts a program, it kills the program alone, and then waits until the
        # processes that this has started have closed its pipes. So the start is completed first.
        with suppress(OSError):
            await kill_program(await starting, is_apart=is_apart)
        raise


async def kill_program(process: Process, *, is_apart: bool = True) -> None:
    """Kill a program of `start_program`, if it `is_apart` with all processes of its group, also after its own end."""
    # PermissionError: macOS raises it for a group whose processes have all ended.
    with suppress(ProcessLookupError, PermissionError):
        if is_apart:
            os.killpg(process.pid, signal.SIGKILL)
        elif process.returncode is None:
            process.kill()
    with suppress(TimeoutError):
        async with timeout(_REAP_SECONDS):
            await process.wait()


async def start_outside_project(
    program: Sequence[str],
    *,
    folder: str = "/",
    stdin: int | None = None,
    output: int | None = None,
    is_apart: bool = False,
) -> Process:
    """Start a program of the user's machine, such as a browser or an editor, without a sandbox.

    It starts in `folder` and is not looked up in projects, so that no file of a project decides what runs. `stdin` and
    `output` (stdout) are as in asyncio; stderr goes where stdout goes, or to /dev/null if stdout is a pipe. `is_apart`:
    start it in a session of its own, which signals to codeloop don't reach. Raises OSError, also if it is missing.
    """
    environment = make_safe_environment(os.environ)
    path = program[0] if program[0].startswith("/") else find_program(program[0], environment["PATH"])
    if path is None:
        raise FileNotFoundError(2, f"{program[0]} is not installed", program[0])
    errors = DEVNULL if output == PIPE else output
    return await create_subprocess_exec(
        *(path, *program[1:]),
        cwd=folder,
        env=environment,
        stdin=stdin,
        stdout=output,
        stderr=errors,
        start_new_session=is_apart,
    )


async def open_browser(url: str) -> bool:
    """Open an address in the user's browser; False: it was not opened, as over SSH or without a display."""
    # The address comes from the server, and `webbrowser` would also open files and other programs.
    return urlsplit(url).scheme in {"http", "https"} and await _start_browser(url)


async def open_private_link(url: str, folder: Path) -> bool:
    """Open an address that holds a secret, as `open_browser` does.

    Other users of the machine can read the arguments of programs. So the browser is given the path of a page in
    `folder`, which only its owner may enter. The page leads on to the address, and has to stay until it was read.
    """
    page = folder / "open.html"
    text = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={escape(url)}">\n'
    write_new_file(page, text.encode())
    return await _start_browser(page.as_uri())


async def _start_browser(url: str) -> bool:
    # Over SSH a browser would open on the machine at the other end.
    is_remote = any(os.environ.get(name) for name in ("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT"))
    has_screen = sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if not os.environ.get("BROWSER") and (is_remote or not has_screen):
        return False
    try:
        browser = await start_outside_project((sys.executable, "-I", "-c", _BROWSER_CODE, url))
        return await browser.wait() == 0
    except OSError:
        return False
