"""Handler that prepares a session for sharing as a page: only the parts that its readers see,
and no secrets.
"""

import asyncio
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import takewhile
from typing import TypeVar

import msgspec

from codeloop.app.project import Project
from codeloop.kit.text.secrets import SecretHider
from codeloop.model.credentials.environment import is_key_variable
from codeloop.model.errors import ModelUnavailable
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.api.session_reports import ShareableSession, SharedSession
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import (
    MessageAbortedError,
    SessionNotFound,
    UnknownData,
    UnknownError,
    get_error_message,
)
from codeloop.schema.message import Message, MessagePath, Session, UserMessage
from codeloop.schema.part import (
    CompactionPart,
    FilePart,
    Part,
    PatchPart,
    ReasoningPart,
    SubtaskPart,
    TextPart,
    ToolPart,
    ToolState,
    ToolStateCompleted,
    ToolStateError,
    ToolStateRunning,
    remove_model_notes,
)
from codeloop.schema.wire import JSON, Wire, replace

_IMAGE_DATA_URL = r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+"
_SENSITIVE_NAME = r"(?i)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|_PAT|_PWD)$"
"""The end of the name of a variable whose value is a secret."""
_SHOWN_METADATA = (
    "answers",
    "count",
    "diff",
    "exists",
    "exit",
    "filediff",
    "matches",
    "output",
    "sessionId",
)
"""The keys of a call's metadata that the page shows;
other metadata may have whole files, or notes for the model.
"""
_SHOWN_DIFF_FIELDS = ("file", "patch", "additions", "deletions")
_WireT = TypeVar("_WireT", bound=Wire)


async def make_shareable(project: Project, args: SessionId) -> ShareableSession:
    """Return a session with its subagents' sessions, without secrets. Raises SessionNotFound."""
    session = project.store.find_session(args.session_id)
    if session is None:
        raise SessionNotFound(args.session_id)
    conversations = [
        (each, _list_visible(project, each)) for each in project.store.list_family(session)
    ]
    cleaner = _SessionCleaner(
        SecretHider(_list_secrets(project)), project.settings.environment.get("HOME", "")
    )
    return await asyncio.to_thread(cleaner.clean, conversations)


def _list_secrets(project: Project) -> set[str]:
    """Return the known secrets: stored and configured keys,
    and the values of variables that are named like secrets.
    """
    environment, own_variables = (
        project.settings.environment,
        project.providers.make_child_environment(),
    )
    secrets = {
        value
        for name, value in environment.items()
        if re.search(_SENSITIVE_NAME, name) or (name not in own_variables and is_key_variable(name))
    }
    # The file of keys may be unreadable.
    with suppress(ModelUnavailable):
        secrets |= project.providers.credentials.list_secrets()
    return secrets | {
        str(row.options.get("apiKey") or "") for row in project.settings.config.provider.values()
    }


def _list_visible(project: Project, session: Session) -> list[MessageWithParts]:
    """Return the messages that are not undone."""
    entries = project.store.read_conversation(session.id).entries
    end = session.revert.message_id if session.revert is not None else ""
    return [
        MessageWithParts(info=entry.info, parts=list(entry.parts))
        for entry in takewhile(lambda entry: entry.info.id != end, entries)
    ]


class _SessionCleaner:
    """Removes secrets and private paths from sessions. `home`: the home directory, "" for none."""

    def __init__(self, hider: SecretHider, home: str) -> None:
        self._hider = hider
        # A home of `/` is in every path, so it is left. Texts are searched too: the home directory
        # has the user's name. `/home/ann` must not match in `/home/anna`.
        self._home_pattern = re.compile(rf"{re.escape(home)}(?![\w.-])") if len(home) > 1 else None

    def clean(self, sessions: list[tuple[Session, list[MessageWithParts]]]) -> ShareableSession:
        """Return the sessions without secrets. Blocks."""
        shared = [
            SharedSession(
                info=self._hide(_strip_session(session)),
                messages=[self._clean_message(each) for each in messages],
            )
            for session, messages in sessions
        ]
        return ShareableSession(sessions=shared, hidden=self._hider.count)

    def _clean_message(self, message: MessageWithParts) -> MessageWithParts:
        # The data of an image is not text: the search for secrets could break it,
        # so it is put back afterwards.
        parts = [
            self._hide(replace(part, url="")) if isinstance(part, FilePart) else self._hide(part)
            for part in _list_shareable_parts(message.parts)
        ]
        urls = {part.id: part.url for part in message.parts if isinstance(part, FilePart)}
        shareable = [
            replace(part, url=urls[part.id])
            if isinstance(part, FilePart) and re.fullmatch(_IMAGE_DATA_URL, urls[part.id])
            else part
            for part in parts
        ]
        return MessageWithParts(info=self._hide(_strip_message(message.info)), parts=shareable)

    def _hide(self, value: _WireT) -> _WireT:
        data = msgspec.to_builtins(value)
        if self._home_pattern is not None:
            data = msgspec.json.decode(
                self._home_pattern.sub("~", msgspec.json.encode(data).decode())
            )
        return msgspec.convert(self._hider.hide_in_json(data), type(value))


def _strip_session(session: Session) -> Session:
    return replace(
        session, path=None, summary=None, share=None, metadata=None, permission=None, revert=None
    )


def _strip_message(info: Message) -> Message:
    if isinstance(info, UserMessage):
        return UserMessage(
            id=info.id,
            session_id=info.session_id,
            time=info.time,
            agent=info.agent,
            model=info.model,
        )
    error = info.error
    if error is not None and not isinstance(error, MessageAbortedError):
        error = UnknownError(data=UnknownData(message=get_error_message(error)))
    return replace(info, path=MessagePath(cwd="", root=""), structured=None, error=error)


def _list_shareable_parts(parts: list[Part]) -> Iterator[Part]:
    """Yield the parts that readers see, without the fields that they don't see."""
    for part in parts:
        match part:
            case TextPart() if not (part.synthetic or part.ignored):
                yield replace(part, metadata=None)
            case ReasoningPart():
                yield replace(part, metadata=None)
            case FilePart():
                yield replace(part, source=None)
            case ToolPart():
                yield replace(part, metadata=None, state=_strip_state(part.state))
            case PatchPart():
                yield replace(part, hash="")
            case SubtaskPart():
                yield replace(part, prompt="")
            case CompactionPart():
                yield part
            case _:
                pass


def _strip_state(state: ToolState) -> ToolState:
    match state:
        case ToolStateCompleted():
            return replace(
                state,
                output=state.for_user,
                metadata=_strip_metadata(state.metadata),
                attachments=None,
            )
        case ToolStateRunning() | ToolStateError():
            return replace(state, metadata=_strip_metadata(state.metadata or {}))
        case _:
            return replace(state, raw="")


def _strip_metadata(metadata: JSON) -> JSON:
    details = {name: metadata[name] for name in _SHOWN_METADATA if name in metadata}
    if isinstance(output := details.get("output"), str):
        details["output"] = remove_model_notes(output, metadata)
    if isinstance(diff := details.get("filediff"), dict):
        details["filediff"] = {name: diff[name] for name in _SHOWN_DIFF_FIELDS if name in diff}
        if "patch" in diff:
            details.pop("diff", None)
    return details
