"""Handles a server's requests during a call: forms, model answers, project roots. Uses `mcp`."""

import asyncio
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import Struct

from codeloop.kit.terminal_text import escape_controls
from codeloop.permission.gate import Denied, Rejected
from codeloop.schema.errors import CodeloopError
from codeloop.schema.permission import NOBODY_MESSAGE, Need
from codeloop.schema.question import QuestionInfo, QuestionOption, asks_for_secret
from codeloop.schema.wire import JSON
from codeloop.tool.services import Notices
from codeloop.tool.tool import Subtask, ToolContext, ToolFailure
from codeloop.workspace.process.program_log import ProgramLog

if TYPE_CHECKING:
    from mcp.client.session import ClientRequestContext
    from mcp_types import (
        CreateMessageRequestParams,
        CreateMessageResult,
        ElicitRequestParams,
        ElicitResult,
        ErrorData,
        ListRootsResult,
        LoggingMessageNotificationParams,
    )

_HEADER = 30
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_AFTER_PIN = frozenset(("code", "number", "no", "nr"))
_ANYTHING = frozenset(("value", "answer", "input", "response", "text", "data", "result"))
"""Meaningless field names: then the form's message tells what it asks for."""


class SecretAsked(CodeloopError):
    """A form asks for a secret, which must never go through a form."""


def questions_of(schema: JSON, who: str, message: str = "") -> list[QuestionInfo]:
    """Return a question for each field; one to agree for a form without fields. Raises SecretAsked."""
    fields = _fields(schema)
    for name, field in fields.items():
        if _is_secret(name, field, message):
            raise SecretAsked(f"it asks for {escape_controls(name)!r}, a secret")
    if not fields:
        agree = [QuestionOption(label="Yes", description=""), QuestionOption(label="No", description="")]
        return [QuestionInfo(question=who, header="Agree", options=agree, custom=False)]
    required = schema.get("required", [])
    return [_question(name, field, who, is_required=name in required) for name, field in fields.items()]


def _is_secret(name: str, field: JSON, message: str) -> bool:
    """Return whether a field is for a secret; a field with fixed choices never is."""
    if field.get("format") == "password":
        return True
    if _choices(field) or field.get("type") == "array":
        return False
    title, about = str(field.get("title") or ""), str(field.get("description") or "")
    if _names_pin(name) or _names_pin(title):
        return True
    if field.get("type") in {"integer", "number"}:  # a limit of tokens, the length of passwords
        return False
    is_any = name.lower() in _ANYTHING
    return any(map(asks_for_secret, (name, title, about, message if is_any else "")))


def _names_pin(label: str) -> bool:
    """Return whether a name or title is of a PIN: `card_pin` and `PIN code` are, `Pin to the top` is not."""
    words = [word.lower() for word in _WORD.findall(label)]
    return "pin" in words and (words[-1] == "pin" or words[words.index("pin") + 1] in _AFTER_PIN)


def _question(name: str, field: JSON, who: str, *, is_required: bool) -> QuestionInfo:
    label = escape_controls(str(field.get("title") or name))
    about = escape_controls(str(field.get("description") or ""))
    kind = field.get("type", "string")
    choices = _choices(field)
    note = "" if is_required else " (optional)"
    note = f" (left out: {escape_controls(_format_default(field))})" if "default" in field else note
    return QuestionInfo(
        question=f"{who}\n{label}{note}{': ' + about if about else ''}",
        header=label[:_HEADER],
        options=[QuestionOption(label=each, description="") for each in choices],
        multiple=True if kind == "array" else None,
        custom=False if choices else None,
    )


def _format_default(field: JSON) -> str:
    """Return a field's default for display."""
    value = field["default"]
    if isinstance(value, bool):
        return "Yes" if value else "No"
    names = {str(each): name for name, each in _values(field).items()}
    many = cast("list[Any]", value) if isinstance(value, list) else [value]
    return ", ".join(names.get(str(each), str(each)) for each in many)


def _choices(field: JSON) -> list[str]:
    if field.get("type") == "boolean":
        return ["Yes", "No"]
    return list(_values(field))


def _values(field: JSON) -> dict[str, Any]:
    """Return a field's allowed values, by display text."""
    items: JSON = field.get("items", {}) if field.get("type") == "array" else field
    rows: list[JSON] = items.get("oneOf") or items.get("anyOf") or []
    if rows:
        return {escape_controls(str(row.get("title", row.get("const")))): row.get("const") for row in rows}
    values: list[Any] = items.get("enum", [])
    names: list[Any] = items.get("enumNames", values)
    return {escape_controls(str(name)): value for name, value in zip(names, values, strict=False)}


def answers_of(schema: JSON, answers: list[list[str]]) -> JSON | None:
    """Convert answers to the form's types; None: not agreed, or a required field was left out."""
    fields = _fields(schema)
    if not fields:
        return {} if answers[0][:1] == ["Yes"] else None
    content: JSON = {}
    for (name, field), choices in zip(fields.items(), answers, strict=True):
        value = _value(field, [each for each in choices if each.strip()])
        if value is not None:
            content[name] = value
        elif name in schema.get("required", []):
            return None
    return content


def _value(field: JSON, choices: list[str]) -> Any:
    """Return an answer as the field's type, its default for none; None for a text that is not of that type."""
    if not choices:
        return field.get("default")
    values = _values(field)
    match field.get("type"):
        case "boolean":
            return choices[0] == "Yes"
        case "array":
            return [values.get(each, each) for each in choices]
        case "integer" | "number" as kind:
            with suppress(ValueError):
                return int(choices[0]) if kind == "integer" else float(choices[0])
            return None
        case _:
            return values.get(choices[0], choices[0])


def _fields(schema: JSON) -> dict[str, JSON]:
    return cast("dict[str, JSON]", schema.get("properties") or {})


SAMPLING = "mcp_sampling"
"""The permission for a server's use of the model."""
_YES_OPENED, _NOT = "I have opened it", "No"


class ChangeCallbacks(Struct, frozen=True):
    """Called when a server's lists or a resource have changed."""

    lists: Callable[[], None]
    resource: Callable[[str], None]


class ServerRequests:
    """Answers one server's requests on behalf of the current call; the latest of several."""

    def __init__(self, server: str, root: Path, log: ProgramLog, change_callbacks: ChangeCallbacks) -> None:
        self._server = server
        self._root = root
        self._log = log
        self._on_change = change_callbacks
        self._calls: list[ToolContext] = []
        self._readers: dict[str, dict[str, Notices]] = {}
        self._callers: dict[str, Notices] = {}

    def watch(self, uri: str, ctx: ToolContext) -> None:
        """Record that a session has read a resource, to notify it of changes."""
        self._readers.setdefault(uri, {})[ctx.session_id] = ctx.services.notices

    def _notify_readers(self, uri: str) -> None:
        note = (
            f"The MCP resource {self._server}:{escape_controls(uri)} has changed since you read it; "
            "mcp_resource reads it anew."
        )
        for session_id, notices in self._readers.get(uri, {}).items():
            notices.add(session_id, note)
        self._on_change.resource(uri)

    def notify(self, line: str) -> None:
        """Notify the sessions that have called the server; a call in progress notices by itself."""
        if not self._calls:
            for session_id, notices in self._callers.items():
                notices.add(session_id, line)

    @contextmanager
    def answering(self, ctx: ToolContext | None) -> Generator[None]:
        """Answer on behalf of this call during the block."""
        if ctx is None:
            yield
            return
        self._calls.append(ctx)
        self._callers[ctx.session_id] = ctx.services.notices
        try:
            yield
        finally:
            self._calls.remove(ctx)

    def callbacks(self) -> JSON:
        """Return the callbacks by the parameter names of the package's client."""
        return {
            "elicitation_callback": self._elicit,
            "sampling_callback": self._sample,
            "list_roots_callback": self._roots,
            "logging_callback": self._note,
            "message_handler": self._handle,
        }

    async def _handle(self, message: Any) -> None:
        method = getattr(message, "method", "")
        if isinstance(message, Exception):
            self._log.note(f"[{message}]")
        elif method.endswith("list_changed"):
            self._on_change.lists()
        elif method == "notifications/resources/updated":
            self._notify_readers(str(message.params.uri))
        await asyncio.sleep(0)

    async def _note(self, params: "LoggingMessageNotificationParams") -> None:
        text = params.data if isinstance(params.data, str) else msgspec.json.encode(params.data).decode()
        self._log.note(f"[{params.level}] {text}")

    async def _roots(self, _context: "ClientRequestContext") -> "ListRootsResult":
        from mcp_types import ListRootsResult, Root
        from pydantic import FileUrl

        return ListRootsResult(roots=[Root(uri=FileUrl(self._root.as_uri()), name=self._root.name or "project")])

    async def _elicit(
        self, _context: "ClientRequestContext", params: "ElicitRequestParams"
    ) -> "ElicitResult | ErrorData":
        from mcp_types import ElicitRequestURLParams, ElicitResult

        ctx = self._calls[-1] if self._calls else None
        if ctx is None:
            return ElicitResult(action="cancel")
        need = Need(permission="question", patterns=("*",), metadata={"server": self._server})
        who = f"The MCP server {self._server} asks: {escape_controls(params.message)}"
        try:
            if isinstance(params, ElicitRequestURLParams):
                accept_option = QuestionOption(label=_YES_OPENED, description=escape_controls(params.url))
                decline_option = QuestionOption(label=_NOT, description="The server is told so.")
                question = QuestionInfo(
                    question=f"{who}\nOpen {escape_controls(params.url)}",
                    header="Open",
                    options=[accept_option, decline_option],
                    custom=False,
                )
                answers = await ctx.session.ask_questions([question], need)
                return ElicitResult(action="accept" if answers[0][:1] == [_YES_OPENED] else "decline")
            schema: JSON = params.requested_schema
            questions = questions_of(schema, who, params.message)
            content = answers_of(schema, await ctx.session.ask_questions(questions, need))
        except Rejected as error:
            if error.message != NOBODY_MESSAGE:
                return ElicitResult(action="decline")
            return self._refuse_form(ctx, "nobody is there to fill it in")
        except SecretAsked as error:
            return self._refuse_form(ctx, f"{error}, and those are never given by forms")
        return ElicitResult(action="accept", content=content) if content is not None else ElicitResult(action="cancel")

    def _refuse_form(self, ctx: ToolContext, why: str) -> "ElicitResult":
        """Refuse a form that no user has seen, without claiming that the user declined it."""
        from mcp_types import ElicitResult

        self._log.note(f"[refused a form: {why}]")
        ctx.report(metadata={"declined": why})
        line = f"A form of the MCP server {self._server} was refused by codeloop, not by the user: {why}."
        ctx.services.notices.add(ctx.session_id, line)
        return ElicitResult(action="cancel")

    async def _sample(
        self, _context: "ClientRequestContext", params: "CreateMessageRequestParams"
    ) -> "CreateMessageResult | ErrorData":
        """Have the session's model answer, in a separate session without tools, bound by the call's limits."""
        from mcp_types import INVALID_REQUEST, CreateMessageResult, ErrorData, TextContent

        ctx = self._calls[-1] if self._calls else None
        if ctx is None:
            return ErrorData(code=INVALID_REQUEST, message="No call is under way that this could be for.")
        prompt = _prompt(params)
        need = Need(permission=SAMPLING, patterns=(self._server,), metadata={"input": {"prompt": prompt}})
        try:
            await ctx.ask(need)
            result = await ctx.spawn(Subtask(agent="sampling", description=f"Asked by {self._server}", prompt=prompt))
        except (Denied, Rejected, ToolFailure) as error:
            return ErrorData(code=INVALID_REQUEST, message=f"It was not done. {error}")
        model: JSON = result.metadata.get("model") or {}
        content = TextContent(type="text", text=result.text)
        return CreateMessageResult(role="assistant", content=content, model=model.get("modelID", "unknown"))


def _prompt(params: "CreateMessageRequestParams") -> str:
    """Return a request for a model as one prompt."""
    lines = [f"<system>\n{params.system_prompt}\n</system>"] if params.system_prompt else []
    for message in params.messages:
        texts = [str(getattr(block, "text", f"({block.type} left out)")) for block in message.content_as_list]
        lines.append(f"<{message.role}>\n{chr(10).join(texts)}\n</{message.role}>")
    return "\n".join(lines)
