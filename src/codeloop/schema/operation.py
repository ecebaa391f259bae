"""The table of everything a client can ask for: routes, documents and clients all derive from it."""

from typing import Any, Literal

from msgspec import Struct

from codeloop.schema.agent import Agent
from codeloop.schema.command import Command
from codeloop.schema.event import Status
from codeloop.schema.message import Message, ModelRef, Session, SessionModel, Todo
from codeloop.schema.part import FilePartSource, Part, SourceText
from codeloop.schema.question import QuestionRequest
from codeloop.schema.rules import PermissionRequest, Reply, Rule
from codeloop.schema.sessions import (
    AskStats,
    ForkSession,
    ImportedSession,
    ImportSession,
    ListEverything,
    ListMessages,
    ListSessions,
    OfOneMessage,
    OfOnePart,
    OfOneSession,
    SearchResult,
    SearchSessions,
    Stats,
    UpdatePart,
    UpdateSession,
)
from codeloop.schema.skill import Skill
from codeloop.schema.wire import JSON, Wire


class TextInput(Wire, tag_field="type", tag="text"):
    """Text of a prompt."""

    text: str
    id: str | None = None
    synthetic: bool | None = None
    ignored: bool | None = None
    metadata: JSON | None = None


class FileInput(Wire, tag_field="type", tag="file"):
    """An attachment of a prompt: `data:` or `file://` URL."""

    mime: str
    url: str
    id: str | None = None
    filename: str | None = None
    source: FilePartSource | None = None


class AgentInput(Wire, tag_field="type", tag="agent"):
    """A mention of an agent in a prompt."""

    name: str
    id: str | None = None
    source: SourceText | None = None


class SubtaskInput(Wire, tag_field="type", tag="subtask"):
    """Work that is handed to a subagent as it is, before the model is asked."""

    prompt: str
    description: str
    agent: str
    id: str | None = None
    model: ModelRef | None = None
    command: str | None = None


PartInput = TextInput | FileInput | AgentInput | SubtaskInput


class CreateSession(Wire):
    """Makes a session; everything may be left out."""

    parent_id: str | None = None
    title: str | None = None
    agent: str | None = None
    model: SessionModel | None = None
    metadata: JSON | None = None
    permission: list[Rule] | None = None


class RunLimits(Wire):
    """What bounds the turn: requests to the model, dollars, tokens."""

    steps: int | None = None
    cost: float | None = None
    tokens: int | None = None
    compact: bool = True
    """False: never compact by itself, stop when the context is full."""
    attended: bool = True
    """False: nobody can answer, so the model is not offered to ask."""


class Summarize(Wire):
    """Puts a summary in the place of the conversation; nothing is deleted."""

    session_id: str
    provider_id: str
    model_id: str
    auto: bool = False


class Prompt(Wire):
    """Says something to a session. Model and agent: as given, else the session's last, else the configured ones."""

    session_id: str
    parts: list[PartInput]
    message_id: str | None = None
    model: ModelRef | None = None
    agent: str | None = None
    variant: str | None = None
    no_reply: bool = False
    system: str | None = None
    tools: dict[str, bool] | None = None
    format: JSON | None = None
    limits: RunLimits | None = None


class RunCommand(Wire):
    """Runs a command by name. `arguments`: what was typed after it; `model`: `provider/model`."""

    session_id: str
    command: str
    arguments: str = ""
    agent: str | None = None
    model: str | None = None
    variant: str | None = None
    message_id: str | None = None
    parts: list[FileInput] = []
    limits: RunLimits | None = None


class AnswerPermission(Wire):
    """Answers a question; `message` goes to the model with a rejection, and the turn then goes on."""

    request_id: str
    reply: Reply
    message: str | None = None


class AnswerQuestion(Wire):
    """Answers a question: for each of its questions the labels or free texts that were chosen."""

    request_id: str
    answers: list[list[str]]


class RejectQuestion(Wire):
    """Refuses to answer; with `message` the turn goes on."""

    request_id: str
    message: str | None = None


class RevertSession(Wire):
    """Takes a session back to before a message, or to before the step that holds a part of it.

    `dry_run`: only tell what would become of the files.
    """

    session_id: str
    message_id: str
    part_id: str | None = None
    dry_run: bool = False


class UnrevertSession(OfOneSession):
    """Takes a reverted session forward again, with its files. `dry_run` as in RevertSession."""

    dry_run: bool = False


class FileConflict(Wire):
    """A file (relative to the work tree) that was left as it is, and why."""

    path: str
    reason: str


class FilesOutcome(Wire):
    """What became of the files: put back, already as wanted, left alone."""

    restored: list[str]
    unchanged: list[str]
    conflicts: list[FileConflict]


class RevertedSession(Session):
    """The session, and (ours, not the reference's) what became of its files. Only ever an answer; never stored."""

    outcome: FilesOutcome | None = None


class NoArguments(Wire):
    """Takes nothing."""


class TurnEnd(Wire):
    """Why a turn ended; `message` says it in a line."""

    reason: str
    message: str = ""


class MessageWithParts(Wire):
    """A message and its parts; after a prompt also how the turn ended."""

    info: Message
    parts: list[Part]
    stop: TurnEnd | None = None


class Operation(Struct, frozen=True):
    """One row: fields of `takes` that are named in `path` come from there, the others from the query or the body.

    The body of `part.update` is its field `part` alone.
    """

    id: str
    method: Literal["GET", "POST", "PATCH", "PUT", "DELETE"]
    path: str
    takes: type[Wire]
    gives: Any


SESSION_CREATE = Operation("session.create", "POST", "/session", CreateSession, Session)
SESSION_LIST = Operation("session.list", "GET", "/session", ListSessions, list[Session])
SESSION_STATUS = Operation("session.status", "GET", "/session/status", NoArguments, dict[str, Status])
SESSION_SEARCH = Operation("session.search", "GET", "/session/search", SearchSessions, SearchResult)
SESSION_EVERYTHING = Operation("session.everything", "GET", "/session/everything", ListEverything, list[Session])
SESSION_STATS = Operation("session.stats", "GET", "/session/stats", AskStats, Stats)
SESSION_IMPORT = Operation("session.import", "POST", "/session/import", ImportSession, ImportedSession)
SESSION_GET = Operation("session.get", "GET", "/session/{sessionID}", OfOneSession, Session)
SESSION_UPDATE = Operation("session.update", "PATCH", "/session/{sessionID}", UpdateSession, Session)
SESSION_DELETE = Operation("session.delete", "DELETE", "/session/{sessionID}", OfOneSession, bool)
SESSION_CHILDREN = Operation("session.children", "GET", "/session/{sessionID}/children", OfOneSession, list[Session])
SESSION_TODO = Operation("session.todo", "GET", "/session/{sessionID}/todo", OfOneSession, list[Todo])
SESSION_FORK = Operation("session.fork", "POST", "/session/{sessionID}/fork", ForkSession, Session)
SESSION_QUEUED = Operation("session.queued", "GET", "/session/{sessionID}/queued", OfOneSession, list[MessageWithParts])
SESSION_MESSAGES = Operation(
    "session.messages", "GET", "/session/{sessionID}/message", ListMessages, list[MessageWithParts]
)
MESSAGE_GET = Operation(
    "session.message", "GET", "/session/{sessionID}/message/{messageID}", OfOneMessage, MessageWithParts
)
MESSAGE_DELETE = Operation(
    "session.deleteMessage", "DELETE", "/session/{sessionID}/message/{messageID}", OfOneMessage, bool
)
PART_UPDATE = Operation(
    "part.update", "PATCH", "/session/{sessionID}/message/{messageID}/part/{partID}", UpdatePart, Part
)
PART_DELETE = Operation(
    "part.delete", "DELETE", "/session/{sessionID}/message/{messageID}/part/{partID}", OfOnePart, bool
)
PROMPT = Operation("session.prompt", "POST", "/session/{sessionID}/message", Prompt, MessageWithParts)
PROMPT_ASYNC = Operation("session.prompt_async", "POST", "/session/{sessionID}/prompt_async", Prompt, None)
COMMAND = Operation("session.command", "POST", "/session/{sessionID}/command", RunCommand, MessageWithParts)
SUMMARIZE = Operation("session.summarize", "POST", "/session/{sessionID}/summarize", Summarize, bool)
ABORT = Operation("session.abort", "POST", "/session/{sessionID}/abort", OfOneSession, bool)
PERMISSION_LIST = Operation("permission.list", "GET", "/permission", NoArguments, list[PermissionRequest])
PERMISSION_REPLY = Operation("permission.reply", "POST", "/permission/{requestID}/reply", AnswerPermission, bool)
QUESTION_LIST = Operation("question.list", "GET", "/question", NoArguments, list[QuestionRequest])
QUESTION_REPLY = Operation("question.reply", "POST", "/question/{requestID}/reply", AnswerQuestion, bool)
QUESTION_REJECT = Operation("question.reject", "POST", "/question/{requestID}/reject", RejectQuestion, bool)
AGENT_LIST = Operation("app.agents", "GET", "/agent", NoArguments, list[Agent])
COMMAND_LIST = Operation("command.list", "GET", "/command", NoArguments, list[Command])
SKILL_LIST = Operation("app.skills", "GET", "/skill", NoArguments, list[Skill])
SESSION_REVERT = Operation("session.revert", "POST", "/session/{sessionID}/revert", RevertSession, RevertedSession)
SESSION_UNREVERT = Operation(
    "session.unrevert", "POST", "/session/{sessionID}/unrevert", UnrevertSession, RevertedSession
)

OPERATIONS: tuple[Operation, ...] = (
    SESSION_CREATE,
    SESSION_LIST,
    SESSION_STATUS,
    SESSION_SEARCH,
    SESSION_EVERYTHING,
    SESSION_STATS,
    SESSION_IMPORT,
    SESSION_GET,
    SESSION_UPDATE,
    SESSION_DELETE,
    SESSION_CHILDREN,
    SESSION_TODO,
    SESSION_FORK,
    SESSION_QUEUED,
    SESSION_MESSAGES,
    MESSAGE_GET,
    MESSAGE_DELETE,
    PART_UPDATE,
    PART_DELETE,
    PROMPT,
    PROMPT_ASYNC,
    COMMAND,
    SUMMARIZE,
    ABORT,
    SESSION_REVERT,
    SESSION_UNREVERT,
    PERMISSION_LIST,
    PERMISSION_REPLY,
    QUESTION_LIST,
    QUESTION_REPLY,
    QUESTION_REJECT,
    AGENT_LIST,
    COMMAND_LIST,
    SKILL_LIST,
)
