"""`QuestionForwarder`: shows the permission requests and the questions of a
session to the editor's user.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from codeloop.acp.connected_editor import ConnectedEditor
from codeloop.acp.connection import RpcError
from codeloop.acp.tool_calls import find_kind, make_text_content, make_title
from codeloop.client.client import Client
from codeloop.client.questions.always_scopes import is_broad, list_scopes
from codeloop.client.questions.forms import build_form, read_question_form
from codeloop.client.questions.permission_text import describe_request
from codeloop.client.questions.permission_titles import describe_always
from codeloop.client.questions.requester import find_requester
from codeloop.kit.jsonc import is_object
from codeloop.kit.text.terminal_text import escape_answer_controls, escape_controls
from codeloop.schema.api.answers import (
    PERMISSION_REPLY,
    QUESTION_REJECT,
    QUESTION_REPLY,
    AnswerPermission,
    AnswerQuestion,
    RejectQuestion,
)
from codeloop.schema.errors import OperationError
from codeloop.schema.permission import NOBODY_MESSAGE, AlwaysScope, PermissionRequest, Reply
from codeloop.schema.question import QuestionInfo, QuestionRequest
from codeloop.schema.wire import JSON, replace

# Editors wrap and scroll texts themselves: these limits only bound the message.
_REQUEST_COLUMNS, _MAX_REQUEST_ROWS = 100, 400
_NO_FORM_MESSAGE = (
    "A secret is not asked for in an editor. Ask for it to be put where the program reads it."
)
_SKIP_OPTION = "skip"
_ONCE, _ALWAYS = "once", "always"
_SESSION = "session"
"""Ids of options; those of wider kinds of "always" have a number behind it."""


class QuestionForwarder:
    """Forwards the requests of one session to the user, and the answers to the session.

    `on_open_count` is called when the number of open requests changes, `on_call_change` with the
    fields of a call in a permission request, which the editor then shows.
    """

    def __init__(
        self,
        editor: ConnectedEditor,
        client: Client,
        session_id: str,
        *,
        on_open_count: Callable[[int], None] | None,
        on_call_change: Callable[[JSON], None],
    ) -> None:
        self._editor = editor
        self._client = client
        self._session_id = session_id
        self._on_open_count = on_open_count
        self._on_call_change = on_call_change
        elicitation = editor.capabilities.elicitation
        self._shows_forms = elicitation is not None and elicitation.form is not None
        self._opens_pages = elicitation is not None and elicitation.url is not None
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def ask(
        self, request: PermissionRequest | QuestionRequest, call_id: str | None, directory: str
    ) -> None:
        """Start to ask, once for each request.

        `call_id`: the id that the asking call has in the editor; None: the call was not sent.
        `directory`: the base of relative paths in the request.
        """
        if request.id in self._tasks:
            return
        if isinstance(request, PermissionRequest):
            work = self._ask_permission(request, call_id or request.id, directory)
        else:
            work = self._ask_questions(request)
        task = asyncio.create_task(work)
        self._tasks[request.id] = task
        self._report_open_count()
        task.add_done_callback(lambda _: self._remove(request.id))

    def withdraw(self, request_id: str) -> None:
        """Withdraw a request that another client has answered, or that ended with its turn."""
        if (task := self._tasks.get(request_id)) is not None:
            task.cancel()

    def stop(self) -> None:
        """Withdraw all requests."""
        for task in self._tasks.values():
            task.cancel()

    def _remove(self, request_id: str) -> None:
        self._tasks.pop(request_id, None)
        self._report_open_count()

    def _report_open_count(self) -> None:
        if self._on_open_count is not None:
            self._on_open_count(len(self._tasks))

    async def _ask_permission(
        self, request: PermissionRequest, call_id: str, directory: str
    ) -> None:
        """Ask for a permission, and answer the request."""
        requester = await find_requester(self._client, request)
        diffs = self._editor.version.make_diff_content(request.metadata, directory)
        shown_request = request
        if diffs:
            # The editor shows the diff itself, so the text leaves it out.
            metadata = {key: value for key, value in request.metadata.items() if key != "diff"}
            shown_request = replace(request, metadata=metadata)
        request_text = describe_request(
            shown_request, requester, _REQUEST_COLUMNS, _MAX_REQUEST_ROWS
        )
        call: JSON = {
            "toolCallId": call_id,
            "kind": find_kind(requester.tool or request.permission),
            "status": "pending",
            "rawInput": request.metadata.get("input") or _build_raw_input(request),
        }
        command = request.metadata.get("command")
        if isinstance(command, str):
            call["title"] = make_title("bash", {"command": command}, "")
        request_fields = self._editor.version.build_permission_request(
            # By its diff, the title says whether a file is created, changed or deleted.
            title=escape_controls(describe_request(request, requester, _REQUEST_COLUMNS, 1).title),
            details="\n".join(row for _, row in request_text.rows),
            diffs=diffs,
            call=call,
            directory=directory,
        )
        self._on_call_change(request_fields.get("toolCall") or {})
        await self._reply(request, *await self._choose_permission(request, request_fields))

    async def _choose_permission(
        self, request: PermissionRequest, fields: JSON
    ) -> tuple[Reply, list[str] | None, AlwaysScope]:
        """Have the user answer a request; return the reply,
        what "always" allows if it is less than offered, and where.

        Editors answer by one key. A broad "always" needs a second one, so it is asked about again.
        """
        scopes = {
            f"{_ALWAYS}:{number}" if number else _ALWAYS: list(scope)
            for number, scope in enumerate(list_scopes(request))
        }
        names = {
            option_id: f"Allow always: {_describe_scope(request, scope)}"
            for option_id, scope in scopes.items()
        }
        # The protocol has no kind for the session. Editors that take the first option
        # of a kind take this one.
        if scopes:
            scopes = {_SESSION: scopes[_ALWAYS], **scopes}
            effect = _describe_scope(request, scopes[_SESSION], for_session=True)
            names = {_SESSION: f"Allow for this session: {effect}", **names}
        option_id = await self._choose(fields, _make_permission_options(names))
        if option_id in scopes and is_broad(request.permission, scopes[option_id]):
            for_session = option_id == _SESSION
            effect = _describe_scope(request, scopes[option_id], for_session=for_session)
            sure = {
                option_id: f"Yes, that broad: {'for this session' if for_session else 'always'} {effect}"
            }
            option_id = await self._choose(fields, _make_permission_options(sure))
        if (always := scopes.get(option_id)) is None:
            return "once" if option_id == _ONCE else "reject", None, "directory"
        return (
            "always",
            None if always == request.always else always,
            "session" if option_id == _SESSION else "directory",
        )

    async def _ask_questions(self, request: QuestionRequest) -> None:
        """Ask the questions of the model or of an MCP server: by a web page, a form,
        or their options.
        """
        # The request may have been answered elsewhere, or withdrawn.
        with suppress(OperationError):
            form = build_form(request, await find_requester(self._client, request))
            # Questions for secrets have no form.
            if form is None:
                await self._client.call(
                    QUESTION_REJECT, RejectQuestion(request_id=request.id, message=_NO_FORM_MESSAGE)
                )
                return
            answers: list[list[str]] | None = None
            if self._opens_pages and (page := _find_page(request)) is not None:
                answers = await self._open_page(request, page)
            elif self._shows_forms:
                answers = read_question_form(
                    request, await self._fill_in(form.message, form.schema)
                )
            elif all(question.options for question in request.questions):
                answers = await self._choose_answers(request)
            else:
                await self._client.call(
                    QUESTION_REJECT, RejectQuestion(request_id=request.id, message=NOBODY_MESSAGE)
                )
                return
            if answers is None:
                await self._client.call(QUESTION_REJECT, RejectQuestion(request_id=request.id))
            else:
                await self._client.call(
                    QUESTION_REPLY, AnswerQuestion(request_id=request.id, answers=answers)
                )

    async def _fill_in(self, message: str, schema: JSON) -> JSON | None:
        """Ask the user to fill in a form; None: declined."""
        answer = await self._elicit({"mode": "form", "message": message, "requestedSchema": schema})
        content = answer.get("content") if answer.get("action") == "accept" else None
        return content if is_object(content) else None

    async def _open_page(self, request: QuestionRequest, page: str) -> list[list[str]] | None:
        """Ask the user to open the web page of an MCP server; None: declined."""
        question = request.questions[0]
        message = escape_controls(question.question)
        answer = await self._elicit(
            {"mode": "url", "elicitationId": request.id, "url": page, "message": message}
        )
        return [[question.options[0].label]] if answer.get("action") == "accept" else None

    async def _elicit(self, elicitation: JSON) -> JSON:
        """Return the answer to an elicitation; {} if the editor fails to show it."""
        try:
            answer = await self._editor.connection.request(
                "elicitation/create", {"sessionId": self._session_id, **elicitation}
            )
        except RpcError:
            return {}
        return _read_object(answer)

    async def _choose_answers(self, request: QuestionRequest) -> list[list[str]] | None:
        """Have the user answer the questions one after the other; None: one was declined."""
        answers: list[list[str]] = []
        for number, question in enumerate(request.questions, 1):
            position = (
                f" ({number} of {len(request.questions)})" if len(request.questions) > 1 else ""
            )
            answer = await self._choose_answer(f"{request.id}_{number}", question, position)
            if answer is None:
                return None
            answers.append(answer)
        return answers

    async def _choose_answer(
        self, call_id: str, question: QuestionInfo, position: str
    ) -> list[str] | None:
        """Have the user choose one of a question's options; None: declined.
        `position`: behind its title.
        """
        # Editors without forms can still show a permission request: its options
        # stand for the answers.
        options = [
            {"optionId": str(index), "name": escape_controls(option.label), "kind": "allow_once"}
            for index, option in enumerate(question.options)
        ]
        options.append({"optionId": _SKIP_OPTION, "name": "Do not answer", "kind": "reject_once"})
        descriptions = [
            f"{escape_controls(option.label)}: {escape_controls(option.description)}"
            for option in question.options
            if option.description
        ]
        request_fields = self._editor.version.build_permission_request(
            title=escape_controls(question.question) + position,
            details="\n".join(descriptions),
            # Rendered by the editor, as an answer is.
            diffs=(
                [make_text_content(escape_answer_controls(question.document.text))]
                if question.document
                else []
            ),
            call={"toolCallId": call_id, "kind": "other", "status": "pending"},
            directory="",
        )
        option_id = await self._choose(request_fields, options)
        return [question.options[int(option_id)].label] if option_id.isdecimal() else None

    async def _choose(self, request_fields: JSON, options: list[dict[str, str]]) -> str:
        """Return the id of the option that the user chose;
        "": none, as after an error of the editor.
        """
        params: JSON = {"sessionId": self._session_id, **request_fields, "options": options}
        try:
            answer = _read_object(
                await self._editor.connection.request("session/request_permission", params)
            )
        except RpcError:
            return ""
        outcome = _read_object(answer.get("outcome"))
        option_id = (
            str(outcome.get("optionId") or "") if outcome.get("outcome") == "selected" else ""
        )
        # An id that was not offered must not count as a permission.
        return option_id if option_id in {option["optionId"] for option in options} else ""

    async def _reply(
        self, request: PermissionRequest, reply: Reply, always: list[str] | None, scope: AlwaysScope
    ) -> None:
        # The request may have been answered elsewhere, or withdrawn.
        with suppress(OperationError):
            await self._client.call(
                PERMISSION_REPLY,
                AnswerPermission(request_id=request.id, reply=reply, always=always, scope=scope),
            )


def _describe_scope(
    request: PermissionRequest, scope: list[str], *, for_session: bool = False
) -> str:
    """Return a line on the patterns allowed from now on, or for the session."""
    return escape_controls(describe_always(replace(request, always=scope), for_session=for_session))


def _make_permission_options(always_names: dict[str, str]) -> list[dict[str, str]]:
    """Return the options of a permission request.
    `always_names`: by the ids of the kinds of "always".
    """
    return [
        {"optionId": _ONCE, "name": "Allow once", "kind": "allow_once"},
        *(
            {"optionId": key, "name": name, "kind": "allow_always"}
            for key, name in always_names.items()
        ),
        {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
    ]


def _read_object(value: Any) -> JSON:
    """Return an object that the editor sent; any other value counts as {}."""
    return value if is_object(value) else {}


def _find_page(request: QuestionRequest) -> str | None:
    """Return the web page that an MCP server wants to have opened;
    None: the request is of another kind.
    """
    question = request.questions[0]
    # The form of such a question, as `extend/mcp/server_requests.py` makes it: the address
    # describes its first option.
    if len(request.questions) > 1 or question.header != "Open" or question.custom is not False:
        return None
    # Other schemes could start programs of the user's machine.
    page = question.options[0].description if question.options else ""
    return page if page.startswith(("https://", "http://")) else None


def _build_raw_input(request: PermissionRequest) -> JSON:
    command = request.metadata.get("command")
    return {"command": command} if isinstance(command, str) else {"patterns": request.patterns}
