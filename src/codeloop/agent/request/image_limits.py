"""Limits the images and PDFs of a request: services refuse more,
and the session could not continue.
"""

from collections.abc import Iterable, Sequence

from codeloop.model.chat import ImagePiece, ModelMessage, TextPiece, UserModelMessage
from codeloop.schema.errors import APIError, APIErrorData
from codeloop.schema.limits import REQUEST_IMAGES, REQUEST_IMAGES_BYTES
from codeloop.schema.message import AssistantMessage
from codeloop.store.conversation import Entry

# HTTP statuses with which services refuse the content of a request.
_CONTENT_REFUSAL_STATUSES = frozenset({400, 413, 415, 422})


def limit_images(
    messages: Sequence[ModelMessage],
    count: int = REQUEST_IMAGES.value,
    size: int = REQUEST_IMAGES_BYTES.value,
) -> tuple[ModelMessage, ...]:
    """Return the messages with at most `count` images and PDFs and `size`
    characters of base64 in all.

    The first ones are kept, and a line replaces each that does not fit: what was sent once is sent
    again byte for byte, so that a longer conversation still begins with the shorter one.
    """
    limited: list[ModelMessage] = []
    for message in messages:
        if not isinstance(message, UserModelMessage) or not any(
            isinstance(piece, ImagePiece) for piece in message.content
        ):
            limited.append(message)
            continue
        content: list[TextPiece | ImagePiece] = []
        for piece in message.content:
            if isinstance(piece, ImagePiece):
                if count < 1 or len(piece.data) > size:
                    content.append(_describe_omitted(piece))
                    continue
                count -= 1
                size -= len(piece.data)
            content.append(piece)
        is_unchanged = all(new is old for new, old in zip(content, message.content, strict=True))
        # Adapters recognise a message that was sent before by its identity.
        limited.append(message if is_unchanged else UserModelMessage(tuple(content)))
    return tuple(limited)


def has_images(messages: Iterable[ModelMessage]) -> bool:
    """Return whether any of the messages holds an image or a PDF."""
    return any(
        isinstance(piece, ImagePiece)
        for message in messages
        if isinstance(message, UserModelMessage)
        for piece in message.content
    )


def find_rejected_images(entries: Iterable[Entry]) -> frozenset[str]:
    """Return the ids of the messages whose images a service refused: from then on a
    line of text replaces each.

    A service doesn't say which image it means, so these are all since the last
    answer before the refusal.
    """
    rejected: set[str] = set()
    since: list[str] = []
    for entry in entries:
        match entry.info:
            case AssistantMessage(error=APIError(data=data)) if _is_about_images(data):
                rejected.update(since)
            case AssistantMessage(error=None):
                since = []
            case _:
                pass
        since.append(entry.info.id)
    return frozenset(rejected)


def _is_about_images(data: APIErrorData) -> bool:
    message = f"{data.message} {data.response_body or ''}".lower()
    return data.status_code in _CONTENT_REFUSAL_STATUSES and any(
        word in message for word in ("image", "pdf", "media", "document")
    )


def _describe_omitted(piece: ImagePiece) -> TextPiece:
    return TextPiece(
        f"[{piece.filename or 'attachment'}: {piece.mime}, left out: this conversation holds as many images and PDFs "
        "as a request takes. Look at it in a new session, or with a subagent.]"
    )
