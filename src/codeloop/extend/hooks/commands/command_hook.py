"""One command of `hooks`, asked as a handler like any other."""

from collections.abc import Callable, Mapping

import msgspec
from msgspec import Struct

from codeloop.extend.hooks.commands.decision import HookDecision, decision_of
from codeloop.extend.hooks.commands.names import is_matched, names_of, own_input, shown_inputs
from codeloop.extend.hooks.hooks import HookFailed
from codeloop.schema.bounds.extension import HOOK_COMMAND, HOOK_OUTPUT
from codeloop.schema.config import CommandHookConfig
from codeloop.schema.errors import HookRefused
from codeloop.schema.wire import JSON
from codeloop.workspace.process.confined import run_confined
from codeloop.workspace.process.shells import find_shell
from codeloop.workspace.sandbox.process_launcher import Launch
from codeloop.workspace.workspace import Workspace

HOOKS = {
    "PreToolUse": "tool.execute.before",
    "PostToolUse": "tool.execute.after",
    "PermissionRequest": "permission.ask",
    "UserPromptSubmit": "chat.message",
    "Stop": "session.stop",
    "SubagentStop": "session.stop",
    "SessionStart": "session.start",
    "SessionEnd": "session.end",
    "PreCompact": "experimental.session.compacting",
    "Notification": "notification",
}
_CONTEXT = frozenset(("UserPromptSubmit", "SessionStart"))
"""Events whose hooks speak to the model by what they print."""
_LABEL = 60


class HookScope(Struct, frozen=True):
    """What the commands of a project share. `servers`: MCP servers and their tools by the names of our tools."""

    workspace: Workspace
    tell: Callable[[str], None]
    servers: Callable[[], Mapping[str, tuple[str, str]]]


class CommandHook:
    """A command that is run at one event."""

    def __init__(self, row: CommandHookConfig, scope: HookScope) -> None:
        self._row = row
        self._scope = scope
        shown = " ".join(row.command.split())
        shown = shown if len(shown) <= _LABEL else f"{shown[:_LABEL]}…"
        self.label = f"the {row.event} hook `{shown}`"
        self.names = frozenset((HOOKS[row.event],))
        self.policy = self.names if row.policy else frozenset[str]()
        self.is_project = row.is_project
        self.seconds: float | None = HOOK_COMMAND.seconds if row.timeout is None else row.timeout

    async def call(self, _name: str, given: JSON, output: JSON) -> JSON:
        """Run the command where it is meant, and return what becomes of `output`."""
        match self._row.event:
            case "PreToolUse":
                return await self._before(given, output)
            case "PostToolUse":
                return await self._after(given, output)
            case "PermissionRequest":
                return await self._permission(given, output)
            case "UserPromptSubmit":
                return await self._prompt(given, output)
            case "Stop" | "SubagentStop":
                return await self._stop(given, output)
            case _:
                return await self._session(given, output)

    async def _before(self, given: JSON, output: JSON) -> JSON:
        tool = str(given["tool"])
        for names, shown in self._shown(tool, output["args"]):
            asked = {"tool_name": names[0], "tool_input": shown, "tool_use_id": given["callID"]}
            said = await self._run(given, asked)
            self._refuse(said)
            if said.updated is not None and tool != "apply_patch":
                output = {**output, "args": own_input(tool, said.updated)}
            if said.permission is not None and output.get("permission") != "ask":
                output = {**output, "permission": said.permission}
            if said.context:
                output = {**output, "context": "\n\n".join(filter(None, (output.get("context"), said.context)))}
        return output

    async def _after(self, given: JSON, output: JSON) -> JSON:
        tool = str(given["tool"])
        for names, shown in self._shown(tool, given["args"]):
            response = {**output["metadata"], "output": output["output"], "title": output["title"]}
            if tool == "bash":
                response |= {"stdout": output["output"], "stderr": "", "interrupted": False}
            elif path := shown.get("file_path"):
                response |= {"filePath": path, "success": True}
            asked = {
                "tool_name": names[0],
                "tool_input": shown,
                "tool_response": response,
                "tool_use_id": given["callID"],
            }
            said = await self._run(given, asked)
            for text in (said.refused, said.context):
                if text:
                    output = {**output, "output": f"{output['output'].rstrip()}\n\n<hook>\n{text}\n</hook>"}
        return output

    async def _permission(self, given: JSON, output: JSON) -> JSON:
        call = given.get("metadata", {})
        asked = {"tool_name": names_of(given["permission"])[0], "tool_input": call, "patterns": given["patterns"]}
        if not is_matched(self._row.matcher, names_of(given["permission"])):
            return output
        said = await self._run(given, asked)
        self._refuse(said)
        return {"status": said.permission} if said.permission is not None and output["status"] == "ask" else output

    async def _prompt(self, given: JSON, output: JSON) -> JSON:
        if given.get("parentID"):
            return output
        texts = [part["text"] for part in output["parts"] if part["type"] == "text" and not part.get("synthetic")]
        said = await self._run(given, {"prompt": "\n".join(texts)})
        self._refuse(said)
        if not said.context:
            return output
        return {**output, "parts": [*output["parts"], {"type": "text", "text": said.context, "synthetic": True}]}

    async def _stop(self, given: JSON, output: JSON) -> JSON:
        is_subagent = bool(given.get("parentID"))
        if is_subagent != (self._row.event == "SubagentStop") or output["continue"] is not None:
            return output
        asked = {"stop_hook_active": given["active"], "last_assistant_message": given["text"]}
        said = await self._run(given, asked)
        return {"continue": said.refused if not said.ends else None}

    async def _session(self, given: JSON, output: JSON) -> JSON:
        asked: JSON = {
            "SessionStart": {"source": given.get("source")},
            "SessionEnd": {"reason": given.get("reason")},
            "PreCompact": {"trigger": "auto" if given.get("auto") else "manual", "custom_instructions": ""},
            "Notification": {"message": given.get("message"), "notification_type": given.get("type")},
        }[self._row.event]
        kind = asked.get("source") or asked.get("reason") or asked.get("trigger") or asked.get("notification_type")
        if not is_matched(self._row.matcher, (str(kind),)):
            return output
        said = await self._run(given, asked)
        if said.refused is not None:
            raise HookFailed(said.refused)
        if said.context and self._row.event == "SessionStart":
            return {**output, "context": [*output["context"], said.context]}
        return output

    def _shown(self, tool: str, arguments: JSON) -> list[tuple[tuple[str, ...], JSON]]:
        """Return what a call is shown as, if the matcher is about its tool."""
        names = names_of(tool, self._scope.servers().get(tool))
        if not is_matched(self._row.matcher, names):
            return []
        return [(names, shown) for shown in shown_inputs(tool, arguments, self._scope.workspace.directory)]

    def _refuse(self, said: HookDecision) -> None:
        if said.refused is not None:
            raise HookRefused(said.refused, ends=said.ends)

    async def _run(self, given: JSON, asked: JSON) -> HookDecision:
        """Run the command with JSON on its stdin. One that came with the project is confined as commands are."""
        workspace, row = self._scope.workspace, self._row
        told = {
            "session_id": given.get("sessionID", ""),
            "transcript_path": "",
            "cwd": str(workspace.directory),
            "permission_mode": "default",
            "hook_event_name": row.event,
            **asked,
        }
        places = {"CLAUDE_PROJECT_DIR": str(workspace.root), "CODELOOP_PROJECT_DIR": str(workspace.root)}
        environment = {**workspace.environment, **places}
        try:
            shell = find_shell(environment)
            launch = Launch((*shell, "-c", row.command), workspace.directory, environment, {})
            given_bytes, most = msgspec.json.encode(told), HOOK_OUTPUT.value
            confined = row.is_project if workspace.sandbox.extensions is None else workspace.sandbox.extensions
            result = await run_confined(workspace, launch, given_bytes, most, is_own=not confined)
        except OSError as error:
            raise HookFailed(f"it can't be started: {error.strerror or error}") from error
        if len(result.output) > most:
            raise HookFailed(f"it printed more than {most:,} bytes")
        said = decision_of(result.code, result.output, result.errors, is_context=row.event in _CONTEXT)
        if said.told:
            self._scope.tell(f"{self.label}: {said.told}")
        return said
