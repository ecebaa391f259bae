"""Events: a change of the stored state ("this part is now X"), or something that is only live.

A stored event carries the whole new value, so applying one is an upsert by id, and applying it twice changes
nothing. A LiveEvent is never stored: a client that missed one sees the same in the next stored event.
"""

from typing import Any, Literal

import msgspec

from codeloop.schema.errors import MessageError
from codeloop.schema.ids import new_id
from codeloop.schema.message import FileDiff, Message, Session, Todo
from codeloop.schema.part import Part
from codeloop.schema.question import QuestionRequest
from codeloop.schema.rules import PermissionRequest, Reply
from codeloop.schema.wire import Wire


def _event_id() -> str:
    return new_id("evt")


class SessionInfo(Wire):
    """Properties of the events that carry a whole session."""

    session_id: str
    info: Session


class MessageInfo(Wire):
    """Properties of `message.updated`."""

    session_id: str
    info: Message


class MessageGone(Wire):
    """Properties of `message.removed`."""

    session_id: str
    message_id: str


class PartInfo(Wire):
    """Properties of `message.part.updated`; `time` in ms since the epoch."""

    session_id: str
    part: Part
    time: int


class PartGone(Wire):
    """Properties of `message.part.removed`."""

    session_id: str
    message_id: str
    part_id: str


class Todos(Wire):
    """Properties of `todo.updated`."""

    session_id: str
    todos: list[Todo]


class PermissionAnswer(Wire):
    """Properties of `permission.replied`; `message`: what the person said with a rejection."""

    session_id: str
    request_id: str
    reply: Reply
    message: str | None = None


class QuestionAnswers(Wire):
    """Properties of `question.replied`: for each question the labels or free texts that were chosen."""

    session_id: str
    request_id: str
    answers: list[list[str]]


class QuestionRefusal(Wire):
    """Properties of `question.rejected`; `message`: why, when there is more to say than no."""

    session_id: str
    request_id: str
    message: str | None = None


class ExecutedCommand(Wire):
    """Properties of `command.executed`; `message_id`: the last answer."""

    name: str
    session_id: str
    arguments: str
    message_id: str


class Delta(Wire):
    """Properties of `message.part.delta`."""

    session_id: str
    message_id: str
    part_id: str
    field: Literal["text"]
    delta: str


class Idle(Wire, tag_field="type", tag="idle"):
    """Nothing runs."""


class Busy(Wire, tag_field="type", tag="busy"):
    """A turn runs."""


class Retry(Wire, tag_field="type", tag="retry"):
    """A request is about to be tried again at `next` (ms since the epoch)."""

    attempt: int
    message: str
    next: int


Status = Idle | Busy | Retry


class SessionState(Wire):
    """Properties of `session.status`."""

    session_id: str
    status: Status


class OfSession(Wire):
    """Properties of events that only name a session."""

    session_id: str


class SessionFailure(Wire):
    """Properties of `session.error`."""

    session_id: str
    error: MessageError


class SessionDiffs(Wire):
    """Properties of `session.diff`."""

    session_id: str
    diff: list[FileDiff]


class FilePath(Wire):
    """Properties of `file.edited`; absolute."""

    file: str


class Toast(Wire):
    """Properties of `tui.toast.show`: something to tell the person that is no part of the conversation."""

    message: str
    variant: Literal["info", "success", "warning", "error"]
    title: str | None = None
    duration: int | None = None


class EventId(Wire, kw_only=True, tag_field="type"):
    """What every event has."""

    id: str = msgspec.field(default_factory=_event_id)


class SessionCreated(EventId, tag="session.created"):
    """A session came to be."""

    properties: SessionInfo


class SessionUpdated(EventId, tag="session.updated"):
    """Title, cost, agent, model, revert point or times of a session changed."""

    properties: SessionInfo


class SessionDeleted(EventId, tag="session.deleted"):
    """A session is gone, with its messages."""

    properties: SessionInfo


class MessageUpdated(EventId, tag="message.updated"):
    """A message is now this."""

    properties: MessageInfo


class MessageRemoved(EventId, tag="message.removed"):
    """A message and its parts are gone."""

    properties: MessageGone


class PartUpdated(EventId, tag="message.part.updated"):
    """A part is now this."""

    properties: PartInfo


class PartRemoved(EventId, tag="message.part.removed"):
    """A part is gone."""

    properties: PartGone


class TodoUpdated(EventId, tag="todo.updated"):
    """The task list is now this."""

    properties: Todos


class PermissionAsked(EventId, tag="permission.asked"):
    """A tool waits for leave."""

    properties: PermissionRequest


class PermissionReplied(EventId, tag="permission.replied"):
    """Somebody answered."""

    properties: PermissionAnswer


class QuestionAsked(EventId, tag="question.asked"):
    """The model asks a person something."""

    properties: QuestionRequest


class QuestionReplied(EventId, tag="question.replied"):
    """Somebody answered."""

    properties: QuestionAnswers


class QuestionRejected(EventId, tag="question.rejected"):
    """Somebody would not answer, or nobody can."""

    properties: QuestionRefusal


StoredEvent = (
    SessionCreated
    | SessionUpdated
    | SessionDeleted
    | MessageUpdated
    | MessageRemoved
    | PartUpdated
    | PartRemoved
    | TodoUpdated
    | PermissionAsked
    | PermissionReplied
    | QuestionAsked
    | QuestionReplied
    | QuestionRejected
)


class PartDelta(EventId, tag="message.part.delta"):
    """More text of a text or reasoning part."""

    properties: Delta


class StatusChanged(EventId, tag="session.status"):
    """A session is idle, busy or waiting to try again."""

    properties: SessionState


class SessionIdle(EventId, tag="session.idle"):
    """A turn is over."""

    properties: OfSession


class SessionCompacted(EventId, tag="session.compacted"):
    """From here on requests hold a summary in place of what was before."""

    properties: OfSession


class SessionErrored(EventId, tag="session.error"):
    """A turn failed; the same error is stored in its message."""

    properties: SessionFailure


class SessionDiff(EventId, tag="session.diff"):
    """What a revert has undone."""

    properties: SessionDiffs


class ToastShown(EventId, tag="tui.toast.show"):
    """The person is told something."""

    properties: Toast


class FileEdited(EventId, tag="file.edited"):
    """A tool changed a file."""

    properties: FilePath


class CommandExecuted(EventId, tag="command.executed"):
    """A command's turn is over."""

    properties: ExecutedCommand


LiveEvent = (
    PartDelta
    | StatusChanged
    | SessionIdle
    | SessionCompacted
    | SessionErrored
    | SessionDiff
    | FileEdited
    | ToastShown
    | CommandExecuted
)
Event = StoredEvent | LiveEvent


class Stamped(msgspec.Struct, frozen=True):
    """An event as a follower sees it; `seq` orders the stored ones, a live one has none."""

    seq: int | None
    event: Event


def session_of(event: Event) -> str | None:
    """Give the id of the session that an event belongs to."""
    properties: Any = event.properties
    return getattr(properties, "session_id", None)
