"""What a server asks of us while it works on a call: a form, a model's answer, the project's place. Uses `mcp`."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from codeloop.extend.mcp.asked.form import SecretAsked, answers_of, questions_of
from codeloop.kit.terminal_text import inert
from codeloop.permission.gate import Denied, Rejected
from codeloop.schema.permission import NOBODY, Need
from codeloop.schema.question import QuestionInfo, QuestionOption
from codeloop.schema.wire import JSON
from codeloop.tool.tool import Subtask, ToolContext, ToolFailure
from codeloop.tool.toolbox import Notices
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

SAMPLING = "mcp_sampling"
"""The permission for a server's use of the model."""
_OPENED, _NOT = "I have opened it", "No"


class Heard(Struct, frozen=True):
    """Who hears that a server's lists have changed, and that a resource has."""

    lists: Callable[[], None]
    resource: Callable[[str], None]


class ServerRequests:
    """Answers for one server, in the name of the call that is under way; the latest one where there are several."""

    def __init__(self, server: str, root: Path, log: ProgramLog, heard: Heard) -> None:
        self._server = server
        self._root = root
        self._log = log
        self._heard = heard
        self._calls: list[ToolContext] = []
        self._readers: dict[str, dict[str, Notices]] = {}
        self._callers: dict[str, Notices] = {}

    def watch(self, uri: str, ctx: ToolContext) -> None:
        """Remember who has read a resource: that session is told when the server says that it has changed."""
        self._readers.setdefault(uri, {})[ctx.session_id] = ctx.workspace.shared(Notices)

    def _updated(self, uri: str) -> None:
        told = (
            f"The MCP resource {self._server}:{inert(uri)} has changed since you read it; mcp_resource reads it anew."
        )
        for session_id, notices in self._readers.get(uri, {}).items():
            notices.add(session_id, told)
        self._heard.resource(uri)

    def tell(self, line: str) -> None:
        """Notify the sessions that have called the server; a call that is under way finds out by itself."""
        if not self._calls:
            for session_id, notices in self._callers.items():
                notices.add(session_id, line)

    @contextmanager
    def during(self, ctx: ToolContext | None) -> Generator[None]:
        """Answer in the name of this call while it is under way."""
        if ctx is None:
            yield
            return
        self._calls.append(ctx)
        self._callers[ctx.session_id] = ctx.workspace.shared(Notices)
        try:
            yield
        finally:
            self._calls.remove(ctx)

    def callbacks(self) -> JSON:
        """Return the callbacks by the names that the package's client knows them by."""
        return {
            "elicitation_callback": self._elicit,
            "sampling_callback": self._sample,
            "list_roots_callback": self._roots,
            "logging_callback": self._note,
            "message_handler": self._hear,
        }

    async def _hear(self, message: Any) -> None:
        method = getattr(message, "method", "")
        if isinstance(message, Exception):
            self._log.note(f"[{message}]")
        elif method.endswith("list_changed"):
            self._heard.lists()
        elif method == "notifications/resources/updated":
            self._updated(str(message.params.uri))
        await asyncio.sleep(0)

    async def _note(self, params: "LoggingMessageNotificationParams") -> None:
        said = params.data if isinstance(params.data, str) else msgspec.json.encode(params.data).decode()
        self._log.note(f"[{params.level}] {said}")

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
        who = f"The MCP server {self._server} asks: {inert(params.message)}"
        try:
            if isinstance(params, ElicitRequestURLParams):
                opened = QuestionOption(label=_OPENED, description=inert(params.url))
                refused = QuestionOption(label=_NOT, description="The server is told so.")
                asked = QuestionInfo(
                    question=f"{who}\nOpen {inert(params.url)}", header="Open", options=[opened, refused], custom=False
                )
                chosen = await ctx.session.answers([asked], need)
                return ElicitResult(action="accept" if chosen[0][:1] == [_OPENED] else "decline")
            schema: JSON = params.requested_schema
            questions = questions_of(schema, who, params.message)
            content = answers_of(schema, await ctx.session.answers(questions, need))
        except Rejected as error:
            if error.message != NOBODY:
                return ElicitResult(action="decline")
            return self._refuse_form(ctx, "nobody is there to fill it in")
        except SecretAsked as error:
            return self._refuse_form(ctx, f"{error}, and those are never given by forms")
        return ElicitResult(action="accept", content=content) if content is not None else ElicitResult(action="cancel")

    def _refuse_form(self, ctx: ToolContext, why: str) -> "ElicitResult":
        """Refuse a form that no user has seen: the server and the model are not told that one declined it."""
        from mcp_types import ElicitResult

        self._log.note(f"[refused a form: {why}]")
        ctx.report(metadata={"declined": why})
        line = f"A form of the MCP server {self._server} was refused by codeloop, not by the user: {why}."
        ctx.workspace.shared(Notices).add(ctx.session_id, line)
        return ElicitResult(action="cancel")

    async def _sample(
        self, _context: "ClientRequestContext", params: "CreateMessageRequestParams"
    ) -> "CreateMessageResult | ErrorData":
        """Have the session's model answer: in a session of its own without tools, which the call's limits bind."""
        from mcp_types import INVALID_REQUEST, CreateMessageResult, ErrorData, TextContent

        ctx = self._calls[-1] if self._calls else None
        if ctx is None:
            return ErrorData(code=INVALID_REQUEST, message="No call is under way that this could be for.")
        prompt = _prompt(params)
        need = Need(permission=SAMPLING, patterns=(self._server,), metadata={"input": {"prompt": prompt}})
        try:
            await ctx.ask(need)
            done = await ctx.spawn(Subtask(agent="sampling", description=f"Asked by {self._server}", prompt=prompt))
        except (Denied, Rejected, ToolFailure) as error:
            return ErrorData(code=INVALID_REQUEST, message=f"It was not done. {error}")
        model: JSON = done.metadata.get("model") or {}
        content = TextContent(type="text", text=done.text)
        return CreateMessageResult(role="assistant", content=content, model=model.get("modelID", "unknown"))


def _prompt(params: "CreateMessageRequestParams") -> str:
    """Return a request for a model as one prompt."""
    lines = [f"<system>\n{params.system_prompt}\n</system>"] if params.system_prompt else []
    for message in params.messages:
        texts = [str(getattr(block, "text", f"({block.type} left out)")) for block in message.content_as_list]
        lines.append(f"<{message.role}>\n{chr(10).join(texts)}\n</{message.role}>")
    return "\n".join(lines)
