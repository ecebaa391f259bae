"""The four tools of `codeloop mcp serve`: their arguments, their descriptions,
and the report that each returns.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Struct

from codeloop.schema.wire import JSON

Status = Literal["working", "asking", "done", "stopped", "denied", "limit", "failed", "idle"]
Seconds = Annotated[
    float,
    Meta(
        ge=0,
        le=86_400,
        description="Return after so many seconds even if the work is not done, with the status `working`; it goes on, "
        "and `status` waits for it. Left out: return when it is done.",
    ),
]
ReportedSessionId = Annotated[
    str, Meta(description="The `session_id` of an earlier report.", min_length=1)
]


class PromptArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `prompt`."""

    prompt: Annotated[
        str,
        Meta(
            min_length=1,
            description="The task, with everything that has to be known: the session knows nothing of your own "
            "conversation. `@path` attaches a file of the project.",
        ),
    ]
    wait: Seconds | None = None


class ContinueArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `continue`."""

    session_id: ReportedSessionId
    prompt: Annotated[str, Meta(min_length=1, description="What to say next in that session.")]
    wait: Seconds | None = None


class StatusArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `status`."""

    session_id: Annotated[
        str,
        Meta(description="Which session; left out: all that were prompted through this server."),
    ] = ""
    wait: Annotated[
        float, Meta(ge=0, le=86_400, description="Wait so many seconds for the end of the work.")
    ] = 0


class StopArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `stop`."""

    session_id: ReportedSessionId


class Report(Struct, frozen=True, omit_defaults=True):
    """The state or the result of a session. `asks`: its pending question;
    `changed`: paths of written files.

    `status`: `denied` if a refusal ended the turn;
    `idle` if this server has not prompted the session yet.
    """

    session_id: str = ""
    status: Status = "idle"
    answer: str = ""
    message: str = ""
    asks: str = ""
    changed: list[str] = []
    steps: int = 0
    cost: float = 0.0


ToolArguments = PromptArguments | ContinueArguments | StatusArguments | StopArguments


class ToolRow(Struct, frozen=True):
    """One tool. `arguments_type`: the type of its arguments;
    `is_read_only`: the tool changes nothing.
    """

    arguments_type: Callable[..., ToolArguments]
    title: str
    description: str
    is_read_only: bool = False


TOOLS: dict[str, ToolRow] = {
    "prompt": ToolRow(
        PromptArguments,
        "Give codeloop a task",
        "Give codeloop, a coding agent, a task in the project that this server was started in. It works in a session "
        "of its own: it reads, edits and runs commands, as far as it is allowed to, and reports its answer, the files "
        "that it changed and a `session_id` for `continue`. Sessions can work side by side. Cancelling stops the work.",
    ),
    "continue": ToolRow(
        ContinueArguments,
        "Go on in a session",
        "Say something more in a session of codeloop, which remembers what was said and done in it. While it still "
        "works, it takes this up at its next step.",
    ),
    "status": ToolRow(
        StatusArguments,
        "Look at sessions",
        "Report what a session of codeloop is doing or came to, or wait for it. A question that it waits with "
        "is asked now.",
        is_read_only=True,
    ),
    "stop": ToolRow(
        StopArguments,
        "Stop a session",
        "Stop the work of a session of codeloop. What was done stays done; `continue` takes the session up again.",
    ),
}

_TEXT_SCHEMA: JSON = {"type": "string"}
_REPORT_PROPERTIES: dict[str, JSON] = {
    "session_id": _TEXT_SCHEMA,
    "status": {
        "enum": list(get_args(Status)),
        "description": "asking: it waits for an answer of the person; limit: a limit of steps, tokens or cost ended it",
        "type": "string",
    },
    "answer": {"type": "string", "description": "What codeloop answered last."},
    "message": {"type": "string", "description": "Why it ended, where that is not plain."},
    "asks": {"type": "string", "description": "The question that waits."},
    "changed": {
        "type": "array",
        "items": _TEXT_SCHEMA,
        "description": "Absolute paths of files that it wrote.",
    },
    "steps": {"type": "integer", "description": "Requests to the model."},
    "cost": {"type": "number", "description": "Dollars, of the whole session."},
}


def build_argument_schema(row: ToolRow) -> JSON:
    """Build the JSON schema of a tool's arguments."""
    schema: JSON = msgspec.json.schema(row.arguments_type)
    # msgspec puts the type below `$defs`; the protocol wants an object at the top.
    name = str(schema["$ref"]).rpartition("/")[2]
    return {
        key: value
        for key, value in schema["$defs"][name].items()
        if key not in {"title", "description"}
    }


def build_result_schema(name: str) -> JSON:
    """Build the JSON schema of a tool's result: a report;
    `status` without a session returns several.
    """
    report: JSON = {
        "type": "object",
        "properties": _REPORT_PROPERTIES,
        "required": ["session_id", "status"],
    }
    if name != "status":
        return report
    return {
        "type": "object",
        "properties": {**_REPORT_PROPERTIES, "sessions": {"type": "array", "items": report}},
    }


def read_arguments(name: str, arguments: JSON) -> ToolArguments:
    """Decode a tool's arguments. Raises msgspec.ValidationError."""
    # Not strict: models write numbers as strings.
    value: Any = msgspec.convert(arguments, TOOLS[name].arguments_type, strict=False)
    return value
