"""Passes a session's questions to the editor's user: permissions with command and diff, and the model's."""

import asyncio
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any

from msgspec import Struct

from codeloop.acp.connection import EditorConnection, RpcError
from codeloop.acp.params import ClientCapabilities
from codeloop.acp.tool_calls import kind_of, title_of
from codeloop.acp.versions.version import ProtocolVersion
from codeloop.client.asking import origin
from codeloop.client.client import Client
from codeloop.client.mcp_server.forms import form_of, question_answers
from codeloop.client.permission_text import in_words
from codeloop.kit.jsonc import is_object
from codeloop.kit.terminal_text import escape_controls
from codeloop.schema.api.session_inputs import AnswerPermission, AnswerQuestion, RejectQuestion
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import PERMISSION_REPLY, QUESTION_REJECT, QUESTION_REPLY
from codeloop.schema.permission import NOBODY_MESSAGE, PermissionRequest, Reply
from codeloop.schema.question import QuestionInfo, QuestionRequest
from codeloop.schema.wire import JSON, replace

_COLUMNS, _ROWS = 100, 400
_NO_SECRETS = "A secret is not asked for in an editor. Ask for it to be put where the program reads it."
_SKIP = "skip"


class ConnectedEditor(Struct, frozen=True):
    """The connection to an editor, the version that it speaks, and what it can do. `terminals`: ids of its own ones."""

    connection: EditorConnection
    version: ProtocolVersion
    capabilities: ClientCapabilities
    terminals: AbstractSet[str] = frozenset()


class Asker:
    """Puts the requests of one session to the user.

    `note_open`, if given, is called with the number of open questions when it changes; `note_call` with what a request
    for a permission says of a call.
    """

    def __init__(
        self,
        link: ConnectedEditor,
        client: Client,
        session_id: str,
        *,
        note_open: Callable[[int], None] | None,
        note_call: Callable[[JSON], None],
    ) -> None:
        self._link = link
        self._client = client
        self._session_id = session_id
        self._note_open = note_open
        self._note_call = note_call
        elicitation = link.capabilities.elicitation
        self._shows_forms = elicitation is not None and elicitation.form is not None
        self._opens_pages = elicitation is not None and elicitation.url is not None
        self._asking: dict[str, asyncio.Task[None]] = {}

    def ask(self, request: PermissionRequest | QuestionRequest, call_id: str | None, directory: str) -> None:
        """Begin to ask, once. `call_id`: of the call that it is about, as the editor knows it; None: it does not."""
        if request.id in self._asking:
            return
        if isinstance(request, PermissionRequest):
            asking = self._ask_permission(request, call_id or request.id, directory)
        else:
            asking = self._ask_questions(request)
        task = asyncio.create_task(asking)
        self._asking[request.id] = task
        self._count()
        task.add_done_callback(lambda _: self._end(request.id))

    def withdraw(self, request_id: str) -> None:
        """Ask no more what another client has answered, or what ended with its turn."""
        if (task := self._asking.get(request_id)) is not None:
            task.cancel()

    def stop(self) -> None:
        """Ask nothing more."""
        for task in self._asking.values():
            task.cancel()

    def _end(self, request_id: str) -> None:
        self._asking.pop(request_id, None)
        self._count()

    def _count(self) -> None:
        if self._note_open is not None:
            self._note_open(len(self._asking))

    async def _ask_permission(self, request: PermissionRequest, call_id: str, directory: str) -> None:
        """Ask whether a call may do something, and answer the request."""
        asking = await origin(self._client, request)
        diffs = self._link.version.diff_content(request.metadata, directory)
        without_diff = {key: value for key, value in request.metadata.items() if key != "diff"}
        words = in_words(replace(request, metadata=without_diff) if diffs else request, asking, _COLUMNS, _ROWS)
        question = escape_controls(in_words(request, asking, _COLUMNS, 1).title)
        command = request.metadata.get("command")
        options = [{"optionId": "once", "name": "Allow once", "kind": "allow_once"}]
        if words.always:
            always = " ".join(words.always.split())
            options.append({"optionId": "always", "name": f"Allow always: {always}", "kind": "allow_always"})
        options.append({"optionId": "reject", "name": "Reject", "kind": "reject_once"})
        call: JSON = {
            "toolCallId": call_id,
            "kind": kind_of(asking.tool or request.permission),
            "status": "pending",
            "rawInput": request.metadata.get("input") or _input_of(request),
        }
        if isinstance(command, str):
            call["title"] = title_of("bash", {"command": command}, "")
        rows = "\n".join(row for _, row in words.rows)
        about = self._link.version.permission_request(question, rows, diffs, call, directory)
        self._note_call(about.get("toolCall") or {})
        option_id = await self._choose(about, options)
        replies: dict[str, Reply] = {"once": "once", "always": "always"}
        await self._reply(request, replies.get(option_id, "reject"))

    async def _ask_questions(self, request: QuestionRequest) -> None:
        """Ask what the model wants to know, by a form, or one question by its options."""
        with suppress(OperationError):  # it was answered elsewhere, or withdrawn
            form = form_of(request, await origin(self._client, request))
            if form is None:
                await self._client.call(QUESTION_REJECT, RejectQuestion(request_id=request.id, message=_NO_SECRETS))
                return
            answers: list[list[str]] | None = None
            if self._opens_pages and (page := _page_of(request)) is not None:
                answers = await self._open_page(request, page)
            elif self._shows_forms:
                answers = question_answers(request, await self._fill_in(form.message, form.schema))
            elif len(request.questions) == 1 and request.questions[0].options:
                answers = await self._choose_answer(request, request.questions[0])
            else:
                await self._client.call(QUESTION_REJECT, RejectQuestion(request_id=request.id, message=NOBODY_MESSAGE))
                return
            if answers is None:
                await self._client.call(QUESTION_REJECT, RejectQuestion(request_id=request.id))
            else:
                await self._client.call(QUESTION_REPLY, AnswerQuestion(request_id=request.id, answers=answers))

    async def _fill_in(self, message: str, schema: JSON) -> JSON | None:
        """Have a form filled in; None: the user would not."""
        answer = await self._elicit({"mode": "form", "message": message, "requestedSchema": schema})
        content = answer.get("content") if answer.get("action") == "accept" else None
        return content if is_object(content) else None

    async def _open_page(self, request: QuestionRequest, page: str) -> list[list[str]] | None:
        """Have a page opened that an MCP server asks for; None: the user would not."""
        question = request.questions[0]
        message = escape_controls(question.question)
        answer = await self._elicit({"mode": "url", "elicitationId": request.id, "url": page, "message": message})
        return [[question.options[0].label]] if answer.get("action") == "accept" else None

    async def _elicit(self, elicitation: JSON) -> JSON:
        """Return the answer to an elicitation; an empty one where the editor can't."""
        try:
            answer = await self._link.connection.request(
                "elicitation/create", {"sessionId": self._session_id, **elicitation}
            )
        except RpcError:
            return {}
        return _read_object(answer)

    async def _choose_answer(self, request: QuestionRequest, question: QuestionInfo) -> list[list[str]] | None:
        options = [
            {"optionId": str(at), "name": escape_controls(option.label), "kind": "allow_once"}
            for at, option in enumerate(question.options)
        ]
        options.append({"optionId": _SKIP, "name": "Do not answer", "kind": "reject_once"})
        descriptions = [
            f"{escape_controls(each.label)}: {escape_controls(each.description)}"
            for each in question.options
            if each.description
        ]
        call: JSON = {"toolCallId": request.id, "kind": "other", "status": "pending"}
        about = self._link.version.permission_request(
            escape_controls(question.question), "\n".join(descriptions), [], call, ""
        )
        option_id = await self._choose(about, options)
        return [[question.options[int(option_id)].label]] if option_id.isdecimal() else None

    async def _choose(self, about: JSON, options: list[dict[str, str]]) -> str:
        """Return the id of the option that the user chose; "": none."""
        params: JSON = {"sessionId": self._session_id, **about, "options": options}
        try:
            answer = _read_object(await self._link.connection.request("session/request_permission", params))
        except RpcError:
            return ""
        outcome = _read_object(answer.get("outcome"))
        option_id = str(outcome.get("optionId") or "") if outcome.get("outcome") == "selected" else ""
        return option_id if option_id in {option["optionId"] for option in options} else ""

    async def _reply(self, request: PermissionRequest, reply: Reply) -> None:
        with suppress(OperationError):  # it was answered elsewhere, or withdrawn
            await self._client.call(PERMISSION_REPLY, AnswerPermission(request_id=request.id, reply=reply))


def _read_object(value: Any) -> JSON:
    """Return an object that a client sent; anything else counts as an empty one."""
    return value if is_object(value) else {}


def _page_of(request: QuestionRequest) -> str | None:
    """Return the page that an MCP server asks to have opened; None: the request is another."""
    question = request.questions[0]
    if len(request.questions) > 1 or question.header != "Open" or question.custom is not False:
        return None
    page = question.options[0].description if question.options else ""
    return page if page.startswith(("https://", "http://")) else None


def _input_of(request: PermissionRequest) -> JSON:
    command = request.metadata.get("command")
    return {"command": command} if isinstance(command, str) else {"patterns": request.patterns}
