"""Converts the parts of a prompt to parts of its message: attached files are read,
and images are scaled.

Clients in this process, which can name its files, attach them with `make_local_file_part`.
"""

import base64
import os
import re
from pathlib import Path
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from codeloop.kit.paths import expand_user_path
from codeloop.kit.text.undecodable import escape_path, escape_undecodable
from codeloop.schema.api.session_inputs import (
    AgentPartInput,
    FilePartInput,
    PartInput,
    SubtaskPartInput,
    TextPartInput,
)
from codeloop.schema.errors import CodeloopError, OperationError, UsageProblem
from codeloop.schema.ids import new_id
from codeloop.schema.limits import ATTACHED_FILE, ATTACHED_NAMES, IMAGE_FILE, READ_PDF
from codeloop.schema.message import UserMessage
from codeloop.schema.part import (
    FOLDER_MIME,
    AgentPart,
    FilePart,
    Part,
    ResourceSource,
    SubtaskPart,
    TextPart,
)
from codeloop.schema.wire import replace
from codeloop.workspace.files.safe_open import FileRefused, read_file
from codeloop.workspace.workspace import Workspace

_LINE_RANGE = r"start=(\d{1,9})&end=(\d{1,9})"
"""The first and last attached line of a text file, counted from 1, as the query of its URL."""


def is_mention(part: PartInput) -> bool:
    """Return whether a part is a file or resource that the prompt's text mentions (`@file`),
    and not an attachment.
    """
    if not isinstance(part, FilePartInput) or part.source is None:
        return False
    return isinstance(part.source, ResourceSource) or part.url.startswith("file://")


def make_parts(workspace: Workspace, message: UserMessage, part_input: PartInput) -> list[Part]:
    """Return the message's parts for a part of a prompt. Blocks.
    Raises OperationError if its file can't be read.
    """
    session_id, message_id = message.session_id, message.id
    match part_input:
        case TextPartInput():
            return [
                TextPart(
                    id=part_input.id or new_id("prt"),
                    text=escape_undecodable(part_input.text),
                    synthetic=part_input.synthetic,
                    ignored=part_input.ignored,
                    metadata=part_input.metadata,
                    session_id=session_id,
                    message_id=message_id,
                )
            ]
        case AgentPartInput():
            note = f"The user asks for the subagent {part_input.name}: hand this to it with the task tool."
            mention = AgentPart(
                id=part_input.id or new_id("prt"),
                session_id=session_id,
                message_id=message_id,
                name=part_input.name,
                source=part_input.source,
            )
            request = TextPart(
                id=new_id("prt"),
                session_id=session_id,
                message_id=message_id,
                text=note,
                synthetic=True,
            )
            return [mention, request]
        case SubtaskPartInput():
            work = SubtaskPart(
                id=part_input.id or new_id("prt"),
                session_id=session_id,
                message_id=message_id,
                prompt=part_input.prompt,
                description=part_input.description,
                agent=part_input.agent,
                model=part_input.model,
                command=part_input.command,
            )
            return [work]
        case FilePartInput():
            part = FilePart(
                id=part_input.id or new_id("prt"),
                mime=part_input.mime,
                url=part_input.url,
                filename=part_input.filename,
                source=part_input.source,
                session_id=session_id,
                message_id=message_id,
            )
            return _make_file_parts(workspace, part)


def _make_file_parts(workspace: Workspace, part: FilePart) -> list[Part]:
    # The URL of a resource is the server's; even a `file:` URL names no file of this machine.
    if isinstance(part.source, ResourceSource):
        return [part]
    if not part.url.startswith("file://"):
        return (
            _make_data_url_parts(part)
            if part.url.startswith("data:") and part.mime.startswith("image/")
            else [part]
        )
    target = workspace.resolve(unquote(urlsplit(part.url).path))
    file_part = replace(part, filename=part.filename or target.path.name)
    if part.mime == "application/pdf":
        return [_replace_data(file_part, part.mime, _read_bytes(target.path, READ_PDF.value))]
    if part.mime.startswith("image/"):
        return _make_image_parts(file_part, _read_bytes(target.path, IMAGE_FILE.value))
    name = workspace.format_for_model(target.path)
    if part.mime == FOLDER_MIME:
        return [
            _make_note(
                part,
                f"The user attached the folder {name}/, which has:\n{_list_folder(target.path)}",
            ),
            part,
        ]
    text = _read_text(target.path)
    lines = re.fullmatch(_LINE_RANGE, urlsplit(part.url).query)
    if lines is not None:
        first, last = max(int(lines[1]), 1), int(lines[2])
        text = "".join(text.splitlines(keepends=True)[first - 1 : last])
        name = f"{name}, lines {first} to {last}"
    return [_make_note(part, f"The user attached the file {name}:\n{text}"), part]


def _list_folder(path: Path) -> str:
    """Return the names in an attached folder, one a line.
    Raises OperationError if it can't be read.
    """
    try:
        with os.scandir(path) as entries:
            names = sorted(
                f"{escape_path(entry.name)}/" if entry.is_dir() else escape_path(entry.name)
                for entry in entries
            )
    except OSError as error:
        raise OperationError(
            "BadRequest", f"The attached folder {path} can't be read: {error.strerror}."
        ) from error
    more = len(names) - ATTACHED_NAMES.value
    return (
        "\n".join([*names[: ATTACHED_NAMES.value], *([f"(and {more} more)"] if more > 0 else [])])
        or "(nothing)"
    )


def _make_data_url_parts(part: FilePart) -> list[Part]:
    """Return the parts for an image that a client sent as a `data:` URL."""
    header, _, data = part.url.partition(",")
    try:
        raw = (
            base64.b64decode(data, validate=True)
            if header.endswith(";base64")
            else unquote_to_bytes(data)
        )
    except ValueError:
        return [_replace_by_note(part, "its base64 data is broken")]
    return _make_image_parts(part, raw)


def _make_image_parts(part: FilePart, data: bytes) -> list[Part]:
    """Return an image in a format and size that services accept,
    with a note on its original size if it was scaled.
    """
    # Imported late: most prompts have no image.
    from codeloop.workspace.files.image import fit_image

    try:
        picture = fit_image(data)
    except CodeloopError as error:
        return [_replace_by_note(part, str(error))]
    if picture.data is data and picture.mime == part.mime and part.url.startswith("data:"):
        return [part]
    file_part = _replace_data(part, picture.mime, picture.data)
    if picture.original is None:
        return [file_part]
    return [
        file_part,
        _make_note(part, f"The image {part.filename or 'attachment'} is sent with {picture.note}."),
    ]


def _make_note(part: FilePart, text: str) -> TextPart:
    """Make a note about a file for the model, in addition to the user's text."""
    return TextPart(
        id=new_id("prt"),
        session_id=part.session_id,
        message_id=part.message_id,
        text=text,
        synthetic=True,
    )


def _replace_data(part: FilePart, mime: str, data: bytes) -> FilePart:
    return replace(part, mime=mime, url=f"data:{mime};base64,{base64.b64encode(data).decode()}")


def _replace_by_note(part: FilePart, reason: str) -> TextPart:
    """Return a note in place of an image that no service accepts,
    so that the prompt is answered without it.
    """
    return TextPart(
        id=part.id,
        session_id=part.session_id,
        message_id=part.message_id,
        text=f"The user attached the image {part.filename or 'without a name'}, which is left out: {reason}.",
        synthetic=True,
    )


def _read_text(path: Path) -> str:
    """Read an attached text file. Raises OperationError if it is missing, too large,
    or not UTF-8.
    """
    try:
        return _read_bytes(path, ATTACHED_FILE.value).decode()
    except UnicodeDecodeError:
        raise OperationError("BadRequest", f"The attached file {path} is not UTF-8 text.") from None


def _read_bytes(path: Path, limit: int) -> bytes:
    # `read_file` refuses links, so that a file can't be exchanged for one; the user's own
    # attachment may be a link.
    real = Path(os.path.realpath(path))
    try:
        return read_file(real, limit).data
    except FileRefused as error:
        raise OperationError(
            "BadRequest", f"The attached file {path} can't be read: {error}."
        ) from error
    except OSError as error:
        raise OperationError(
            "BadRequest", f"The attached file {path} can't be read: {error.strerror}."
        ) from error


def guess_mime(path: Path) -> str:
    """Guess a file's mime type from its name; `text/plain` for an unknown ending."""
    # Imported late: most prompts have no file.
    import mimetypes

    return mimetypes.guess_type(path.name)[0] or "text/plain"


def make_local_file_part(path: Path) -> FilePartInput:
    """Return the part of a prompt that attaches a file of this machine.
    Raises UsageProblem for a missing file.
    """
    absolute = expand_user_path(path).absolute()
    if not absolute.exists():
        raise UsageProblem(f"The file {path} does not exist. Correct the name.")
    return FilePartInput(mime=guess_mime(absolute), url=absolute.as_uri(), filename=absolute.name)
