"""`Version2`: converts messages to the draft of version 2,
which `codeloop acp --protocol 2` allows.
"""

from base64 import b64encode
from typing import Any, cast

from codeloop.acp.params import AuthSupport, ClientCapabilities, DraftCapabilities, SessionSupport
from codeloop.acp.tool_calls import list_patches
from codeloop.schema.wire import JSON

# A session has one plan, its todo list, so each update replaces it.
_PLAN_ID = "plan"
_NO_FILE = "/dev/null"


def convert_capabilities(draft: DraftCapabilities) -> ClientCapabilities:
    """Convert capabilities to version 1's form.

    Updates that are optional in version 1 alone are set.
    `fs` and `terminal` are not: the draft has nothing like them.
    """
    auth = (
        AuthSupport(terminal=True)
        if draft.auth is not None and draft.auth.terminal is not None
        else None
    )
    return ClientCapabilities(
        auth=auth, elicitation=draft.elicitation, session=SessionSupport(notices={}, compaction={})
    )


class Version2:
    """Converts messages to version 2."""

    number = 2
    is_prompt_answered_at_once = True
    shows_terminals = True

    def build_initialize_result(self, sign_in: JSON | None, info: JSON) -> JSON:
        """Build the result of `initialize`."""
        methods: list[JSON] = []
        if sign_in is not None:
            other_fields = {key: value for key, value in sign_in.items() if key != "id"}
            methods = [{"methodId": sign_in["id"], **other_fields}]
        return {
            "protocolVersion": self.number,
            "info": info,
            "capabilities": {
                "session": {
                    "prompt": {"image": {}, "embeddedContext": {}},
                    "mcp": {"stdio": {}, "http": {}},
                    "delete": {},
                    "additionalDirectories": {},
                },
            },
            "authMethods": methods,
        }

    def convert_update(self, update: JSON) -> JSON | None:
        """Return the update in version 2's form. Mode updates are omitted: modes
        are options in version 2.
        """
        match update["sessionUpdate"]:
            case "tool_call":
                return {**update, "sessionUpdate": "tool_call_update"}
            case "plan":
                plan = {"type": "items", "planId": _PLAN_ID, "entries": update["entries"]}
                return {"sessionUpdate": "plan_update", "plan": plan}
            case "config_option_update":
                return {
                    **update,
                    **self.convert_session_state({"configOptions": update["configOptions"]}),
                }
            case "available_commands_update":
                return {
                    **update,
                    "availableCommands": [
                        _convert_command(each) for each in update["availableCommands"]
                    ],
                }
            case "current_mode_update":
                return None
            case _:
                return update

    def convert_session_state(self, state: JSON) -> JSON:
        """Return the options with the keys of version 2; it has no modes."""
        return {"configOptions": [_convert_option(each) for each in state["configOptions"]]}

    def make_diff_content(self, metadata: JSON, directory: str) -> list[JSON]:
        """Return the changed files, and the changes as a git patch."""
        changes, git_patches = list[JSON](), list[str]()
        for path, patch in list_patches(metadata, directory):
            hunks = patch[patch.find("@@ ") :].rstrip("\n") + "\n" if "@@ " in patch else ""
            operation = _find_operation(hunks)
            changes.append({"operation": operation, "path": path, "fileType": "text"})
            git_patches.append(_make_git_patch(path, operation, hunks))
        if not changes:
            return []
        return [
            {
                "type": "diff",
                "changes": changes,
                "patch": {"format": "git_patch", "text": "".join(git_patches)},
            }
        ]

    def build_permission_request(
        self, *, title: str, details: str, diffs: list[JSON], call: JSON, directory: str
    ) -> JSON:
        """Return the question and its subject: the command of the call, or the call itself."""
        arguments = cast("JSON", call.get("rawInput") or {})
        command = arguments.get("command")
        if isinstance(command, str) and command and call.get("kind") == "execute":
            subject: JSON = {
                "type": "command",
                "command": command,
                "cwd": directory,
                "toolCallId": call["toolCallId"],
            }
        else:
            call_fields = {
                key: call[key] for key in ("toolCallId", "title", "kind", "rawInput") if key in call
            }
            subject = {
                "type": "tool_call",
                "toolCall": {**call_fields, **({"content": diffs} if diffs else {})},
            }
        return {
            "title": title,
            **({"description": details} if details.strip() else {}),
            "subject": subject,
        }

    def begin_terminal(
        self, terminal_id: str, command: str, directory: str, /
    ) -> tuple[list[JSON], JSON]:
        """Return the update that creates the terminal, and no further field of the call."""
        return [
            {
                "sessionUpdate": "terminal_update",
                "terminalId": terminal_id,
                "command": command,
                "cwd": directory,
            }
        ], {}

    def extend_terminal(self, terminal_id: str, text: str, *, is_whole: bool) -> JSON:
        """Return the update with one more chunk; `is_whole`: the update that replaces
        the terminal's output.
        """
        # Output is base64, as it may hold bytes that are not text.
        data = b64encode(text.encode()).decode()
        if is_whole:
            return {
                "sessionUpdate": "terminal_update",
                "terminalId": terminal_id,
                "output": {"data": data},
            }
        return {"sessionUpdate": "terminal_output_chunk", "terminalId": terminal_id, "data": data}

    def end_terminal(self, terminal_id: str, code: int | None, signal: str | None) -> JSON:
        """Return the update with the exit code and the signal of the command."""
        status = {"exitCode": code, "signal": signal}
        return {"sessionUpdate": "terminal_update", "terminalId": terminal_id, "exitStatus": status}


def _find_operation(hunks: str) -> str:
    """Return the operation of a patch on its file: `add`, `delete` or `modify`."""
    first_header = hunks.partition("\n")[0]
    # A hunk of no lines before or after: the file does not exist on that side.
    if "+0,0 @@" in first_header:
        return "delete"
    return "add" if first_header.startswith("@@ -0,0 ") else "modify"


def _make_git_patch(path: str, operation: str, hunks: str) -> str:
    """Make the patch of one file, with the headers that git writes."""
    name = _quote_path(path)
    mode = {"add": "new file mode 100644\n", "delete": "deleted file mode 100644\n"}.get(
        operation, ""
    )
    old_name = _NO_FILE if operation == "add" else name
    new_name = _NO_FILE if operation == "delete" else name
    return f"diff --git {name} {name}\n{mode}--- {old_name}\n+++ {new_name}\n{hunks}"


def _quote_path(path: str) -> str:
    """Return a path as git writes it in patches: quoted and escaped if it
    has unusual characters.
    """
    if path.isascii() and path.isprintable() and not set(path) & {'"', "\\"}:
        return path
    # git escapes bytes, not characters, by three octal digits: `é` is written `\303\251`.
    characters = (
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b'"\\' else f"\\{byte:03o}"
        for byte in path.encode()
    )
    return f'"{"".join(characters)}"'


def _convert_option(option: JSON) -> JSON:
    # The entries are values, or groups of values.
    entries = [
        _rename_key(entry, "group", "groupId") for entry in cast("list[Any]", option["options"])
    ]
    return {**_rename_key(option, "id", "configId"), "options": entries}


def _convert_command(command: JSON) -> JSON:
    converted = {"type": "command", **command}
    if input_fields := command.get("input"):
        converted["input"] = {"type": "text", **input_fields}
    return converted


def _rename_key(fields: JSON, old_key: str, new_key: str) -> JSON:
    return {new_key if key == old_key else key: value for key, value in fields.items()}
