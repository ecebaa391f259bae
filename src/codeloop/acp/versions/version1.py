"""`Version1`: writes messages in the stable version 1 of the protocol."""

from codeloop.acp.params import ClientCapabilities
from codeloop.acp.tool_calls import list_hunks, list_patches, make_code_content, make_text_content
from codeloop.schema.wire import JSON

# Stands for output that was cut off before it could be sent.
_GAP_MARK = "\r\n...\r\n"
_SESSION_FEATURES = ("list", "delete", "resume", "close", "fork", "additionalDirectories")
"""The optional session methods and parameters that this agent supports."""


class Version1:
    """Writes messages in version 1.

    A terminal of version 1 runs its command itself, outside the sandbox. So the output of our
    commands is shown with `terminal_output`, an extension of the protocol by Zed and others, if the
    editor's capabilities name it in `_meta`.
    """

    number = 1
    is_prompt_answered_at_once = False

    def __init__(self, capabilities: ClientCapabilities) -> None:
        self.shows_terminals = (capabilities.meta or {}).get("terminal_output") is True

    def build_initialize_result(self, sign_in: JSON | None, info: JSON) -> JSON:
        """Build the result of `initialize`."""
        return {
            "protocolVersion": self.number,
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": True},
                "sessionCapabilities": {name: {} for name in _SESSION_FEATURES},
                "auth": {"logout": {}},
            },
            "authMethods": [sign_in] if sign_in is not None else [],
            "agentInfo": info,
        }

    def convert_update(self, update: JSON) -> JSON | None:
        """Return the update unchanged; a plan without its cancelled entries,
        which version 1 does not know.
        """
        if update["sessionUpdate"] == "plan":
            entries: list[JSON] = update["entries"]
            return {
                **update,
                "entries": [entry for entry in entries if entry["status"] != "cancelled"],
            }
        return update

    def convert_session_state(self, state: JSON) -> JSON:
        """Return the state unchanged."""
        return state

    def make_diff_content(self, metadata: JSON, directory: str) -> list[JSON]:
        """Return a diff for each hunk, with its context lines."""
        return [
            {"type": "diff", "path": path, **hunk}
            for path, patch in list_patches(metadata, directory)
            for hunk in list_hunks(patch)
        ]

    def build_permission_request(
        self, *, title: str, details: str, diffs: list[JSON], call: JSON, directory: str
    ) -> JSON:
        """Return the call, with the question, the diffs and the details as its content."""
        del directory
        # A request has no text of its own in version 1.
        details_content = [make_code_content(details)] if details.strip() else []
        return {
            "toolCall": {
                "title": title,
                **call,
                "content": [make_text_content(title), *diffs, *details_content],
            }
        }

    def begin_terminal(
        self, terminal_id: str, _command: str, directory: str, /
    ) -> tuple[list[JSON], JSON]:
        """Return no update, and the field of the call that makes the editor show a terminal."""
        return [], {"_meta": {"terminal_info": {"terminal_id": terminal_id, "cwd": directory}}}

    def extend_terminal(self, terminal_id: str, text: str, *, is_whole: bool) -> JSON:
        """Return an update of the call. Sent output can't be replaced: `is_whole` adds
        a gap line before the text.
        """
        data = _GAP_MARK + text if is_whole else text
        return _make_call_update(
            terminal_id, {"terminal_output": {"terminal_id": terminal_id, "data": data}}
        )

    def end_terminal(self, terminal_id: str, code: int | None, signal: str | None) -> JSON:
        """Return an update of the call with the exit code or the signal."""
        exit_status = {"terminal_id": terminal_id, "exit_code": code, "signal": signal}
        return _make_call_update(terminal_id, {"terminal_exit": exit_status})


def _make_call_update(call_id: str, meta: JSON) -> JSON:
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "_meta": meta}
