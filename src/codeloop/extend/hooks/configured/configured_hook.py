"""Runs a row of the configuration's `hooks`: makes the event's input,
and applies the decision to the output.
"""

from codeloop.extend.hooks.configured.decision import HookDecision
from codeloop.extend.hooks.configured.matchers import matches_call, matches_name
from codeloop.extend.hooks.configured.run_hook import DEFAULT_TIMEOUT_SECONDS, HookScope, run_hook
from codeloop.extend.hooks.configured.script_names import (
    convert_from_script_input,
    convert_to_script_inputs,
    list_script_names,
)
from codeloop.extend.hooks.hooks import HookFailed
from codeloop.schema.config import HookConfig
from codeloop.schema.errors import HookRefused
from codeloop.schema.wire import JSON

EVENT_HOOKS = {
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
"""The names of events in rows -> the hooks at which the rows run."""
_MATCHED_FIELDS = {
    "SessionStart": "source",
    "SessionEnd": "reason",
    "PreCompact": "trigger",
    "Notification": "notification_type",
}
"""For events without a call: the field of the input that a row's matcher is compared with."""
_MAX_LABEL_CHARS = 60


class ConfiguredHook:
    """A row of `hooks` (command, address, model or subagent) at its event; an
    `extend.hooks.hooks.HookHandler`.
    """

    def __init__(self, row: HookConfig, scope: HookScope) -> None:
        self._row = row
        self._scope = scope
        label = " ".join((row.command or row.url.partition("?")[0] or row.prompt).split())
        label = label if len(label) <= _MAX_LABEL_CHARS else f"{label[:_MAX_LABEL_CHARS]}…"
        self.label = f"the {row.event} hook `{label}`"
        self.names = frozenset((EVENT_HOOKS[row.event],))
        self.policy = self.names if row.policy else frozenset[str]()
        self.is_project = row.is_project
        self.may_allow = row.may_allow and not row.is_project
        self.seconds: float | None = (
            DEFAULT_TIMEOUT_SECONDS[row.type] if row.timeout is None else row.timeout
        )

    async def call(self, _name: str, payload: JSON, output: JSON) -> JSON:
        """Run the row if it matches, and return the changed `output`."""
        match self._row.event:
            case "PreToolUse":
                return await self._run_before_tool(payload, output)
            case "PostToolUse":
                return await self._run_after_tool(payload, output)
            case "PermissionRequest":
                return await self._run_permission(payload, output)
            case "UserPromptSubmit":
                return await self._run_prompt(payload, output)
            case "Stop" | "SubagentStop":
                return await self._run_stop(payload, output)
            case _:
                return await self._run_other_event(payload, output)

    async def _run_before_tool(self, payload: JSON, output: JSON) -> JSON:
        tool = str(payload["tool"])
        for names, tool_input in self._list_script_calls(tool, output["args"]):
            fields = {
                "tool_name": names[0],
                "tool_input": tool_input,
                "tool_use_id": payload["callID"],
            }
            decision = await self._run_row(payload, fields)
            self._refuse(decision)
            # The hook of a patch is called once for each file,
            # so its input can't replace the whole patch.
            if decision.updated_input is not None and tool != "apply_patch":
                output = {**output, "args": convert_from_script_input(tool, decision.updated_input)}
            # The stricter answer of an earlier hook stays.
            if decision.permission is not None and output.get("permission") != "ask":
                output = {**output, "permission": decision.permission}
            if decision.context:
                output = {
                    **output,
                    "context": "\n\n".join(filter(None, (output.get("context"), decision.context))),
                }
        return output

    async def _run_after_tool(self, payload: JSON, output: JSON) -> JSON:
        tool = str(payload["tool"])
        for names, tool_input in self._list_script_calls(tool, payload["args"]):
            response = {**output["metadata"], "output": output["output"], "title": output["title"]}
            if tool == "bash":
                # Scripts written for Claude Code read the fields of its own tools.
                response |= {"stdout": output["output"], "stderr": "", "interrupted": False}
            elif path := tool_input.get("file_path"):
                response |= {"filePath": path, "success": True}
            fields = {
                "tool_name": names[0],
                "tool_input": tool_input,
                "tool_response": response,
                "tool_use_id": payload["callID"],
            }
            decision = await self._run_row(payload, fields)
            if decision.ends_turn:
                # "ends" holds the reason: the call was made, and no further step follows.
                output = {**output, "ends": decision.refusal_reason}
            reason = None if decision.ends_turn else decision.refusal_reason
            for text in filter(None, (reason, decision.context)):
                output = {
                    **output,
                    "output": f"{output['output'].rstrip()}\n\n<hook>\n{text}\n</hook>",
                }
        return output

    async def _run_permission(self, payload: JSON, output: JSON) -> JSON:
        tool_input = payload.get("metadata", {})
        names = list_script_names(payload["permission"])
        if not matches_name(self._row.matcher, names) or not matches_call(
            self._row.condition, names, tool_input
        ):
            return output
        fields = {"tool_name": names[0], "tool_input": tool_input, "patterns": payload["patterns"]}
        decision = await self._run_row(payload, fields)
        self._refuse(decision)
        # The decision of an earlier hook stays.
        if decision.permission is None or output["status"] != "ask":
            return output
        return {"status": decision.permission}

    async def _run_prompt(self, payload: JSON, output: JSON) -> JSON:
        # The prompt of a subagent was written by a model, not submitted by the user.
        if payload.get("parentID"):
            return output
        texts = [
            part["text"]
            for part in output["parts"]
            if part["type"] == "text" and not part.get("synthetic")
        ]
        decision = await self._run_row(payload, {"prompt": "\n".join(texts)})
        self._refuse(decision)
        if not decision.context:
            return output
        return {
            **output,
            "parts": [
                *output["parts"],
                {"type": "text", "text": decision.context, "synthetic": True},
            ],
        }

    async def _run_stop(self, payload: JSON, output: JSON) -> JSON:
        is_subagent = bool(payload.get("parentID"))
        if is_subagent != (self._row.event == "SubagentStop") or output.get("ends"):
            return output
        fields = {"stop_hook_active": payload["active"], "last_assistant_message": payload["text"]}
        decision = await self._run_row(payload, fields)
        if decision.ends_turn:
            self._show_refusal(decision)
            # "continue" holds the prompt for a further step: with None the turn stays ended.
            # "ends" skips later hooks.
            return {"continue": None, "ends": True}
        # The prompt of an earlier hook stays.
        return output if output["continue"] is not None else {"continue": decision.refusal_reason}

    async def _run_other_event(self, payload: JSON, output: JSON) -> JSON:
        """Run the row at the start or end of a session, a compaction or a notification."""
        fields: JSON = {
            "SessionStart": {"source": payload.get("source")},
            "SessionEnd": {"reason": payload.get("reason")},
            "PreCompact": {
                "trigger": "auto" if payload.get("auto") else "manual",
                "custom_instructions": "",
            },
            "Notification": {
                "message": payload.get("message"),
                "notification_type": payload.get("type"),
            },
        }[self._row.event]
        # A matcher of these events is compared with the value of one field.
        subject = fields[_MATCHED_FIELDS[self._row.event]] or None
        if not matches_name(self._row.matcher, (str(subject),)):
            return output
        decision = await self._run_row(payload, fields)
        if decision.ends_turn and self._row.event in {"SessionEnd", "Notification"}:
            self._show_refusal(decision)
        elif decision.refusal_reason is not None and (
            decision.ends_turn or self._row.event == "PreCompact"
        ):
            self._refuse(decision)
        elif decision.refusal_reason is not None:
            raise HookFailed(decision.refusal_reason)
        if decision.context and self._row.event == "SessionStart":
            return {**output, "context": [*output["context"], decision.context]}
        return output

    def _show_refusal(self, decision: HookDecision) -> None:
        """Show the user the reason of a refusal that changes nothing,
        such as one at the end of a session.
        """
        self._scope.tell(f"{self.label}: {decision.refusal_reason}")

    def _list_script_calls(self, tool: str, arguments: JSON) -> list[tuple[tuple[str, ...], JSON]]:
        """Return the names and inputs under which scripts know a call;
        [] if the matcher does not match its tool.
        """
        names = list_script_names(tool, self._scope.map_server_tools().get(tool))
        if not matches_name(self._row.matcher, names):
            return []
        inputs = convert_to_script_inputs(tool, arguments, self._scope.workspace.directory)
        return [
            (names, shown_input)
            for shown_input in inputs
            if matches_call(self._row.condition, names, shown_input)
        ]

    def _refuse(self, decision: HookDecision) -> None:
        if decision.refusal_reason is not None:
            raise HookRefused(decision.refusal_reason, ends=decision.ends_turn)

    async def _run_row(self, payload: JSON, fields: JSON) -> HookDecision:
        """Return the row's decision on an event. Its message is shown to the user.
        Raises HookFailed.
        """
        workspace, row = self._scope.workspace, self._row
        session_id = str(payload.get("sessionID", ""))
        event = {
            "session_id": session_id,
            "transcript_path": str(await self._scope.transcripts.update_file(session_id) or ""),
            "cwd": str(workspace.directory),
            # Claude Code's modes do not exist here; scripts expect the field.
            "permission_mode": "default",
            "hook_event_name": row.event,
            **fields,
        }
        decision = await run_hook(row, event, payload.get("model"), self._scope)
        if decision.user_message:
            self._scope.tell(f"{self.label}: {decision.user_message}")
        return decision
