"""Records and events for tests of what is stored."""

from codeloop.schema.event import (
    MessageGone,
    MessageRemoved,
    MessageUpdated,
    PartGone,
    PartInfo,
    PartRemoved,
    PartUpdated,
    PermissionAnswer,
    PermissionAsked,
    PermissionReplied,
    SessionCreated,
    SessionDeleted,
    SessionUpdated,
    make_message_updated,
    make_session_created,
    make_session_deleted,
    make_session_updated,
)
from codeloop.schema.ids import new_id
from codeloop.schema.message import (
    NO_TOKENS,
    AssistantMessage,
    AssistantTime,
    Message,
    MessagePath,
    ModelRef,
    Session,
    SessionModel,
    SessionTime,
    UserMessage,
    UserTime,
)
from codeloop.schema.part import Part, TextPart
from codeloop.schema.permission import PermissionRequest, Reply

MODEL = ModelRef(provider_id="scripted", model_id="script")


def session(
    session_id: str | None = None, parent: str | None = None, title: str = "a title", at: int = 1
) -> Session:
    return Session(
        id=session_id or new_id("ses"),
        slug="quiet-river",
        project_id="global",
        directory="/p",
        title=title,
        version="1",
        parent_id=parent,
        agent="build",
        model=SessionModel(id="script", provider_id="scripted"),
        time=SessionTime(created=1, updated=at),
    )


def user(session_id: str, message_id: str | None = None, at: int = 1) -> UserMessage:
    return UserMessage(
        id=message_id or new_id("msg"),
        session_id=session_id,
        time=UserTime(created=at),
        agent="build",
        model=MODEL,
    )


def assistant(
    session_id: str, parent: str, at: int = 1, done: int | None = None
) -> AssistantMessage:
    return AssistantMessage(
        id=new_id("msg"),
        session_id=session_id,
        parent_id=parent,
        model_id="script",
        provider_id="scripted",
        mode="build",
        agent="build",
        path=MessagePath(cwd="/p", root="/p"),
        cost=0.0,
        tokens=NO_TOKENS,
        time=AssistantTime(created=at, completed=done),
    )


def text(message: Message, words: str, part_id: str | None = None) -> TextPart:
    return TextPart(
        id=part_id or new_id("prt"),
        session_id=message.session_id,
        message_id=message.id,
        text=words,
    )


def created(info: Session) -> SessionCreated:
    return make_session_created(info)


def updated(info: Session) -> SessionUpdated:
    return make_session_updated(info)


def deleted(info: Session) -> SessionDeleted:
    return make_session_deleted(info)


def said(info: Message) -> MessageUpdated:
    return make_message_updated(info)


def unsaid(info: Message) -> MessageRemoved:
    return MessageRemoved(properties=MessageGone(session_id=info.session_id, message_id=info.id))


def put(part: Part) -> PartUpdated:
    return PartUpdated(properties=PartInfo(session_id=part.session_id, part=part, time=1))


def gone(part: Part) -> PartRemoved:
    return PartRemoved(
        properties=PartGone(session_id=part.session_id, message_id=part.message_id, part_id=part.id)
    )


def question(session_id: str) -> PermissionRequest:
    return PermissionRequest(
        id=new_id("per"),
        session_id=session_id,
        permission="bash",
        patterns=["ls"],
        metadata={},
        always=["ls *"],
    )


def asked(request: PermissionRequest) -> PermissionAsked:
    return PermissionAsked(properties=request)


def replied(request: PermissionRequest, reply: Reply) -> PermissionReplied:
    return PermissionReplied(
        properties=PermissionAnswer(
            session_id=request.session_id, request_id=request.id, reply=reply
        )
    )
