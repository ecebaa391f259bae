"""The only place where our parts become model messages. Pure; repairs; an entry always yields the same messages.

It guarantees: every call has exactly one result, right after the message that made it; no message is empty; arguments
are whole JSON objects; thinking is sent back only when it is complete; what a model can't read is named in its place.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from urllib.parse import unquote_to_bytes

import msgspec

from codeloop.agent.moves import is_open
from codeloop.kit.text.terminal_output import to_plain_text
from codeloop.model.chat import (
    AssistantModelMessage,
    CallPiece,
    ImagePiece,
    ModelInfo,
    ModelMessage,
    ReasoningPiece,
    ResultPiece,
    TextPiece,
    ToolModelMessage,
    UserModelMessage,
)
from codeloop.schema.message import AssistantMessage, UserMessage
from codeloop.schema.part import (
    FilePart,
    Part,
    ReasoningPart,
    SubtaskPart,
    TextPart,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
)
from codeloop.store.conversation import Entry

PENDING = "Interrupted: this call has no result."
LEFT_OUT = "[The output was left out to save room. Make the call again if you need it.]"
BROKEN_OFF = "[interrupted]"
"""Marks an incomplete answer."""
ATTACHED = "Attached by the tool {name}:"


CHANGED_FILES = "changedFiles"
"""Metadata key of an answer's part: the files that others changed since the session read them."""
CHANGED = (
    "<system-reminder>Changed since you read them, not by you: {names}. Read again what you need.</system-reminder>"
)
_NAMED = 20
NONE: Mapping[str, str] = MappingProxyType({})


def project(entries: Sequence[Entry], info: ModelInfo, notes: Mapping[str, str] = NONE) -> tuple[ModelMessage, ...]:
    """Return the messages of a conversation for a model, oldest first."""
    return tuple(message for entry in entries for message in make_model_messages(entry, info, notes))


def make_model_messages(entry: Entry, info: ModelInfo, notes: Mapping[str, str] = NONE) -> tuple[ModelMessage, ...]:
    """Return the messages of one entry: a user's one, or an assistant's with the results of its calls.

    `notes`: by the id of a tool part, the line that replaces its output.
    """
    match entry.info:
        case UserMessage():
            content = tuple(piece for part in entry.parts for piece in _user_pieces(part, info))
            return (UserModelMessage(content),) if content else ()
        case AssistantMessage() as message:
            return _make_assistant_messages(message, entry, info, notes)


def _make_assistant_messages(
    message: AssistantMessage, entry: Entry, info: ModelInfo, notes: Mapping[str, str]
) -> tuple[ModelMessage, ...]:
    broken = is_open(entry) or message.error is not None
    calls = _distinct([part for part in entry.parts if isinstance(part, ToolPart)])
    waiting = iter(calls)
    # Services check that thinking, text and calls come back in the order in which they came.
    pieces = tuple(piece for part in entry.parts for piece in _assistant_pieces(part, waiting, broken=broken))
    file_notes = tuple(
        note for part in entry.parts if isinstance(part, TextPart) for note in describe_changed_files(part)
    )
    if not calls and not any(isinstance(piece, TextPiece) for piece in pieces):
        return file_notes
    if broken and not calls:
        pieces = (*pieces, TextPiece(BROKEN_OFF))
    messages: list[ModelMessage] = [
        *file_notes,
        AssistantModelMessage(pieces, f"{message.provider_id}/{message.model_id}"),
    ]
    if calls:
        messages.append(ToolModelMessage(tuple(_result(call, notes.get(call.id)) for call in calls)))
        attachments = _project_attachments([call for call in calls if call.id not in notes], info)
        if attachments:
            messages.append(UserModelMessage(attachments))
    return tuple(messages)


def describe_changed_files(part: TextPart) -> tuple[UserModelMessage, ...]:
    """Return a line naming files that were read and have changed, to be put before an answer; () for none.

    It derives from a stored part, so each later request has it at the same place.
    """
    names: list[str] = (part.metadata or {}).get(CHANGED_FILES, [])
    if not names:
        return ()
    text = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    return (UserModelMessage((TextPiece(CHANGED.format(names=text)),)),)


def _user_pieces(part: Part, info: ModelInfo) -> tuple[TextPiece | ImagePiece, ...]:
    match part:
        case TextPart(text=text, ignored=ignored) if text.strip() and not ignored:
            return (TextPiece(text),)
        case FilePart():
            return (file_piece(part, info),)
        case SubtaskPart(agent=agent):
            return (TextPiece(f"[The user hands this to the subagent {agent}. Answer with its result.]"),)
        case _:
            return ()


def _assistant_pieces(
    part: Part, calls: Iterator[ToolPart], *, broken: bool
) -> tuple[TextPiece | ReasoningPiece | CallPiece, ...]:
    match part:
        case ToolPart():
            return (_call(next(calls)),)
        case TextPart(text=text, metadata=metadata) if text.strip():
            return (TextPiece(text, metadata or {}),)
        case ReasoningPart(text=text, metadata=metadata) if not broken and (text or metadata):
            return (ReasoningPiece(text, metadata or {}),)
        case _:
            return ()


def _distinct(calls: list[ToolPart]) -> list[ToolPart]:
    """Return the calls with ids that differ: services refuse a history with two calls of one id in a message."""
    seen: set[str] = set()
    distinct: list[ToolPart] = []
    for number, call in enumerate(calls):
        unique = call.call_id or f"call_{number}"
        while unique in seen:
            unique = f"{unique}_{number}"
        seen.add(unique)
        distinct.append(call if unique == call.call_id else msgspec.structs.replace(call, call_id=unique))
    return distinct


def _call(call: ToolPart) -> CallPiece:
    return CallPiece(call.call_id, call.tool, msgspec.json.encode(call.state.input).decode())


def _result(call: ToolPart, note: str | None) -> ResultPiece:
    match call.state:
        case ToolStateCompleted() if note is not None:
            return ResultPiece(call.call_id, call.tool, note)
        case ToolStateCompleted(time=time) if time.compacted is not None:
            return ResultPiece(call.call_id, call.tool, LEFT_OUT)
        case ToolStateCompleted(output=output):
            return ResultPiece(call.call_id, call.tool, output or "(no output)", call.tool == "invalid")
        case ToolStateError(for_model=error, metadata=metadata):
            so_far = (metadata or {}).get("output") if (metadata or {}).get("interrupted") else None
            text = f"{error}\nOutput until then:\n{to_plain_text(so_far).text}" if so_far else error
            return ResultPiece(call.call_id, call.tool, text, error=True)
        case _:
            return ResultPiece(call.call_id, call.tool, PENDING, error=True)


def _project_attachments(calls: list[ToolPart], info: ModelInfo) -> tuple[TextPiece | ImagePiece, ...]:
    pieces: list[TextPiece | ImagePiece] = []
    for call in calls:
        if isinstance(call.state, ToolStateCompleted) and call.state.attachments and call.state.time.compacted is None:
            pieces.append(TextPiece(ATTACHED.format(name=call.tool)))
            pieces += [file_piece(part, info) for part in call.state.attachments]
    return tuple(pieces)


def file_piece(part: FilePart, info: ModelInfo) -> TextPiece | ImagePiece:
    """Return an attachment as the model can read it: image or PDF as such, text as text, else a line that names it."""
    name = part.filename or "attachment"
    if not part.url.startswith("data:"):
        return TextPiece(f"[{name}: {part.mime}, see {part.url}]")
    kind = "pdf" if part.mime == "application/pdf" else part.mime.partition("/")[0]
    data = _data(part.url)
    if data is None or (not data and kind in {"image", "pdf"}):
        return TextPiece(f"[{name}: {part.mime}, its data is broken]")
    if kind == "text":
        return TextPiece(f"[{name}]\n{data.decode('utf-8', 'replace')}")
    if kind in {"image", "pdf"} and kind in info.input:
        return ImagePiece(part.mime, base64.b64encode(data).decode(), name)
    return TextPiece(f"[{name}: {info.ref} does not take this {part.mime}]")


def _data(url: str) -> bytes | None:
    """Return the bytes of a `data:` URL, or None when they are no base64."""
    header, _, data = url.partition(",")
    if not header.endswith(";base64"):
        return unquote_to_bytes(data)
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        return None
