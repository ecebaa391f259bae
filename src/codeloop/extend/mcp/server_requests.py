"""Answers the requests that an MCP server sends: forms, model answers, project roots,
logs and changes.
"""

import asyncio
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import Struct

from codeloop.kit.text.secret_questions import asks_for_secret
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.permission.gate import Denied, Rejected
from codeloop.schema.errors import CodeloopError
from codeloop.schema.permission import NOBODY_MESSAGE, Need
from codeloop.schema.question import QuestionInfo, QuestionOption
from codeloop.schema.wire import JSON
from codeloop.tool.services import Notices
from codeloop.tool.tool import Subtask, ToolContext, ToolFailure
from codeloop.workspace.process.program_log import ProgramLog

_MAX_HEADER_CHARS = 30
# Splits `cardPin`, `card_pin` and `PIN code` into words.
_LABEL_WORD = r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+"
_WORDS_AFTER_PIN = frozenset(("code", "number", "no", "nr"))
# These names of fields say nothing; for them the form's message is searched for
# words such as "password".
_GENERIC_NAMES = frozenset(("value", "answer", "input", "response", "text", "data", "result"))


class SecretAsked(CodeloopError):
    """A form asks for a secret. Secrets are never entered in forms."""


def make_questions(schema: JSON, heading: str, message: str = "") -> list[QuestionInfo]:
    """Return a question for each field of a form; for a form without fields, a yes/no question.
    Raises SecretAsked.

    `heading`: says which server asks, and comes first in each question.
    `message`: the server's own.
    """
    fields = _get_fields(schema)
    for name, field in fields.items():
        if _is_secret(name, field, message):
            raise SecretAsked(f"it asks for {escape_controls(name)!r}, a secret")
    if not fields:
        agree = [
            QuestionOption(label="Yes", description=""),
            QuestionOption(label="No", description=""),
        ]
        return [QuestionInfo(question=heading, header="Agree", options=agree, custom=False)]
    required = schema.get("required", [])
    return [
        _make_question(name, field, heading, is_required=name in required)
        for name, field in fields.items()
    ]


def _is_secret(name: str, field: JSON, message: str) -> bool:
    """Return whether a field is for a secret; one with fixed choices is only if
    its format is `password`.
    """
    if field.get("format") == "password":
        return True
    if _list_choices(field) or field.get("type") == "array":
        return False
    title, description = str(field.get("title") or ""), str(field.get("description") or "")
    if _names_pin(name) or _names_pin(title):
        return True
    # Numbers are about secrets, not secrets themselves: a limit of tokens, the length of passwords.
    if field.get("type") in {"integer", "number"}:
        return False
    has_generic_name = name.lower() in _GENERIC_NAMES
    return any(
        map(asks_for_secret, (name, title, description, message if has_generic_name else ""))
    )


def _names_pin(label: str) -> bool:
    """Return whether a name or title is of a PIN: `card_pin` and `PIN code` are,
    `Pin to the top` is not.
    """
    words = [word.lower() for word in re.findall(_LABEL_WORD, label)]
    return "pin" in words and (
        words[-1] == "pin" or words[words.index("pin") + 1] in _WORDS_AFTER_PIN
    )


def _make_question(name: str, field: JSON, heading: str, *, is_required: bool) -> QuestionInfo:
    label = escape_controls(str(field.get("title") or name))
    description = escape_controls(str(field.get("description") or ""))
    choices = _list_choices(field)
    note = "" if is_required else " (optional)"
    if "default" in field:
        note = f" (left out: {escape_controls(_format_default(field))})"
    return QuestionInfo(
        question=f"{heading}\n{label}{note}{': ' + description if description else ''}",
        header=label[:_MAX_HEADER_CHARS],
        options=[QuestionOption(label=each, description="") for each in choices],
        multiple=True if field.get("type", "string") == "array" else None,
        custom=False if choices else None,
    )


def _format_default(field: JSON) -> str:
    """Return a field's default for display."""
    value = field["default"]
    if isinstance(value, bool):
        return "Yes" if value else "No"
    names = {str(each): name for name, each in _map_values(field).items()}
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    return ", ".join(names.get(str(each), str(each)) for each in values)


def _list_choices(field: JSON) -> list[str]:
    """Return the texts that the user can choose from; empty: the user types the value."""
    if field.get("type") == "boolean":
        return ["Yes", "No"]
    return list(_map_values(field))


def _map_values(field: JSON) -> dict[str, Any]:
    """Return a field's allowed values, by display text."""
    items: JSON = field.get("items", {}) if field.get("type") == "array" else field
    options: list[JSON] = items.get("oneOf") or items.get("anyOf") or []
    if options:
        return {
            escape_controls(str(option.get("title", option.get("const")))): option.get("const")
            for option in options
        }
    values: list[Any] = items.get("enum", [])
    # Older servers name the values of `enum` in `enumNames`, newer ones in `oneOf`.
    names: list[Any] = items.get("enumNames", values)
    return {escape_controls(str(name)): value for name, value in zip(names, values, strict=False)}


def convert_answers(schema: JSON, answers: list[list[str]]) -> JSON | None:
    """Convert the answers to the types of a form's fields;
    None if the user disagreed or left out a required field.
    """
    fields = _get_fields(schema)
    if not fields:
        return {} if answers[0][:1] == ["Yes"] else None
    content: JSON = {}
    for (name, field), choices in zip(fields.items(), answers, strict=True):
        value = _convert_answer(field, [each for each in choices if each.strip()])
        if value is not None:
            content[name] = value
        # A form with a missing field is invalid, so it counts as not filled in.
        elif name in schema.get("required", []):
            return None
    return content


def _convert_answer(field: JSON, choices: list[str]) -> Any:
    """Convert an answer to its field's type. No answer gives the default,
    a text of another type None.
    """
    if not choices:
        return field.get("default")
    values = _map_values(field)
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


def _get_fields(schema: JSON) -> dict[str, JSON]:
    return cast("dict[str, JSON]", schema.get("properties") or {})


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

SAMPLING_PERMISSION = "mcp_sampling"
"""The permission for a server's use of the model."""
_OPENED_LABEL, _DECLINED_LABEL = "I have opened it", "No"


class ChangeCallbacks(Struct, frozen=True):
    """Functions to call when a server reports that its lists, or the resource with a URI,
    have changed.
    """

    on_lists: Callable[[], None]
    on_resource: Callable[[str], None]


class ServerRequests:
    """Answers one server's requests on behalf of the current call.
    Of several calls the latest one counts.
    """

    def __init__(
        self, server: str, root: Path, log: ProgramLog, change_callbacks: ChangeCallbacks
    ) -> None:
        self._server = server
        self._root = root
        self._log = log
        self._callbacks = change_callbacks
        self._calls: list[ToolContext] = []
        """The running calls, the latest last."""
        self._readers: dict[str, dict[str, Notices]] = {}
        """By URI and session: where those are notified that have read a resource."""
        self._callers: dict[str, Notices] = {}
        """By session: where those are notified that have called the server."""

    def watch(self, uri: str, ctx: ToolContext) -> None:
        """Notify this call's session from now on when the resource changes."""
        self._readers.setdefault(uri, {})[ctx.session_id] = ctx.services.notices

    def _notify_readers(self, uri: str) -> None:
        note = (
            f"The MCP resource {self._server}:{escape_controls(uri)} has changed since you read it; "
            "mcp_resource reads it anew."
        )
        for session_id, notices in self._readers.get(uri, {}).items():
            notices.add(session_id, note)
        self._callbacks.on_resource(uri)

    def notify(self, line: str) -> None:
        """Add a note to the sessions that have called the server,
        unless a call runs: it sees the change itself.
        """
        if not self._calls:
            for session_id, notices in self._callers.items():
                notices.add(session_id, line)

    @contextmanager
    def answer_for(self, ctx: ToolContext | None) -> Generator[None]:
        """Answer on behalf of this call during the block."""
        if ctx is None:
            yield
            return
        self._calls.append(ctx)
        self._callers[ctx.session_id] = ctx.services.notices
        try:
            yield
        finally:
            # Calls overlap, so this one need not be the last.
            self._calls.remove(ctx)

    def make_client_callbacks(self) -> JSON:
        """Return the callbacks by the parameter names of the package's client."""
        return {
            "elicitation_callback": self._elicit,
            "sampling_callback": self._sample,
            "list_roots_callback": self._list_roots,
            "logging_callback": self._log_message,
            "message_handler": self._handle_notification,
        }

    async def _handle_notification(self, message: Any) -> None:
        """Handle a notification, or an error of the connection, which comes here as well."""
        method = getattr(message, "method", "")
        if isinstance(message, Exception):
            self._log.add_line(f"[{message}]")
        elif method.endswith("list_changed"):
            self._callbacks.on_lists()
        elif method == "notifications/resources/updated":
            self._notify_readers(str(message.params.uri))
        # The package calls this in its reading loop: others get their turn between
        # two of many notifications.
        await asyncio.sleep(0)

    async def _log_message(self, params: "LoggingMessageNotificationParams") -> None:
        text = (
            params.data
            if isinstance(params.data, str)
            else msgspec.json.encode(params.data).decode()
        )
        self._log.add_line(f"[{params.level}] {text}")

    async def _list_roots(self, _context: "ClientRequestContext") -> "ListRootsResult":
        from mcp_types import ListRootsResult, Root
        from pydantic import FileUrl

        return ListRootsResult(
            roots=[Root(uri=FileUrl(self._root.as_uri()), name=self._root.name or "project")]
        )

    async def _elicit(
        self, _context: "ClientRequestContext", params: "ElicitRequestParams"
    ) -> "ElicitResult | ErrorData":
        """Have the user fill in the server's form, or open its address."""
        from mcp_types import ElicitRequestURLParams, ElicitResult

        ctx = self._calls[-1] if self._calls else None
        # Outside of a call there is no session whose user could be asked.
        if ctx is None:
            return ElicitResult(action="cancel")
        need = Need(permission="question", patterns=("*",), metadata={"server": self._server})
        heading = f"The MCP server {self._server} asks: {escape_controls(params.message)}"
        try:
            if isinstance(params, ElicitRequestURLParams):
                answers = await ctx.session.ask_questions(
                    [_make_url_question(heading, params.url)], need
                )
                return ElicitResult(
                    action="accept" if answers[0][:1] == [_OPENED_LABEL] else "decline"
                )
            schema: JSON = params.requested_schema
            questions = make_questions(schema, heading, params.message)
            content = convert_answers(schema, await ctx.session.ask_questions(questions, need))
        except Rejected as error:
            # A form that nobody could see was not declined by the user: the server may act on that.
            if error.message != NOBODY_MESSAGE:
                return ElicitResult(action="decline")
            return self._refuse_form(ctx, "nobody is there to fill it in")
        except SecretAsked as error:
            return self._refuse_form(ctx, f"{error}, and those are never given by forms")
        return (
            ElicitResult(action="accept", content=content)
            if content is not None
            else ElicitResult(action="cancel")
        )

    def _refuse_form(self, ctx: ToolContext, why: str) -> "ElicitResult":
        """Refuse a form that no user has seen, without claiming that the user declined it."""
        from mcp_types import ElicitResult

        self._log.add_line(f"[refused a form: {why}]")
        ctx.report(metadata={"declined": why})
        line = f"A form of the MCP server {self._server} was refused by codeloop, not by the user: {why}."
        ctx.services.notices.add(ctx.session_id, line)
        return ElicitResult(action="cancel")

    async def _sample(
        self, _context: "ClientRequestContext", params: "CreateMessageRequestParams"
    ) -> "CreateMessageResult | ErrorData":
        """Have the session's model answer, in a separate session without tools,
        bound by the call's limits.
        """
        from mcp_types import INVALID_REQUEST, CreateMessageResult, ErrorData, TextContent

        ctx = self._calls[-1] if self._calls else None
        if ctx is None:
            return ErrorData(
                code=INVALID_REQUEST, message="No call is under way that this could be for."
            )
        prompt = _format_prompt(params)
        need = Need(
            permission=SAMPLING_PERMISSION,
            patterns=(self._server,),
            metadata={"input": {"prompt": prompt}},
        )
        try:
            await ctx.ask(need)
            result = await ctx.spawn(
                Subtask(agent="sampling", description=f"Asked by {self._server}", prompt=prompt)
            )
        except (Denied, Rejected, ToolFailure) as error:
            return ErrorData(code=INVALID_REQUEST, message=f"It was not done. {error}")
        model: JSON = result.metadata.get("model") or {}
        content = TextContent(type="text", text=result.text)
        return CreateMessageResult(
            role="assistant", content=content, model=model.get("modelID", "unknown")
        )


def _make_url_question(heading: str, url: str) -> QuestionInfo:
    """Return the question by which the user opens an address, or declines to."""
    accept_option = QuestionOption(label=_OPENED_LABEL, description=escape_controls(url))
    decline_option = QuestionOption(label=_DECLINED_LABEL, description="The server is told so.")
    return QuestionInfo(
        question=f"{heading}\nOpen {escape_controls(url)}",
        header="Open",
        options=[accept_option, decline_option],
        custom=False,
    )


def _format_prompt(params: "CreateMessageRequestParams") -> str:
    """Format a sampling request's messages as one prompt."""
    lines = [f"<system>\n{params.system_prompt}\n</system>"] if params.system_prompt else []
    for message in params.messages:
        texts = [
            str(getattr(block, "text", f"({block.type} left out)"))
            for block in message.content_as_list
        ]
        lines.append(f"<{message.role}>\n{chr(10).join(texts)}\n</{message.role}>")
    return "\n".join(lines)
