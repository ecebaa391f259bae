"""Makes the messages of a request from the stored parts. Pure;
an entry always yields the same messages.

Broken histories are repaired: every call has exactly one result, right after the message that made
it; no message is empty; arguments are whole JSON objects; thinking is sent back only if complete. A
line names each attachment that the model can't read.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from urllib.parse import unquote_to_bytes

import msgspec

from codeloop.agent.moves import is_open
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

NO_RESULT = "Interrupted: this call has no result."
OUTPUT_DROPPED = "[The output was left out to save room. Make the call again if you need it.]"
INTERRUPTED_MARK = "[interrupted]"
"""Ends an incomplete answer."""
ATTACHMENT_HEADING = "Attached by the tool {name}:"
CHANGED_FILES_KEY = "changedFiles"
"""Metadata key of an answer's part: the files that others changed since the session read them."""
CHANGED_FILES_REMINDER = (
    "<system-reminder>Changed since you read them, not by you: {names}. "
    "Read again what you need.</system-reminder>"
)
# Changed files that a reminder lists by name.
_MAX_NAMED_FILES = 20
# Of an id, the characters that every service keeps; those that stay when a number is added.
_MAX_ID_LENGTH, _MAX_ID_START = 40, 30
UsedIds = dict[str, None]
"""The ids of a request's calls, as of `_normalize_id`, in the order in which they were added."""
NO_NOTES: Mapping[str, str] = MappingProxyType({})


def project_conversation(
    entries: Sequence[Entry], info: ModelInfo, notes: Mapping[str, str] = NO_NOTES
) -> tuple[ModelMessage, ...]:
    """Return the messages of a conversation for a model, oldest first."""
    used_ids: UsedIds = {}
    return tuple(
        message
        for entry in entries
        for message in make_model_messages(entry, info, notes, used_ids)
    )


def make_model_messages(
    entry: Entry,
    info: ModelInfo,
    notes: Mapping[str, str] = NO_NOTES,
    used_ids: UsedIds | None = None,
) -> tuple[ModelMessage, ...]:
    """Return the messages of one entry: the user's,
    or the assistant's and the results of its calls.

    `notes`: by the id of a tool part, the line that replaces its output.
    `used_ids`: of the calls of
    the entries before, to which those of this one are added.
    """
    match entry.info:
        case UserMessage():
            content = tuple(
                piece for part in entry.parts for piece in _make_user_pieces(part, info)
            )
            return (UserModelMessage(content),) if content else ()
        case AssistantMessage() as message:
            return _make_assistant_messages(
                message, entry, info, notes, {} if used_ids is None else used_ids
            )


def _make_assistant_messages(
    message: AssistantMessage,
    entry: Entry,
    info: ModelInfo,
    notes: Mapping[str, str],
    used_ids: UsedIds,
) -> tuple[ModelMessage, ...]:
    is_interrupted = is_open(entry) or message.error is not None
    calls = _make_ids_unique([part for part in entry.parts if isinstance(part, ToolPart)], used_ids)
    remaining_calls = iter(calls)
    # Services check that thinking, text and calls come back in the order in which they came.
    pieces = tuple(
        piece
        for part in entry.parts
        for piece in _make_assistant_pieces(part, remaining_calls, is_interrupted=is_interrupted)
    )
    file_messages = tuple(
        each
        for part in entry.parts
        if isinstance(part, TextPart)
        for each in make_changed_files_messages(part)
    )
    if not calls and not any(isinstance(piece, TextPiece) for piece in pieces):
        return file_messages
    if is_interrupted and not calls:
        pieces = (*pieces, TextPiece(INTERRUPTED_MARK))
    origin = f"{message.provider_id}/{message.model_id}"
    messages: list[ModelMessage] = [*file_messages, AssistantModelMessage(pieces, origin)]
    if calls:
        messages.append(
            ToolModelMessage(tuple(_make_result_piece(call, notes.get(call.id)) for call in calls))
        )
        attachments = _make_attachment_pieces(
            [call for call in calls if call.id not in notes], info
        )
        if attachments:
            messages.append(UserModelMessage(attachments))
    return tuple(messages)


def make_changed_files_messages(part: TextPart) -> tuple[UserModelMessage, ...]:
    """Return a message that names the files which changed since they were read;
    () if there are none.

    The message precedes an answer. The names are stored in a part,
    so each later request has them at the same place.
    """
    names: list[str] = (part.metadata or {}).get(CHANGED_FILES_KEY, [])
    if not names:
        return ()
    remaining_count = len(names) - _MAX_NAMED_FILES
    text = ", ".join(names[:_MAX_NAMED_FILES]) + (
        f" and {remaining_count} more" if remaining_count > 0 else ""
    )
    return (UserModelMessage((TextPiece(CHANGED_FILES_REMINDER.format(names=text)),)),)


def _make_user_pieces(part: Part, info: ModelInfo) -> tuple[TextPiece | ImagePiece, ...]:
    match part:
        case TextPart(text=text, ignored=ignored) if text.strip() and not ignored:
            return (TextPiece(text),)
        case FilePart():
            return (make_file_piece(part, info),)
        case SubtaskPart(agent=agent):
            return (
                TextPiece(
                    f"[The user hands this to the subagent {agent}. Answer with its result.]"
                ),
            )
        case _:
            return ()


def _make_assistant_pieces(
    part: Part, calls: Iterator[ToolPart], *, is_interrupted: bool
) -> tuple[TextPiece | ReasoningPiece | CallPiece, ...]:
    match part:
        case ToolPart():
            return (_make_call_piece(next(calls)),)
        case TextPart(text=text, metadata=metadata) if text.strip():
            return (TextPiece(text, metadata or {}),)
        case ReasoningPart(text=text, metadata=metadata) if not is_interrupted and (
            text or metadata
        ):
            return (ReasoningPiece(text, metadata or {}),)
        case _:
            return ()


def _make_ids_unique(calls: list[ToolPart], used_ids: UsedIds) -> list[ToolPart]:
    """Return the calls with ids that no other call of the request has: services refuse a
    request with two equal ones.

    Some services begin anew with each answer: `bash:0`, `call_0`.
    """
    distinct: list[ToolPart] = []
    for number, call in enumerate(calls):
        call_id = call.call_id or f"call_{number}"
        unique, count = call_id, 1
        while (form := _normalize_id(unique)) in used_ids:
            count += 1
            unique = f"{call_id[:_MAX_ID_START]}_{count}"
        used_ids[form] = None
        distinct.append(
            call if unique == call.call_id else msgspec.structs.replace(call, call_id=unique)
        )
    return distinct


def _normalize_id(call_id: str) -> str:
    """Return the form in which ids are compared: services take letters and digits only,
    and cut long ids.
    """
    if not call_id.isalnum():
        call_id = "".join(
            char if char.isascii() and (char.isalnum() or char == "-") else "_" for char in call_id
        )
    return call_id[:_MAX_ID_LENGTH]


def _make_call_piece(call: ToolPart) -> CallPiece:
    return CallPiece(call.call_id, call.tool, msgspec.json.encode(call.state.input).decode())


def _make_result_piece(call: ToolPart, note: str | None) -> ResultPiece:
    match call.state:
        case ToolStateCompleted() if note is not None:
            return ResultPiece(call.call_id, call.tool, note)
        case ToolStateCompleted(time=time) if time.compacted is not None:
            return ResultPiece(call.call_id, call.tool, OUTPUT_DROPPED)
        case ToolStateCompleted(output=output):
            return ResultPiece(
                call.call_id, call.tool, output or "(no output)", error=call.tool == "invalid"
            )
        case ToolStateError(for_model=error, metadata=metadata):
            metadata = metadata or {}
            output_so_far = metadata.get("output") if metadata.get("interrupted") else None
            if not output_so_far:
                return ResultPiece(call.call_id, call.tool, error, error=True)
            # Imported late: it is for calls that were interrupted.
            from codeloop.kit.text.plain_output import to_plain_text

            text = f"{error}\nOutput until then:\n{to_plain_text(output_so_far).text}"
            return ResultPiece(call.call_id, call.tool, text, error=True)
        case _:
            return ResultPiece(call.call_id, call.tool, NO_RESULT, error=True)


def _make_attachment_pieces(
    calls: list[ToolPart], info: ModelInfo
) -> tuple[TextPiece | ImagePiece, ...]:
    pieces: list[TextPiece | ImagePiece] = []
    for call in calls:
        if (
            isinstance(call.state, ToolStateCompleted)
            and call.state.attachments
            and call.state.time.compacted is None
        ):
            pieces.append(TextPiece(ATTACHMENT_HEADING.format(name=call.tool)))
            pieces += [make_file_piece(part, info) for part in call.state.attachments]
    return tuple(pieces)


def make_file_piece(part: FilePart, info: ModelInfo) -> TextPiece | ImagePiece:
    """Return an attachment: an image or PDF if the model reads it, the content of a text,
    or a line with its name.
    """
    name = part.filename or "attachment"
    if not part.url.startswith("data:"):
        return TextPiece(f"[{name}: {part.mime}, see {part.url}]")
    media = "pdf" if part.mime == "application/pdf" else part.mime.partition("/")[0]
    data = _decode_data_url(part.url)
    if data is None or (not data and media in {"image", "pdf"}):
        return TextPiece(f"[{name}: {part.mime}, its data is broken]")
    if media == "text":
        return TextPiece(f"[{name}]\n{data.decode('utf-8', 'replace')}")
    if media in {"image", "pdf"} and media in info.input:
        return ImagePiece(part.mime, base64.b64encode(data).decode(), name)
    return TextPiece(f"[{name}: {info.ref} does not take this {part.mime}]")


def _decode_data_url(url: str) -> bytes | None:
    """Return the bytes of a `data:` URL, or None if its base64 is invalid."""
    header, _, data = url.partition(",")
    if not header.endswith(";base64"):
        return unquote_to_bytes(data)
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        return None
