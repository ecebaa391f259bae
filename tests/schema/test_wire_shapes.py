"""The wire's shapes: what a client would send or read,
decoded and encoded again without a difference.
"""

from typing import Any

import msgspec
import pytest

from codeloop.schema.errors import MessageError, get_error_message
from codeloop.schema.event import Event, StoredEvent, get_session_id
from codeloop.schema.live_events import LiveEvent
from codeloop.schema.message import Message, Session, Todo
from codeloop.schema.part import Part
from codeloop.schema.permission import PermissionRequest, PermissionRule
from codeloop.schema.wire import convert_to_wire_name

SES, MSG, PRT, EVT, PER, QUE = (
    f"{kind}_1f88ee7d6002abcdefghijklmn" for kind in ("ses", "msg", "prt", "evt", "per", "que")
)
OF = {"id": PRT, "sessionID": SES, "messageID": MSG}
TOKENS = {"total": 30, "input": 10, "output": 15, "reasoning": 5, "cache": {"read": 3, "write": 2}}
ZERO = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
MENTION = {"value": "@a.py", "start": 4, "end": 9}
PICTURE = {
    **OF,
    "type": "file",
    "mime": "image/png",
    "url": "data:image/png;base64,AA==",
    "filename": "a.png",
}
API = {
    "name": "APIError",
    "data": {"message": "bad", "isRetryable": False, "statusCode": 400, "metadata": {"url": "u"}},
}

SMALL_SESSION: dict[str, Any] = {
    "id": SES, "slug": "quiet-river", "projectID": "global", "directory": "/p", "title": "a title", "version": "1.0.0",
    "time": {"created": 1795171477462, "updated": 1795171477471},
}  # fmt: skip
WHOLE_SESSION: dict[str, Any] = {
    **SMALL_SESSION, "path": "", "parentID": SES, "workspaceID": "w", "agent": "build", "cost": 0.25, "tokens": ZERO,
    "model": {"id": "m", "providerID": "p", "variant": "high"}, "metadata": {"any": [1]}, "share": {"url": "https://s"},
    "summary": {"additions": 1, "deletions": 2, "files": 3},
    "permission": [{"permission": "edit", "pattern": "*", "action": "deny"}],
    "revert": {"messageID": MSG, "partID": PRT, "snapshot": "abc", "diff": "---"},
    "time": {"created": 1, "updated": 2, "compacting": 3, "archived": 4},
}  # fmt: skip
USER: dict[str, Any] = {
    "id": MSG, "sessionID": SES, "role": "user", "time": {"created": 1}, "agent": "build",
    "model": {"providerID": "lab", "modelID": "scripted"},
}  # fmt: skip
WHOLE_USER: dict[str, Any] = {
    **USER, "system": "s", "tools": {"bash": False}, "format": {"type": "text"},
    "summary": {"diffs": [{"file": "a", "patch": "@@", "additions": 1, "deletions": 0, "status": "modified"}]},
}  # fmt: skip
ASSISTANT: dict[str, Any] = {
    "id": MSG, "sessionID": SES, "role": "assistant", "parentID": MSG, "modelID": "m", "providerID": "p",
    "mode": "build", "agent": "build", "path": {"cwd": "/p", "root": "/p"}, "cost": 0.0, "tokens": ZERO,
    "time": {"created": 1},
}  # fmt: skip
WHOLE_ASSISTANT: dict[str, Any] = {
    **ASSISTANT, "variant": "default", "summary": True, "finish": "tool-calls", "error": API, "structured": {"a": [1]},
    "tokens": TOKENS, "time": {"created": 1, "completed": 2},
}  # fmt: skip


def tool(state: dict[str, Any]) -> dict[str, Any]:
    return {**OF, "type": "tool", "callID": "call_1", "tool": "bash", "state": state}


PARTS: dict[str, dict[str, Any]] = {
    "text": {**OF, "type": "text", "text": "hello"},
    "text, all": {
        **OF, "type": "text", "text": "", "synthetic": True, "ignored": True, "time": {"start": 1}, "metadata": {"a": 1}
    },
    "reasoning": {**OF, "type": "reasoning", "text": "hm", "time": {"start": 1, "end": 2}},
    "reasoning, signed": {**OF, "type": "reasoning", "text": "", "time": {"start": 1}, "metadata": {"signature": "s"}},
    "file": PICTURE,
    "file of a file": {**PICTURE, "source": {"type": "file", "path": "a.py", "text": MENTION}},
    "file of a symbol": {
        **PICTURE, "source": {"type": "symbol", "path": "a.py", "range": {}, "name": "f", "kind": 12, "text": MENTION}
    },
    "file of a resource": {
        **PICTURE, "source": {"type": "resource", "clientName": "c", "uri": "x://y", "text": MENTION}
    },
    "tool pending": tool({"status": "pending", "input": {}, "raw": ""}),
    "tool running": tool({"status": "running", "input": {"command": "ls"}, "time": {"start": 1}}),
    "tool running, with progress": tool(
        {"status": "running", "input": {}, "time": {"start": 1}, "title": "ls", "metadata": {"output": ""}}
    ),
    "tool completed": tool(
        {
            "status": "completed", "input": {}, "output": "o", "title": "t", "metadata": {},
            "time": {"start": 1, "end": 2},
        }
    ),
    "tool completed, all": tool(
        {
            "status": "completed", "input": {"a": None}, "output": "", "title": "", "metadata": {"exit": None},
            "time": {"start": 1, "end": 2, "compacted": 3}, "attachments": [PICTURE],
        }
    ),
    "tool error": tool({"status": "error", "input": {}, "error": "no", "time": {"start": 1, "end": 2}}),
    "step-start": {**OF, "type": "step-start"},
    "step-start, snapshot": {**OF, "type": "step-start", "snapshot": "a" * 40},
    "step-finish": {**OF, "type": "step-finish", "reason": "stop", "cost": 0.5, "tokens": TOKENS},
    "patch": {**OF, "type": "patch", "hash": "abc", "files": ["/p/a.py"]},
    "agent": {**OF, "type": "agent", "name": "general", "source": MENTION},
    "subtask": {
        **OF, "type": "subtask", "prompt": "p", "description": "d", "agent": "general", "command": "c",
        "model": {"providerID": "p", "modelID": "m"},
    },
    "compaction": {**OF, "type": "compaction", "auto": False},
    "compaction, all": {**OF, "type": "compaction", "auto": True, "overflow": True, "tail_start_id": MSG},
    "retry": {**OF, "type": "retry", "attempt": 2, "error": API, "time": {"created": 1}},
    "snapshot": {**OF, "type": "snapshot", "snapshot": "abc"},
}  # fmt: skip
ERRORS: list[tuple[dict[str, Any], str]] = [
    (API, "bad"),
    (
        {
            "name": "APIError",
            "data": {
                "message": "m", "isRetryable": True, "statusCode": 429, "responseHeaders": {"a": "b"},
                "responseBody": "{}",
            },
        },
        "m",
    ),
    ({"name": "MessageAbortedError", "data": {"message": "Aborted"}}, "Aborted"),
    ({"name": "ContextOverflowError", "data": {"message": "long", "responseBody": "b"}}, "long"),
    ({"name": "ProviderAuthError", "data": {"providerID": "p", "message": "no key"}}, "no key"),
    ({"name": "MessageOutputLengthError", "data": {}}, "The answer reached the model's output limit. Ask it to go on."),
    ({"name": "StructuredOutputError", "data": {"message": "s", "retries": 2}}, "s"),
    ({"name": "ContentFilterError", "data": {"message": "f"}}, "f"),
    ({"name": "UnknownError", "data": {"message": "u", "ref": "err_1"}}, "u"),
]  # fmt: skip
QUESTION = {
    "id": PER, "sessionID": SES, "permission": "edit", "patterns": ["calc.py"], "metadata": {"diff": "---"},
    "always": ["*"], "tool": {"messageID": MSG, "callID": "call_1"},
}  # fmt: skip
STORED: dict[str, dict[str, Any]] = {
    "session.created": {"sessionID": SES, "info": WHOLE_SESSION},
    "session.updated": {"sessionID": SES, "info": SMALL_SESSION},
    "session.deleted": {"sessionID": SES, "info": SMALL_SESSION},
    "message.updated": {"sessionID": SES, "info": WHOLE_ASSISTANT},
    "message.removed": {"sessionID": SES, "messageID": MSG},
    "message.part.updated": {"sessionID": SES, "part": PARTS["tool error"], "time": 1795171467172},
    "message.part.removed": {"sessionID": SES, "messageID": MSG, "partID": PRT},
    "todo.updated": {"sessionID": SES, "todos": [{"content": "c", "status": "in_progress", "priority": "high"}]},
    "permission.asked": QUESTION,
    "permission.replied": {"sessionID": SES, "requestID": PER, "reply": "once"},
    "question.asked": {
        "id": QUE, "sessionID": SES, "tool": {"messageID": MSG, "callID": "call_1"},
        "questions": [
            {"question": "Which?", "header": "Many", "options": [{"label": "A", "description": "a"}], "multiple": True},
            {"question": "Sure?", "header": "Sure", "options": [], "custom": False},
        ],
    },
    "question.replied": {"sessionID": SES, "requestID": QUE, "answers": [["A", "B"], ["Yes"]]},
    "question.rejected": {"sessionID": SES, "requestID": QUE},
}  # fmt: skip
PTY: dict[str, Any] = {
    "id": "pty_1", "title": "Terminal 0001", "command": "/bin/sh", "args": ["-l"], "cwd": "/p", "status": "running",
    "pid": 7,
}  # fmt: skip
LIVE: dict[str, list[dict[str, Any]]] = {
    "message.part.delta": [
        {"sessionID": SES, "messageID": MSG, "partID": PRT, "field": "text", "delta": "more "}
    ],
    "session.status": [
        {"sessionID": SES, "status": {"type": "idle"}},
        {"sessionID": SES, "status": {"type": "busy"}},
        {
            "sessionID": SES,
            "status": {"type": "retry", "attempt": 1, "message": "m", "next": 1795171480269},
        },
    ],
    "session.idle": [{"sessionID": SES}],
    "session.compacted": [{"sessionID": SES}],
    "command.executed": [
        {"name": "review", "sessionID": SES, "arguments": "a b", "messageID": MSG}
    ],
    "session.error": [{"sessionID": SES, "error": error} for error, _ in ERRORS],
    "session.diff": [{"sessionID": SES, "diff": []}],
    "file.edited": [{"file": "/p/calc.py"}],
    "tui.toast.show": [
        {"message": "m", "variant": "warning"},
        {"title": "T", "message": "m", "variant": "info", "duration": 5},
    ],
    "file.watcher.updated": [{"file": "/p/calc.py", "event": "unlink"}],
    "mcp.tools.changed": [{"server": "files"}],
    "mcp.browser.open.failed": [{"mcpName": "files", "url": "https://e.org/authorize"}],
    "lsp.updated": [{}],
    "lsp.client.diagnostics": [{"serverID": "ty", "path": "/p/calc.py"}],
    "vcs.branch.updated": [{"branch": "main"}, {}],
    "project.updated": [
        {"id": "global", "worktree": "/", "time": {"created": 1, "updated": 2}, "sandboxes": []},
        {
            "id": "a",
            "worktree": "/p",
            "vcs": "git",
            "time": {"created": 1, "updated": 2},
            "sandboxes": [],
        },
    ],
    "worktree.ready": [
        {"name": "n", "directory": "/d", "branch": "codeloop/n"},
        {"name": "n", "directory": "/d"},
    ],
    "pty.created": [{"info": PTY}],
    "pty.updated": [{"info": {**PTY, "title": "mine"}}],
    "pty.exited": [{"id": "pty_1", "exitCode": 1}],
    "pty.deleted": [{"id": "pty_1"}],
    "tui.prompt.append": [{"text": "more"}],
    "tui.command.execute": [{"command": "session.list"}, {}],
    "tui.session.select": [{"sessionID": SES}],
    "server.connected": [{}],
    "server.heartbeat": [{}],
    "session.tool": [
        {
            "sessionID": SES,
            "messageID": MSG,
            "callID": "c",
            "requestID": "tool_1",
            "leaseID": "l",
            "agent": "a",
            "state": "called",
            "tool": "t",
            "arguments": {"a": 1},
            "directory": "/p",
            "worktree": "/p",
        }
    ],
    "server.resync": [{"reason": "too old"}],
    "server.instance.disposed": [{"directory": "/p"}],
    "global.disposed": [{}],
}


def again(value: Any, kind: Any) -> Any:
    """Read JSON as `kind` and return the JSON that is written for it."""
    read = msgspec.json.decode(msgspec.json.encode(value), type=kind)
    written = msgspec.json.encode(read)
    assert msgspec.json.decode(written, type=kind) == read
    return msgspec.json.decode(written)


@pytest.mark.parametrize("shape", [SMALL_SESSION, WHOLE_SESSION])
def test_a_session_is_written_as_it_was_read(shape: dict[str, Any]) -> None:
    assert again(shape, Session) == shape


@pytest.mark.parametrize("shape", [USER, WHOLE_USER, ASSISTANT, WHOLE_ASSISTANT])
def test_a_message_is_written_as_it_was_read(shape: dict[str, Any]) -> None:
    assert again(shape, Message) == shape


@pytest.mark.parametrize("name", PARTS)
def test_a_part_is_written_as_it_was_read(name: str) -> None:
    assert again(PARTS[name], Part) == PARTS[name]


def test_every_kind_of_part_has_an_example_here() -> None:
    tags = {kind.__struct_config__.tag for kind in Part.__args__}
    assert tags == {shape["type"] for shape in PARTS.values()}


@pytest.mark.parametrize(("shape", "line"), ERRORS)
def test_an_error_is_written_as_it_was_read_and_says_a_line(
    shape: dict[str, Any], line: str
) -> None:
    assert again(shape, MessageError) == shape
    assert get_error_message(msgspec.convert(shape, MessageError)) == line


@pytest.mark.parametrize("name", STORED)
def test_a_stored_event_is_written_as_it_was_read(name: str) -> None:
    shape = {"id": EVT, "type": name, "properties": STORED[name]}
    assert again(shape, StoredEvent) == shape
    assert again(shape, Event) == shape
    assert get_session_id(msgspec.convert(shape, StoredEvent)) == SES


@pytest.mark.parametrize("name", LIVE)
def test_a_live_event_is_written_as_it_was_read(name: str) -> None:
    for properties in LIVE[name]:
        shape = {"id": EVT, "type": name, "properties": properties}
        assert again(shape, LiveEvent) == shape
        expected = SES if "sessionID" in properties else None
        assert get_session_id(msgspec.convert(shape, LiveEvent)) == expected


def test_every_event_has_an_example_here() -> None:
    assert {kind.__struct_config__.tag for kind in StoredEvent.__args__} == set(STORED)
    assert {kind.__struct_config__.tag for kind in LiveEvent.__args__} == set(LIVE)


def test_rules_questions_and_todos_are_written_as_they_were_read() -> None:
    assert again(QUESTION, PermissionRequest) == QUESTION
    rule = {"permission": "*", "pattern": "*.env", "action": "ask"}
    assert again(rule, PermissionRule) == rule
    todo = {"content": "c", "status": "cancelled", "priority": "low"}
    assert again(todo, Todo) == todo


def test_unknown_fields_are_passed_over_when_reading() -> None:
    assert again({**SMALL_SESSION, "later": {"x": 1}}, Session) == SMALL_SESSION
    assert again({**PARTS["text"], "later": 1}, Part) == PARTS["text"]


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ({**PARTS["text"], "type": "nonsense"}, Part),
        (tool({"status": "nonsense"}), Part),
        ({key: value for key, value in SMALL_SESSION.items() if key != "title"}, Session),
        ({**USER, "role": "system"}, Message),
        ({"permission": "a", "pattern": "b", "action": "maybe"}, PermissionRule),
    ],
)
def test_what_is_none_of_the_shapes_is_refused(shape: dict[str, Any], kind: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(shape, kind)


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("id", "id"),
        ("session_id", "sessionID"),
        ("tail_end", "tailEnd"),
        ("is_retryable", "isRetryable"),
    ],
)
def test_names_on_the_wire(field: str, name: str) -> None:
    assert convert_to_wire_name(field) == name


def test_a_record_does_not_change() -> None:
    rule = PermissionRule(permission="a", pattern="b", action="ask")
    field = "action"
    with pytest.raises(AttributeError):
        setattr(rule, field, "allow")
