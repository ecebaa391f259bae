"""One row of `hooks` as a handler: its input, and the effect of its decision."""

from codeloop.extend.hooks.commands.asking import SECONDS, HookScope, ask_row
from codeloop.extend.hooks.commands.decision import HookDecision
from codeloop.extend.hooks.commands.names import format_inputs, is_about, is_matched, names_of, own_input
from codeloop.extend.hooks.hooks import HookFailed
from codeloop.schema.config import CommandHookConfig
from codeloop.schema.errors import HookRefused
from codeloop.schema.wire import JSON

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
_LABEL = 60


class CommandHook:
    """A row (command, address, model or subagent) called at one event."""

    def __init__(self, row: CommandHookConfig, scope: HookScope) -> None:
        self._row = row
        self._scope = scope
        shown = " ".join((row.command or row.url.partition("?")[0] or row.prompt).split())
        shown = shown if len(shown) <= _LABEL else f"{shown[:_LABEL]}…"
        self.label = f"the {row.event} hook `{shown}`"
        self.names = frozenset((HOOKS[row.event],))
        self.policy = self.names if row.policy else frozenset[str]()
        self.is_project = row.is_project
        self.seconds: float | None = SECONDS[row.type] if row.timeout is None else row.timeout

    async def call(self, _name: str, given: JSON, output: JSON) -> JSON:
        """Run the row if it matches, and return the changed `output`."""
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
        for names, shown in self._format_calls(tool, output["args"]):
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
        for names, shown in self._format_calls(tool, given["args"]):
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
            if said.ends:
                output = {**output, "ends": said.refused}
            for text in (None if said.ends else said.refused, said.context):
                if text:
                    output = {**output, "output": f"{output['output'].rstrip()}\n\n<hook>\n{text}\n</hook>"}
        return output

    async def _permission(self, given: JSON, output: JSON) -> JSON:
        call = given.get("metadata", {})
        asked = {"tool_name": names_of(given["permission"])[0], "tool_input": call, "patterns": given["patterns"]}
        names = names_of(given["permission"])
        if not is_matched(self._row.matcher, names) or not is_about(self._row.condition, names, call):
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
        if is_subagent != (self._row.event == "SubagentStop") or output.get("ends"):
            return output
        asked = {"stop_hook_active": given["active"], "last_assistant_message": given["text"]}
        said = await self._run(given, asked)
        if said.ends:
            self._say(said)
            return {"continue": None, "ends": True}
        return output if output["continue"] is not None else {"continue": said.refused}

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
        if said.ends and self._row.event in {"SessionEnd", "Notification"}:
            self._say(said)
        elif said.refused is not None and (said.ends or self._row.event == "PreCompact"):
            self._refuse(said)
        elif said.refused is not None:
            raise HookFailed(said.refused)
        if said.context and self._row.event == "SessionStart":
            return {**output, "context": [*output["context"], said.context]}
        return output

    def _say(self, said: HookDecision) -> None:
        """Show the user why a hook ends something that ends anyway."""
        self._scope.tell(f"{self.label}: {said.refused}")

    def _format_calls(self, tool: str, arguments: JSON) -> list[tuple[tuple[str, ...], JSON]]:
        """Return a call in the forms that scripts know, if the matcher matches its tool; else nothing."""
        names = names_of(tool, self._scope.servers().get(tool))
        if not is_matched(self._row.matcher, names):
            return []
        inputs = format_inputs(tool, arguments, self._scope.workspace.directory)
        return [(names, shown) for shown in inputs if is_about(self._row.condition, names, shown)]

    def _refuse(self, said: HookDecision) -> None:
        if said.refused is not None:
            raise HookRefused(said.refused, ends=said.ends)

    async def _run(self, given: JSON, asked: JSON) -> HookDecision:
        """Run the row, and show its message to the user."""
        workspace, row = self._scope.workspace, self._row
        session_id = str(given.get("sessionID", ""))
        told = {
            "session_id": session_id,
            "transcript_path": str(await self._scope.transcripts.file(session_id) or ""),
            "cwd": str(workspace.directory),
            "permission_mode": "default",
            "hook_event_name": row.event,
            **asked,
        }
        said = await ask_row(row, told, given.get("model"), self._scope)
        if said.told:
            self._scope.tell(f"{self.label}: {said.told}")
        return said
