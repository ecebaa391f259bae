"""Handlers of version 2: commands of the user that run beside the sessions."""

import asyncio
import secrets
from codecs import getincrementaldecoder
from pathlib import Path

from msgspec import Struct, field

from codeloop.app.project import Project
from codeloop.kit.child_process import ChildProcess, Launch
from codeloop.kit.program import run_program, start_child
from codeloop.schema.ids import now_ms
from codeloop.schema.operation import NoArguments
from codeloop.schema.wire import JSON
from codeloop.server.version2 import arguments as takes
from codeloop.server.version2.request import Request2, make_not_found, make_refusal
from codeloop.server.version2.session_forms import make_object
from codeloop.workspace.terminal.shell_choice import find_user_shell

_KEPT_BYTES = 4 * 1024 * 1024
"""The bytes of a command's output that are kept: the last ones."""
_MAX_SHELLS = 200
"""Commands that are remembered; the oldest that have ended are forgotten."""


class Shell(Struct):
    """A command. `output`: its last bytes; `size`: how many it has printed."""

    info: JSON
    directory: str
    output: bytearray = field(default_factory=bytearray)
    size: int = 0
    task: asyncio.Task[None] | None = None

    def take(self, chunk: bytes) -> bool:
        """Keep what the command has printed; return False: it may go on."""
        self.output += chunk
        self.size += len(chunk)
        del self.output[: max(len(self.output) - _KEPT_BYTES, 0)]
        return False


async def list_shells(request: Request2, _args: NoArguments) -> list[JSON]:
    """Return the commands of a directory that run."""
    here = str(request.directory)
    return [
        each.info
        for each in request.state.shells.values()
        if each.directory == here and each.info["status"] == "running"
    ]


async def create_shell(request: Request2, args: takes.CreateShell) -> JSON:
    """Start a command. It is the user's own, in no sandbox; but none is started where a
    required one can't be had.
    """
    project = await request.get_project()
    workspace = project.workspace
    if workspace.sandbox.mode == "required":
        await workspace.program_sandboxes.enter_command_sandbox()
    if not args.command.strip() or "\0" in args.command:
        raise make_refusal("command is empty or holds a NUL character.")
    cwd = Path(workspace.directory, args.cwd or "")
    if not cwd.is_dir():
        raise make_refusal(f"There is no folder {cwd} to run the command in.")
    program = find_user_shell(workspace.environment)
    hooks = project.engine.hooks
    environment = {
        **workspace.environment,
        **await hooks.collect_shell_variables({"cwd": str(cwd)}),
    }
    shell_id = f"sh_{secrets.token_hex(12)}"
    info: JSON = {
        "id": shell_id,
        "status": "running",
        "command": args.command,
        "cwd": str(cwd),
        "shell": program,
        "file": "",
        "metadata": args.metadata or {},
        "time": {"started": now_ms()},
    }
    shell = Shell(info, str(request.directory))
    seconds = None if args.timeout is None else args.timeout / 1000
    launch = Launch((program, "-c", args.command), cwd, environment, seconds=seconds)
    _remember(request, shell)
    request.state.publish("shell.created", {"info": dict(info)}, shell.directory)
    shell.task = request.state.run(_run(request, project, shell, launch))
    return info


def _remember(request: Request2, shell: Shell) -> None:
    shells = request.state.shells
    shells[shell.info["id"]] = shell
    ended = [name for name, each in shells.items() if each.info["status"] != "running"]
    for name in ended[: max(len(shells) - _MAX_SHELLS, 0)]:
        del shells[name]


async def _run(request: Request2, project: Project, shell: Shell, launch: Launch) -> None:
    """Run a command to its end; if this is cancelled, it is killed with what it has started."""

    async def start(described: Launch) -> ChildProcess:
        process = await start_child(described)
        shell.info["pid"] = process.pid
        return process

    info = shell.info
    try:
        with project.track_request():
            result = await run_program(launch, start, feed=shell.take, feed_errors=shell.take)
        info["exit"] = result.code
        info["status"] = "timeout" if result.stop_reason == "time" else "exited"
    except OSError as error:
        shell.take(f"{launch.arguments[0]} can't be started: {error.strerror}\n".encode())
        info |= {"exit": 127, "status": "exited"}
    except asyncio.CancelledError:
        info["status"] = "killed"
        raise
    finally:
        info["time"]["completed"] = now_ms()
        data = {key: info[key] for key in ("id", "exit", "status") if key in info}
        request.state.publish("shell.exited", data, shell.directory)


def _find(request: Request2, shell_id: str) -> Shell:
    shell = request.state.shells.get(shell_id)
    if shell is None:
        raise make_not_found("Shell", shell_id, id=shell_id)
    return shell


async def get_shell(request: Request2, args: takes.ShellId) -> JSON:
    """Return a command."""
    return _find(request, args.id).info


async def remove_shell(request: Request2, args: takes.ShellId) -> None:
    """End a command, and forget it; one that is not there is forgotten already."""
    shell = request.state.shells.pop(args.id, None)
    if shell is None:
        return
    if shell.task is not None:
        shell.task.cancel()
    request.state.publish("shell.deleted", {"id": args.id}, shell.directory)


async def read_output(request: Request2, args: takes.ReadShell) -> JSON:
    """Return the output of a command from a position on, in whole characters."""
    shell = _find(request, args.id)
    first = shell.size - len(shell.output)
    start = min(max(args.cursor, first), shell.size)
    # The longest character has four bytes: a shorter piece might never get on.
    limit = shell.size if args.limit is None else max(args.limit, 4)
    end = min(start + limit, shell.size)
    is_all = end == shell.size and shell.info["status"] != "running"
    decoder = getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(bytes(shell.output[start - first : end - first]), final=is_all)
    # What it holds back is the beginning of a character.
    end -= len(decoder.getstate()[0])
    return make_object(output=text, cursor=end, size=shell.size, truncated=start > args.cursor)
