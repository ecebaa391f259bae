"""Runs a hook of the configuration: a shell command, an HTTP request,
or a question to a model or a subagent.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from codeloop.extend.hooks.configured.decision import (
    HookDecision,
    decide_by_output,
    decide_by_verdict,
)
from codeloop.extend.hooks.configured.transcript import Transcripts
from codeloop.extend.hooks.hooks import HookFailed
from codeloop.kit.child_process import Launch
from codeloop.kit.programs import make_safe_environment
from codeloop.kit.small_files import create_private_folder, read_start
from codeloop.net.client import OriginClient
from codeloop.net.errors import NetworkError
from codeloop.schema.bounds.extension import HOOK_AGENT, HOOK_COMMAND, HOOK_OUTPUT, HOOK_PROMPT
from codeloop.schema.config import HookConfig, ProgramSandboxConfig
from codeloop.schema.wire import JSON, replace
from codeloop.workspace.process.program_environment import make_tool_environment
from codeloop.workspace.process.program_sandboxes import ProgramSandbox
from codeloop.workspace.process.running_command import find_shell
from codeloop.workspace.process.shell_state import drop_bash_variables
from codeloop.workspace.sandbox.named_paths import find_named_paths
from codeloop.workspace.sandbox.paths.linked_paths import is_below_any, is_folder, resolve_links
from codeloop.workspace.sandbox.program_profile import ProgramProfile, widen_profile
from codeloop.workspace.workspace import Workspace

DEFAULT_TIMEOUT_SECONDS = {
    "command": HOOK_COMMAND.seconds,
    "http": HOOK_COMMAND.seconds,
    "prompt": HOOK_PROMPT.seconds,
    "agent": HOOK_AGENT.seconds,
}
"""The deadline of a hook that sets none, by its type."""
EVENT_PLACEHOLDER = "$ARGUMENTS"
"""In a hook's prompt, the event's JSON replaces this."""
# As in Claude Code, the plain output of these events' commands becomes context of the model.
_CONTEXT_EVENTS = frozenset(("UserPromptSubmit", "SessionStart"))
# A log in Claude Code's folder, as a command or script names it, and the folder of logs there.
_LOG_NAME = r"\.claude(?:/|[\"']\s*[/,]\s*[\"'])((?:[\w.-]+/)*?[\w.-]+\.(?:log|jsonl|txt)\b|logs\b)"
_SCRIPT_BYTES = 64 * 1024
"""The start of a script that is searched for logs."""
_VARIABLE_REFERENCE = r"\$(?:\{(\w+)\}|(\w+))"


class HookVerdict(Struct, frozen=True):
    """A model's verdict on an event. `ok`: the event is allowed; `reason`: why not."""

    ok: bool
    reason: str = ""


class AskJudge(Protocol):
    """Asks a model, or a read-only subagent, to judge an event."""

    async def __call__(
        self, row: HookConfig, session_id: str, model: JSON | None, prompt: str, /
    ) -> HookVerdict:
        """Return the verdict. `model`: the prompt's model while the prompt is not stored yet.
        Raises HookFailed.
        """
        ...


_NETWORK_CLIENT = "hooks"
"""The name of a project's hooks at the network proxy,
which lets them reach the same addresses as commands.
"""


class HookScope(Struct, frozen=True):
    """The context that all hooks of a project share.

    `own_folder`: where the user's commands start while the project is not trusted. `tell` shows a
    line to the user. `map_server_tools` returns, by the name of our tool, the MCP server and its
    tool. `judge` asks a model for its verdict.
    """

    workspace: Workspace
    own_folder: Path
    is_trusted: bool
    tell: Callable[[str], None]
    map_server_tools: Callable[[], Mapping[str, tuple[str, str]]]
    transcripts: Transcripts
    judge: AskJudge


async def run_hook(
    row: HookConfig, payload: JSON, model: JSON | None, scope: HookScope
) -> HookDecision:
    """Run a hook for an event (`payload`); return its decision. Raises HookFailed."""
    match row.type:
        case "command":
            return await _run_command(row, payload, scope)
        case "http":
            return await _post_event(row, payload, scope)
        case "prompt" | "agent":
            text = msgspec.json.encode(payload).decode()
            has_placeholder = EVENT_PLACEHOLDER in row.prompt
            prompt = (
                row.prompt.replace(EVENT_PLACEHOLDER, text)
                if has_placeholder
                else f"{row.prompt}\n\n{text}"
            )
            verdict = await scope.judge(row, payload["session_id"], model, prompt)
            ends_turn = row.event == "PostToolUse" and not row.continue_on_block
            return decide_by_verdict(verdict.ok, verdict.reason, ends_turn=ends_turn)


async def _run_command(row: HookConfig, payload: JSON, scope: HookScope) -> HookDecision:
    """Run a hook's command with the event as JSON on its stdin.

    A project's hook runs in the sandbox of the agent's commands, and a user's hook in a sandbox of
    its own, unless the configuration says otherwise.
    """
    workspace = scope.workspace
    readable = tuple(
        Path(each).resolve() for each in (payload["transcript_path"], row.plugin_root) if each
    )
    sandbox = workspace.sandbox.extensions if row.sandbox is None else row.sandbox
    if row.may_allow:
        # Whatever is set for all extensions: such a hook has a sandbox of its own,
        # in which the project is hidden.
        sandbox = True
    # A project's hook loads files that the model edits: whatever is set,
    # it runs where commands run.
    shares_command_sandbox = row.is_project or (
        row.sandbox is None and sandbox is True and not row.may_allow
    )
    if shares_command_sandbox:
        confinement = ProgramSandbox(readable=readable, client=_NETWORK_CLIENT)
    else:
        profile = _make_profile(row, sandbox, scope, readable) if sandbox is not False else None
        confinement = ProgramSandbox(profile) if profile is not None else None
    max_bytes = HOOK_OUTPUT.value
    try:
        shell = (*find_shell(workspace.environment), "-c", row.command)
        words = shell if row.args is None else (row.command, *row.args)
        environment = _make_environment(
            row, scope, is_sandboxed=row.is_project or sandbox is not False
        )
        launch = Launch(
            words,
            _choose_folder(row, scope),
            environment,
            named_variables=frozenset(row.allowed_env_vars),
            stdin=msgspec.json.encode(payload),
            max_bytes=max_bytes,
        )
        result = await workspace.program_sandboxes.run(launch, confinement)
    except OSError as error:
        raise HookFailed(f"it can't be started: {error.strerror or error}") from error
    if note := _explain(row, scope, launch, confinement, result.error_text):
        scope.tell(f"The hook {row.place or row.command}: {note}")
    if result.stop_reason:
        raise HookFailed(f"it printed more than {max_bytes:,} bytes")
    decision = decide_by_output(
        result.code,
        result.stdout,
        result.error_text,
        is_context=row.event in _CONTEXT_EVENTS,
        command=" ".join((row.command, *(row.args or ()))),
    )
    is_allowed_unseen = row.may_allow and decision.permission == "allow"
    if is_allowed_unseen and not workspace.program_sandboxes.is_sandboxed(entry=True):
        raise HookFailed("its `allow` does not count, since no sandbox hides the project from it")
    return decision


def _explain(
    row: HookConfig, scope: HookScope, launch: Launch, confinement: ProgramSandbox | None, text: str
) -> str:
    """Return a line on what the sandbox of a hook that has ended refused it; "": nothing."""
    has_own_sandbox = confinement is not None and confinement.profile is not None
    if not has_own_sandbox and not text:
        return ""
    from codeloop.workspace.process.program_refusals import Said, explain_run

    allowing = f"codeloop plugin allow{' --project' if row.is_project else ''}"
    said = Said(text, finds_strayed=has_own_sandbox)
    return explain_run(scope.workspace.program_sandboxes, launch, confinement, said, allowing)


def _choose_folder(row: HookConfig, scope: HookScope) -> Path:
    """Return the directory of a command: for a user's hook not an untrusted project,
    whose files could affect it.
    """
    if not row.may_allow and (row.is_project or scope.is_trusted):
        return scope.workspace.directory
    # Interpreters and package runners load code and settings from the folder that they start in.
    create_private_folder(scope.own_folder)
    return scope.own_folder


def _make_environment(row: HookConfig, scope: HookScope, *, is_sandboxed: bool) -> dict[str, str]:
    """Return the variables of a command; in a sandbox without secrets,
    except those that the hook names.
    """
    workspace = scope.workspace
    root = str(workspace.root)
    project_variables = {"CLAUDE_PROJECT_DIR": root, "CODELOOP_PROJECT_DIR": root}
    if row.plugin_root:
        project_variables["CLAUDE_PLUGIN_ROOT"] = row.plugin_root
    variables = drop_bash_variables(workspace.environment)
    if not is_sandboxed:
        # Without a sandbox the hook is a program of the user's, and has the user's variables.
        return {**make_safe_environment(variables), **project_variables}
    named_variables = {name: variables[name] for name in row.allowed_env_vars if name in variables}
    # Programs of an untrusted project must not be found on the PATH.
    hidden_folders = (
        () if scope.is_trusted and not row.may_allow else (workspace.root, workspace.directory)
    )
    return make_tool_environment(
        variables, {**named_variables, **project_variables}, hidden_folders
    )


def _make_profile(
    row: HookConfig,
    sandbox: bool | ProgramSandboxConfig | None,
    scope: HookScope,
    readable: tuple[Path, ...],
) -> ProgramProfile | None:
    """Return the profile of a hook's own sandbox: it reads the project and its script,
    and reaches the network.

    `sandbox`: what the configuration says of it; None: nothing.
    """
    workspace = scope.workspace
    named = find_named_paths(
        (row.command, *(row.args or ())),
        (),
        Path(workspace.environment.get("HOME") or "/nonexistent"),
        roots=(workspace.root, workspace.directory),
    )
    profile = ProgramProfile(
        scope.own_folder,
        readable=readable,
        named=named.readable,
        network="on",
        hides_project=row.may_allow,
    )
    if not row.may_allow and scope.is_trusted:
        # The files of a trusted project, as formatters write them, and logs.
        folders = dict.fromkeys((workspace.root, workspace.directory))
        logs = _list_logs(row, named.code, scope)
        profile = replace(profile, writable=(*folders, *logs))
    return widen_profile(profile, True if sandbox is None else sandbox, scope.workspace.root)


def _list_logs(row: HookConfig, code: Sequence[Path], scope: HookScope) -> Iterator[Path]:
    """Yield the logs in Claude Code's folder that a user's hook may write: those that its command
    or script names, and the folder `logs`. Nothing else there: its files make programs run.
    """
    workspace = scope.workspace
    claude = Path(workspace.environment.get("HOME") or "/nonexistent") / ".claude"
    if not is_folder(claude):
        return
    real_folder = resolve_links(claude)
    words = " ".join((row.command, *(row.args or ())))
    texts = [words]
    for script in code:
        # The model edits those of the project.
        real_script = resolve_links(script)
        if script.name in words and not is_below_any(
            real_script, map(resolve_links, (workspace.root, workspace.directory))
        ):
            with suppress(OSError):
                texts.append(read_start(script, _SCRIPT_BYTES).decode(errors="replace"))
    names = {name: None for text in texts for name in re.findall(_LOG_NAME, text)}
    with suppress(OSError), os.scandir(claude) as entries:
        names |= {each.name: None for each in entries if re.search(r"^logs$|\.log$", each.name)}
    for name in dict.fromkeys("logs" if each.startswith("logs/") else each for each in names):
        # No link leads from there to something else.
        if ".." not in name and resolve_links(claude / name) == real_folder / name:
            yield claude / name


async def _post_event(row: HookConfig, payload: JSON, scope: HookScope) -> HookDecision:
    """Post the event as JSON to the hook's URL; a redirect is a failure."""
    allowed_variables = {
        name: scope.workspace.environment.get(name, "") for name in row.allowed_env_vars
    }

    def expand_variable(match: re.Match[str]) -> str:
        # Only the variables that the row names are filled in,
        # so that a URL of somebody else gets no other secret.
        return allowed_variables.get(match[1] or match[2], "")

    row_headers = {
        name: re.sub(_VARIABLE_REFERENCE, expand_variable, text)
        for name, text in row.headers.items()
    }
    headers = {
        "content-type": "application/json",
        "accept": "application/json",
        **_normalise_headers(row_headers),
    }
    seconds = DEFAULT_TIMEOUT_SECONDS["http"] if row.timeout is None else row.timeout
    client = OriginClient(row.url, seconds, seconds)
    try:
        response = await client.post("", headers, msgspec.json.encode(payload))
        try:
            body = bytearray()
            # Read to one chunk beyond the limit, which tells a too long answer from
            # one that fits exactly.
            while (chunk := await response.read(seconds)) and len(body) <= HOOK_OUTPUT.value:
                body += chunk
        finally:
            response.close()
    except NetworkError as error:
        raise HookFailed(f"it can't be reached: {error.kind} {error}".rstrip()) from error
    finally:
        await client.aclose()
    if not 200 <= response.status < 300:
        raise HookFailed(f"it answered with status {response.status}")
    if len(body) > HOOK_OUTPUT.value:
        raise HookFailed(f"it answered more than {HOOK_OUTPUT.value:,} bytes")
    return decide_by_output(code=0, output=bytes(body), errors="", is_context=True)


def _normalise_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers with names in lower case, without those that a row may not set."""
    # These two belong to the connection; a wrong length would break the request.
    return {
        name.lower(): text
        for name, text in headers.items()
        if name.lower() not in {"host", "content-length"}
    }
