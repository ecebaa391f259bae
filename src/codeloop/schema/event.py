"""Events: a change of the stored state ("this part is now X"), or something that is only live.

A stored event carries the whole new value, so applying one is an upsert by id, and applying it
twice changes nothing. A LiveEvent (`schema.live_events`) is never stored: a client that missed one
learns the state from the next stored event, or by asking.
"""

from typing import Any

import msgspec

from codeloop.schema.ids import now_ms
from codeloop.schema.live_events import IdentifiedEvent, LiveEvent
from codeloop.schema.message import Message, Session, Todo
from codeloop.schema.part import Part
from codeloop.schema.permission import AlwaysScope, PermissionRequest, Reply
from codeloop.schema.question import QuestionRequest
from codeloop.schema.wire import Wire


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
    """Properties of `permission.replied`; `message`: the user's words with a rejection;
    `scope`: of an "always".
    """

    session_id: str
    request_id: str
    reply: Reply
    message: str | None = None
    scope: AlwaysScope = "directory"


class QuestionAnswers(Wire):
    """Properties of `question.replied`: for each question the labels or free
    texts that were chosen.
    """

    session_id: str
    request_id: str
    answers: list[list[str]]


class QuestionRefusal(Wire):
    """Properties of `question.rejected`; `message`: why, when there is more to say than no."""

    session_id: str
    request_id: str
    message: str | None = None


class SessionCreated(IdentifiedEvent, tag="session.created"):
    """A session was created."""

    properties: SessionInfo


class SessionUpdated(IdentifiedEvent, tag="session.updated"):
    """Title, cost, agent, model, revert point or times of a session changed."""

    properties: SessionInfo


class SessionDeleted(IdentifiedEvent, tag="session.deleted"):
    """A session is gone, with its messages."""

    properties: SessionInfo


class MessageUpdated(IdentifiedEvent, tag="message.updated"):
    """A message was created or changed."""

    properties: MessageInfo


class MessageRemoved(IdentifiedEvent, tag="message.removed"):
    """A message and its parts are gone."""

    properties: MessageGone


class PartUpdated(IdentifiedEvent, tag="message.part.updated"):
    """A part was created or changed."""

    properties: PartInfo


class PartRemoved(IdentifiedEvent, tag="message.part.removed"):
    """A part is gone."""

    properties: PartGone


class TodoUpdated(IdentifiedEvent, tag="todo.updated"):
    """The task list was changed."""

    properties: Todos


class PermissionAsked(IdentifiedEvent, tag="permission.asked"):
    """A tool is waiting for permission."""

    properties: PermissionRequest


class PermissionReplied(IdentifiedEvent, tag="permission.replied"):
    """Somebody answered."""

    properties: PermissionAnswer


class QuestionAsked(IdentifiedEvent, tag="question.asked"):
    """The model asks the user a question."""

    properties: QuestionRequest


class QuestionReplied(IdentifiedEvent, tag="question.replied"):
    """Somebody answered."""

    properties: QuestionAnswers


class QuestionRejected(IdentifiedEvent, tag="question.rejected"):
    """The user refused to answer, or nobody can."""

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


Event = StoredEvent | LiveEvent


class StampedEvent(msgspec.Struct, frozen=True):
    """An event as a follower sees it; `seq` orders the stored ones, a live one has none.

    `directory`: of a live event of no session (absolute); None: that of its session.
    """

    seq: int | None
    event: Event
    directory: str | None = None


def get_session_id(event: Event) -> str | None:
    """Return the id of the session that an event belongs to;
    None: it belongs to a directory or to the server.
    """
    properties: Any = event.properties
    return getattr(properties, "session_id", None)


def make_session_created(session: Session) -> SessionCreated:
    """Make the event of a new session."""
    return SessionCreated(properties=SessionInfo(session_id=session.id, info=session))


def make_session_deleted(session: Session) -> SessionDeleted:
    """Make the event of a deleted session."""
    return SessionDeleted(properties=SessionInfo(session_id=session.id, info=session))


def make_session_updated(session: Session) -> SessionUpdated:
    """Make the event of a changed session."""
    return SessionUpdated(properties=SessionInfo(session_id=session.id, info=session))


def make_message_updated(message: Message) -> MessageUpdated:
    """Make the event of a new or changed message."""
    return MessageUpdated(properties=MessageInfo(session_id=message.session_id, info=message))


def make_part_updated(part: Part) -> PartUpdated:
    """Make the event of a new or changed part."""
    return PartUpdated(properties=PartInfo(session_id=part.session_id, part=part, time=now_ms()))
