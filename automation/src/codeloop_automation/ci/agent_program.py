"""The sessions of a CI job: each is a `codeloop run` whose environment has no token
of the host (GitHub, GitLab).
"""

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from codeloop.kit.child_process import Launch
from codeloop.kit.program import LineBuffer, run_program
from codeloop.kit.text.terminal_text import one_line
from codeloop.model.catalog.catalog import Catalog
from codeloop.schema.wire import JSON
from codeloop.workspace.sandbox.secret_variables import find_secret_variables
from codeloop_automation.bounds import CI_END, CI_EXPORT, CI_STOP
from codeloop_automation.ci.json_fields import get_list, get_object, get_text
from codeloop_automation.command_lines import CODELOOP_COMMAND

# Secrets of the host, and the files by which a step of a job sets variables and
# paths of the next steps.
_HIDDEN_VARIABLES = frozenset(
    (
        *("GITHUB_TOKEN", "GH_TOKEN", "GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STATE"),
        *(
            "GITHUB_STEP_SUMMARY",
            "GITHUB_EVENT_PATH",
            "CODELOOP_GITLAB_TOKEN",
            "GITLAB_TOKEN",
            "TRIGGER_PAYLOAD",
        ),
        # This URL contains the job's token.
        "CI_REPOSITORY_URL",
    )
)
# ACTIONS_: tokens for GitHub's caches and artifacts. INPUT_: inputs of an action, such as tokens.
# CI_: passwords of GitLab.
_HIDDEN_PREFIXES = (
    *(
        "ACTIONS_",
        "INPUT_",
        "CI_JOB_TOKEN",
        "CI_JOB_JWT",
        "CI_REGISTRY_",
        "CI_DEPENDENCY_PROXY_",
        "CI_DEPLOY_",
    ),
)
_PROXIES = r"(?i)(?:https?|all)_proxy"


def make_agent_environment(
    environment: Mapping[str, str], token: str, model: str, shown: Collection[str] = ()
) -> dict[str, str]:
    """Return the environment of the agent: without what looks like a secret,
    in its name or its value.

    `token`: the host's, which is in no variable. `model`: as `--model` takes it; only variables of
    its provider stay of those that providers read, for "" those of all.
    `shown`: names of variables that stay all the same.
    """
    catalog = Catalog()
    provider = catalog.find_row(model.partition("/")[0])
    keys = catalog.environment_names if provider is None else frozenset(provider.env)
    candidates = {
        name: value
        for name, value in environment.items()
        # A workflow may copy the token to a variable of any name, so the values are searched, too.
        if name not in _HIDDEN_VARIABLES
        and not name.startswith(_HIDDEN_PREFIXES)
        and not (token and token in value)
    }
    # Without its provider's address, a model is asked at the wrong place;
    # without the proxy, none is reached.
    stays = {
        name for name in candidates if name in keys or name in shown or re.fullmatch(_PROXIES, name)
    }
    hidden = find_secret_variables(candidates, stays)
    return {name: value for name, value in candidates.items() if name not in hidden}


# The output lines about tool calls begin like this; the other lines need not be decoded.
_TOOL_CALL_PREFIX = b'{"type":"tool_use"'
# A line may contain the whole output of a tool call.
_MAX_LINE_BYTES = 64 * 1024 * 1024


class AgentLimits(Struct, frozen=True):
    """The limits and options of a session: `cost` in dollars, `steps` (requests to the model),
    and time in `seconds`.

    `profile`: the permission profile. `model`, `agent`, `config`: as the flags of `codeloop run`,
    "" for the default.
    `is_trusted`: as its flag `--trust`. `variables`: names of variables that look like
    secrets and that it gets.
    """

    cost: float
    steps: int
    seconds: float
    profile: str
    model: str = ""
    agent: str = ""
    is_trusted: bool = False
    config: str = ""
    variables: tuple[str, ...] = ()


class AgentResult(
    Struct,
    frozen=True,
    kw_only=True,
    rename={"session_id": "sessionID", "exit_code": "exitCode", "milliseconds": "durationMs"},
):
    """The result of a session: the last output line of `codeloop run --format json`.
    `cost` in dollars.
    """

    session_id: str = ""
    exit_code: int
    text: str = ""
    message: str = ""
    cost: float = 0.0
    steps: int = 0
    milliseconds: int = 0
    structured: Any = None


class RecordedCall(Struct, frozen=True):
    """A command that the agent has run, with its exit code (None: it was killed) and its output."""

    command: str
    exit_code: int | None
    output: str


class AgentProgram:
    """Starts `codeloop` for one CI job. `token`: the host's token,
    which the program must not get.
    """

    def __init__(self, limits: AgentLimits, token: str, write_log: Callable[[str], object]) -> None:
        """`write_log` writes a line to the job's log."""
        self._limits = limits
        self._write_log = write_log
        # Python knows a stale bytecode file by the size and the second of its source. Two commits
        # that are checked out within a second may agree in both,
        # and then the bytecode of one would run for the other.
        no_bytecode = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": "/nonexistent"}
        shown = (*limits.variables, *_find_named_variables(limits.config))
        self._environment = {
            **make_agent_environment(os.environ, token, limits.model, shown),
            **no_bytecode,
        }

    async def run(
        self, directory: Path, title: str, prompt: str, schema: Path | None = None
    ) -> AgentResult:
        """Run a session with one prompt. `schema`: the file with the JSON Schema
        of a structured answer.
        """
        limits = self._limits
        options = [
            *(
                "--max-cost",
                f"{limits.cost:g}",
                "--max-steps",
                str(limits.steps),
                "--timeout",
                f"{limits.seconds:g}",
            ),
            *(("--model", limits.model) if limits.model else ()),
            *(("--agent", limits.agent) if limits.agent else ()),
            *(("--trust",) if limits.is_trusted else ()),
            *(("--config", limits.config) if limits.config else ()),
            *(("--schema", str(schema)) if schema is not None else ()),
            "-",
        ]
        return await self._run_session(
            directory,
            title=title,
            options=options,
            prompt=prompt,
            seconds=limits.seconds + CI_END.seconds,
        )

    async def replay(self, directory: Path, script: Path, seconds: float) -> AgentResult:
        """Run a session whose tool calls come from a script, with the same tools,
        permission rules and sandbox.
        """
        options = ["--replay", str(script), "--timeout", f"{seconds:g}", "Run each command again."]
        return await self._run_session(
            directory,
            title="Proofs again",
            options=options,
            prompt="",
            seconds=seconds + CI_END.seconds,
        )

    async def export(
        self, directory: Path, session_id: str, export_format: str, path: Path
    ) -> bool:
        """Write a session to a file, in a format of `codeloop export`;
        return whether that worked.
        """
        command = (
            *CODELOOP_COMMAND,
            "export",
            session_id,
            "--format",
            export_format,
            "--output",
            str(path),
        )
        code, _ = await self._run_program(command, directory, stdin="", seconds=CI_EXPORT.seconds)
        return code == 0 and path.exists()

    async def list_calls(self, directory: Path, session_id: str, path: Path) -> list[RecordedCall]:
        """Return the commands that the agent ran in a session, oldest first.
        `path`: a file for its export.
        """
        if not await self.export(directory, session_id, "json", path):
            return []
        document = msgspec.json.decode(path.read_bytes())
        parts = [
            part
            for message in get_list(document, "messages")
            for part in get_list(message, "parts")
        ]
        return [call for call in map(_read_call, parts) if call is not None]

    async def _run_session(
        self, directory: Path, *, title: str, options: Sequence[str], prompt: str, seconds: float
    ) -> AgentResult:
        """Run `codeloop run`; return the result in its last output line,
        or a failed one if there is none.
        """
        shared_options = (
            *("--format", "json", "--profile", self._limits.profile),
            *("--dir", str(directory), "--title", title),
        )
        command = (*CODELOOP_COMMAND, "run", *shared_options, *options)
        code, line = await self._run_program(command, directory, stdin=prompt, seconds=seconds)
        try:
            return msgspec.json.decode(line, type=AgentResult)
        except msgspec.DecodeError:
            return AgentResult(
                exit_code=code or 1, message=f"codeloop run ended with {code} and without a result."
            )

    async def _run_program(
        self, command: Sequence[str], directory: Path, *, stdin: str, seconds: float
    ) -> tuple[int, bytes]:
        """Run a program, and end it after `seconds`;
        return its exit code and the last line of its stdout.

        A program that had to be ended has no last line. Its stderr goes to the log of the job.
        """
        output, errors = LineBuffer(), LineBuffer()
        last_line = b""

        def feed(chunk: bytes) -> bool:
            nonlocal last_line
            for line in output.take_lines(chunk):
                last_line = line
                if line.startswith(_TOOL_CALL_PREFIX):
                    self._write_log(_describe_call(line))
            return output.size > _MAX_LINE_BYTES

        def relay_errors(chunk: bytes) -> None:
            for line in errors.take_lines(chunk):
                self._write_log(line.decode("utf-8", "replace").rstrip().removeprefix("codeloop: "))

        launch = Launch(
            command,
            directory,
            self._environment,
            stdin=stdin.encode("utf-8", "replace"),
            seconds=seconds,
            # So that it can store its session as interrupted. GitHub kills a cancelled job after 10
            # s: the rest of these is for the comment that says so.
            grace_seconds=CI_STOP.seconds,
        )
        result = await run_program(launch, feed=feed, feed_errors=relay_errors)
        return result.code, b"" if result.stop_reason else last_line


def _find_named_variables(config: str) -> list[str]:
    """Return the variables that a configuration file (its path; "": none) names as `{env:NAME}`."""
    try:
        return (
            re.findall(r"\{env:(\w+)\}", Path(config).read_text(encoding="utf-8")) if config else []
        )
    # The program reports the file that it can't read.
    except (OSError, UnicodeDecodeError):
        return []


def _describe_call(line: bytes) -> str:
    """Return a tool call, an output line of `codeloop run`, as one line for the log of the job."""
    part = msgspec.json.decode(line)["part"]
    state = get_object(part, "state")
    arguments = get_object(state, "input")
    subject = (
        arguments.get("command")
        or arguments.get("filePath")
        or arguments.get("pattern")
        or state.get("title")
        or ""
    )
    failed = "" if state.get("status") == "completed" else " (failed)"
    return one_line(f"{part.get('tool')} {subject}{failed}", 160)


def _read_call(part: JSON) -> RecordedCall | None:
    """Return the command of an exported part; None if the part is not a finished
    call of the tool `bash`.
    """
    state = get_object(part, "state")
    if (
        part.get("type") != "tool"
        or part.get("tool") != "bash"
        or state.get("status") != "completed"
    ):
        return None
    metadata = get_object(state, "metadata")
    # A command that was started in the background: its exit code is not known.
    if "id" in metadata:
        return None
    # The output that users see; the one for the model has notes of the tool, too.
    shown_output = metadata.get("output")
    output = shown_output if isinstance(shown_output, str) else get_text(state, "output")
    command = get_text(get_object(state, "input"), "command")
    return RecordedCall(command=command, exit_code=metadata.get("exit"), output=output)
