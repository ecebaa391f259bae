"""Runs `codeloop run` as a program of its own, whose environment has no token of the host (GitHub, GitLab)."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from codeloop.automation.ci.json_fields import list_at, object_at, text_at
from codeloop.kit.terminal_text import one_line
from codeloop.schema.bounds.automation import CI_END, CI_EXPORT
from codeloop.schema.wire import JSON

PROGRAM = (sys.executable, "-P", "-m", "codeloop")
_CALL_START = b'{"type":"tool_use"'
"""How an output line about a tool call begins."""
_MAX_LINE_BYTES = 64 * 1024 * 1024  # a line may contain the whole output of a call
_HIDDEN_VARIABLES = frozenset(
    (
        *(
            "GITHUB_TOKEN",
            "GH_TOKEN",
            "GITHUB_ENV",
            "GITHUB_OUTPUT",
            "GITHUB_PATH",
            "GITHUB_STATE",
            "GITHUB_STEP_SUMMARY",
        ),
        *("GITHUB_EVENT_PATH", "CODELOOP_GITLAB_TOKEN", "GITLAB_TOKEN", "TRIGGER_PAYLOAD", "CI_REPOSITORY_URL"),
    )
)
"""Secrets of the host, and the files by which a step of a job sets variables and paths of the next steps."""
_HIDDEN_PREFIXES = (
    "ACTIONS_",
    "INPUT_",
    "CI_JOB_TOKEN",
    "CI_JOB_JWT",
    "CI_REGISTRY_",
    "CI_DEPENDENCY_PROXY_",
    "CI_DEPLOY_",
)


class AgentLimits(Struct, frozen=True):
    """The limits and options of a run: `cost` in dollars, `steps` (requests to the model), and time in `seconds`.

    `profile`: the permission profile. `model`, `agent`, `config`: as the flags of `codeloop run`, "" for the default.
    """

    cost: float
    steps: int
    seconds: float
    profile: str
    model: str = ""
    agent: str = ""
    is_trusted: bool = False
    config: str = ""


class AgentResult(
    Struct,
    frozen=True,
    kw_only=True,
    rename={"session_id": "sessionID", "exit_code": "exitCode", "milliseconds": "durationMs"},
):
    """The result of a run: the last output line of `codeloop run --format json`. `cost` in dollars."""

    session_id: str = ""
    exit_code: int
    text: str = ""
    message: str = ""
    cost: float = 0.0
    steps: int = 0
    milliseconds: int = 0
    structured: Any = None


class RecordedCall(Struct, frozen=True):
    """A command that the agent ran, with its exit code (None: it was killed) and its output."""

    command: str
    exit_code: int | None
    output: str


def hide_secrets(environment: Mapping[str, str], token: str) -> dict[str, str]:
    """Return an environment without the host's secrets and step files, and without any variable that has the token."""
    return {
        name: value
        for name, value in environment.items()
        if name not in _HIDDEN_VARIABLES and not name.startswith(_HIDDEN_PREFIXES) and not (token and token in value)
    }


class AgentProgram:
    """Starts `codeloop` for one job. `token`: the host's token, which must not be in the program's environment."""

    def __init__(self, limits: AgentLimits, token: str, say: Callable[[str], object]) -> None:
        """`say` writes a line to the job's log."""
        self._limits = limits
        self._say = say
        # Python knows a stale bytecode file by the size and the second of its source. Two commits that are checked out
        # within a second may agree in both, and then the bytecode of one would run for the other.
        no_bytecode = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": "/nonexistent"}
        self._environment = {**hide_secrets(os.environ, token), **no_bytecode}

    async def run(self, directory: Path, title: str, prompt: str, schema: Path | None = None) -> AgentResult:
        """Run one prompt to its end. `schema`: the file with the JSON Schema of a structured answer."""
        limits = self._limits
        options = [
            *("--max-cost", f"{limits.cost:g}", "--max-steps", str(limits.steps), "--timeout", f"{limits.seconds:g}"),
            *(("--model", limits.model) if limits.model else ()),
            *(("--agent", limits.agent) if limits.agent else ()),
            *(("--trust",) if limits.is_trusted else ()),
            *(("--config", limits.config) if limits.config else ()),
            *(("--schema", str(schema)) if schema is not None else ()),
            "-",
        ]
        return await self._run(directory, title, options, prompt, limits.seconds + CI_END.seconds)

    async def repeat(self, directory: Path, script: Path, seconds: float) -> AgentResult:
        """Run the tool calls of a script instead of a model's, with the same tools, permission rules and sandbox."""
        options = ["--replay", str(script), "--timeout", f"{seconds:g}", "Run each command again."]
        return await self._run(directory, "Proofs again", options, "", seconds + CI_END.seconds)

    async def export(self, directory: Path, session_id: str, form: str, path: Path) -> bool:
        """Write a session to a file, in a format of `codeloop export`; return whether that worked."""
        command = (*PROGRAM, "export", session_id, "--format", form, "--output", str(path))
        code, _ = await self._start(command, directory, "", CI_EXPORT.seconds)
        return code == 0 and path.exists()

    async def list_calls(self, directory: Path, session_id: str, path: Path) -> list[RecordedCall]:
        """Return the commands that the agent ran in a session, oldest first. `path`: a file for its export."""
        if not await self.export(directory, session_id, "json", path):
            return []
        document = msgspec.json.decode(path.read_bytes())
        parts = [part for message in list_at(document, "messages") for part in list_at(message, "parts")]
        return [call for part in parts if (call := _read_call(part)) is not None]

    async def _run(
        self, directory: Path, title: str, options: Sequence[str], prompt: str, seconds: float
    ) -> AgentResult:
        shared = (
            "run",
            "--format",
            "json",
            "--profile",
            self._limits.profile,
            "--dir",
            str(directory),
            "--title",
            title,
        )
        code, line = await self._start((*PROGRAM, *shared, *options), directory, prompt, seconds)
        try:
            return msgspec.json.decode(line, type=AgentResult)
        except msgspec.DecodeError:
            return AgentResult(exit_code=code or 1, message=f"codeloop run ended with {code} and without a result.")

    async def _start(self, command: Sequence[str], directory: Path, stdin: str, seconds: float) -> tuple[int, bytes]:
        """Run a program to its end, or end it after `seconds`; return its exit code and the last line of its stdout.

        Its stderr goes to ours. A program that had to be ended has no last line.
        """
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=directory,
            env=self._environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_MAX_LINE_BYTES,
            start_new_session=True,
        )
        last = b""
        try:
            async with asyncio.timeout(seconds):
                if process.stdin is not None:
                    with suppress(ConnectionError):
                        process.stdin.write(stdin.encode("utf-8", "replace"))
                        await process.stdin.drain()
                    process.stdin.close()
                if process.stdout is not None:
                    async for line in process.stdout:
                        last = line
                        if line.startswith(_CALL_START):
                            self._say(_describe_call(line))
                await process.wait()
        except TimeoutError:
            last = b""
        finally:
            if process.returncode is None:
                await _end_program(process)
        return process.returncode or 0, last


async def _end_program(process: asyncio.subprocess.Process) -> None:
    """Ask a program to end, so that it can store its session as interrupted; kill it if it does not end in time."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(CI_END.seconds / 6):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _describe_call(line: bytes) -> str:
    """Return a tool call as one line for the job's log."""
    part = msgspec.json.decode(line)["part"]
    state = object_at(part, "state")
    data = object_at(state, "input")
    what = data.get("command") or data.get("filePath") or data.get("pattern") or state.get("title") or ""
    failed = "" if state.get("status") == "completed" else " (failed)"
    return one_line(f"{part.get('tool')} {what}{failed}", 160)


def _read_call(part: JSON) -> RecordedCall | None:
    """Return the command of an exported part; None when the part is no finished call of `bash`."""
    state = object_at(part, "state")
    if part.get("type") != "tool" or part.get("tool") != "bash" or state.get("status") != "completed":
        return None
    metadata = object_at(state, "metadata")
    if "id" in metadata:  # the command was started in the background, so its exit code is not known
        return None
    shown_output = metadata.get("output")  # what users see: the result for the model also has notes
    output = shown_output if isinstance(shown_output, str) else text_at(state, "output")
    return RecordedCall(text_at(object_at(state, "input"), "command"), metadata.get("exit"), output)
