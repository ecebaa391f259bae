"""Version 1, the stable one."""

from codeloop.acp.params import ClientCapabilities
from codeloop.acp.tool_calls import as_code, as_text, hunks_of, patches_of
from codeloop.schema.wire import JSON

_GAP = "\r\n...\r\n"
_SESSIONS = ("list", "delete", "resume", "close", "fork", "additionalDirectories")
"""What can be done with sessions beside making, loading and prompting them."""


class Version1:
    """Writes messages in version 1.

    Its own terminals run commands for us, outside of the sandbox. Output of our commands is shown as a terminal where
    the editor says `terminal_output` in its capabilities' `_meta`, as Zed and others do.
    """

    number = 1
    is_prompt_answered_at_once = False

    def __init__(self, capabilities: ClientCapabilities) -> None:
        self.shows_terminals = (capabilities.meta or {}).get("terminal_output") is True

    def greet(self, sign_in: JSON | None, info: JSON) -> JSON:
        """Return the answer to `initialize`."""
        return {
            "protocolVersion": self.number,
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": True},
                "sessionCapabilities": {name: {} for name in _SESSIONS},
                "auth": {"logout": {}},
            },
            "authMethods": [sign_in] if sign_in is not None else [],
            "agentInfo": info,
        }

    def adapt(self, update: JSON) -> JSON | None:
        """Return the update; a plan has no entry that was given up."""
        if update["sessionUpdate"] == "plan":
            entries: list[JSON] = update["entries"]
            return {**update, "entries": [entry for entry in entries if entry["status"] != "cancelled"]}
        return update

    def state(self, state: JSON) -> JSON:
        """Return the state as it is."""
        return state

    def diffs(self, metadata: JSON, directory: str) -> list[JSON]:
        """Return each hunk, with the lines around it."""
        return [
            {"type": "diff", "path": path, **hunk}
            for path, patch in patches_of(metadata, directory)
            for hunk in hunks_of(patch)
        ]

    def ask(self, title: str, details: str, diffs: list[JSON], call: JSON, _directory: str, /) -> JSON:
        """Return the call, whose content says what is asked."""
        content = [as_code(details)] if details.strip() else []
        return {"toolCall": {"title": title, **call, "content": [as_text(title), *diffs, *content]}}

    def begin_terminal(self, terminal_id: str, _command: str, directory: str, /) -> tuple[list[JSON], JSON]:
        """Return the fields that make the editor show a terminal."""
        return [], {"_meta": {"terminal_info": {"terminal_id": terminal_id, "cwd": directory}}}

    def extend_terminal(self, terminal_id: str, text: str, *, is_whole: bool) -> JSON:
        """Return the update of the call; what the editor shows already can't be taken back."""
        data = _GAP + text if is_whole else text
        return _call_update(terminal_id, {"terminal_output": {"terminal_id": terminal_id, "data": data}})

    def end_terminal(self, terminal_id: str, code: int | None, signal: str | None) -> JSON:
        """Return the update of the call."""
        exit_status = {"terminal_id": terminal_id, "exit_code": code, "signal": signal}
        return _call_update(terminal_id, {"terminal_exit": exit_status})


def _call_update(call_id: str, meta: JSON) -> JSON:
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "_meta": meta}
