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
        label = " ".join((row.command or row.url.partition("?")[0] or row.prompt).split())
        label = label if len(label) <= _LABEL else f"{label[:_LABEL]}…"
        self.label = f"the {row.event} hook `{label}`"
        self.names = frozenset((HOOKS[row.event],))
        self.policy = self.names if row.policy else frozenset[str]()
        self.is_project = row.is_project
        self.seconds: float | None = SECONDS[row.type] if row.timeout is None else row.timeout

    async def call(self, _name: str, given: JSON, output: JSON) -> JSON:
        """Run the row if it matches, and return the changed `output`."""
        match self._row.event:
            case "PreToolUse":
                return await self._ask_before_tool(given, output)
            case "PostToolUse":
                return await self._ask_after_tool(given, output)
            case "PermissionRequest":
                return await self._permission(given, output)
            case "UserPromptSubmit":
                return await self._prompt(given, output)
            case "Stop" | "SubagentStop":
                return await self._stop(given, output)
            case _:
                return await self._session(given, output)

    async def _ask_before_tool(self, payload: JSON, output: JSON) -> JSON:
        tool = str(payload["tool"])
        for names, tool_input in self._format_calls(tool, output["args"]):
            fields = {"tool_name": names[0], "tool_input": tool_input, "tool_use_id": payload["callID"]}
            decision = await self._run(payload, fields)
            self._refuse(decision)
            if decision.updated is not None and tool != "apply_patch":
                output = {**output, "args": own_input(tool, decision.updated)}
            if decision.permission is not None and output.get("permission") != "ask":
                output = {**output, "permission": decision.permission}
            if decision.context:
                output = {**output, "context": "\n\n".join(filter(None, (output.get("context"), decision.context)))}
        return output

    async def _ask_after_tool(self, payload: JSON, output: JSON) -> JSON:
        tool = str(payload["tool"])
        for names, tool_input in self._format_calls(tool, payload["args"]):
            response = {**output["metadata"], "output": output["output"], "title": output["title"]}
            if tool == "bash":
                response |= {"stdout": output["output"], "stderr": "", "interrupted": False}
            elif path := tool_input.get("file_path"):
                response |= {"filePath": path, "success": True}
            fields = {
                "tool_name": names[0],
                "tool_input": tool_input,
                "tool_response": response,
                "tool_use_id": payload["callID"],
            }
            decision = await self._run(payload, fields)
            if decision.ends:
                output = {**output, "ends": decision.refused}
            for text in (None if decision.ends else decision.refused, decision.context):
                if text:
                    output = {**output, "output": f"{output['output'].rstrip()}\n\n<hook>\n{text}\n</hook>"}
        return output

    async def _permission(self, payload: JSON, output: JSON) -> JSON:
        call = payload.get("metadata", {})
        fields = {"tool_name": names_of(payload["permission"])[0], "tool_input": call, "patterns": payload["patterns"]}
        names = names_of(payload["permission"])
        if not is_matched(self._row.matcher, names) or not is_about(self._row.condition, names, call):
            return output
        decision = await self._run(payload, fields)
        self._refuse(decision)
        return (
            {"status": decision.permission} if decision.permission is not None and output["status"] == "ask" else output
        )

    async def _prompt(self, payload: JSON, output: JSON) -> JSON:
        if payload.get("parentID"):
            return output
        texts = [part["text"] for part in output["parts"] if part["type"] == "text" and not part.get("synthetic")]
        decision = await self._run(payload, {"prompt": "\n".join(texts)})
        self._refuse(decision)
        if not decision.context:
            return output
        return {**output, "parts": [*output["parts"], {"type": "text", "text": decision.context, "synthetic": True}]}

    async def _stop(self, payload: JSON, output: JSON) -> JSON:
        is_subagent = bool(payload.get("parentID"))
        if is_subagent != (self._row.event == "SubagentStop") or output.get("ends"):
            return output
        fields = {"stop_hook_active": payload["active"], "last_assistant_message": payload["text"]}
        decision = await self._run(payload, fields)
        if decision.ends:
            self._say(decision)
            return {"continue": None, "ends": True}
        return output if output["continue"] is not None else {"continue": decision.refused}

    async def _session(self, payload: JSON, output: JSON) -> JSON:
        fields: JSON = {
            "SessionStart": {"source": payload.get("source")},
            "SessionEnd": {"reason": payload.get("reason")},
            "PreCompact": {"trigger": "auto" if payload.get("auto") else "manual", "custom_instructions": ""},
            "Notification": {"message": payload.get("message"), "notification_type": payload.get("type")},
        }[self._row.event]
        kind = fields.get("source") or fields.get("reason") or fields.get("trigger") or fields.get("notification_type")
        if not is_matched(self._row.matcher, (str(kind),)):
            return output
        decision = await self._run(payload, fields)
        if decision.ends and self._row.event in {"SessionEnd", "Notification"}:
            self._say(decision)
        elif decision.refused is not None and (decision.ends or self._row.event == "PreCompact"):
            self._refuse(decision)
        elif decision.refused is not None:
            raise HookFailed(decision.refused)
        if decision.context and self._row.event == "SessionStart":
            return {**output, "context": [*output["context"], decision.context]}
        return output

    def _say(self, decision: HookDecision) -> None:
        """Show the user why a hook ends something that ends anyway."""
        self._scope.tell(f"{self.label}: {decision.refused}")

    def _format_calls(self, tool: str, arguments: JSON) -> list[tuple[tuple[str, ...], JSON]]:
        """Return a call in the forms that scripts know, if the matcher matches its tool; else nothing."""
        names = names_of(tool, self._scope.servers().get(tool))
        if not is_matched(self._row.matcher, names):
            return []
        inputs = format_inputs(tool, arguments, self._scope.workspace.directory)
        return [(names, shown_input) for shown_input in inputs if is_about(self._row.condition, names, shown_input)]

    def _refuse(self, decision: HookDecision) -> None:
        if decision.refused is not None:
            raise HookRefused(decision.refused, ends=decision.ends)

    async def _run(self, payload: JSON, fields: JSON) -> HookDecision:
        """Run the row, and show its message to the user."""
        workspace, row = self._scope.workspace, self._row
        session_id = str(payload.get("sessionID", ""))
        event = {
            "session_id": session_id,
            "transcript_path": str(await self._scope.transcripts.file(session_id) or ""),
            "cwd": str(workspace.directory),
            "permission_mode": "default",
            "hook_event_name": row.event,
            **fields,
        }
        decision = await ask_row(row, event, payload.get("model"), self._scope)
        if decision.told:
            self._scope.tell(f"{self.label}: {decision.told}")
        return decision
