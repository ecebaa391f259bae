"""Limits the images and PDFs of a request: services refuse more, and the session could not continue."""

from collections.abc import Iterable, Sequence

from codeloop.model.chat import ImagePiece, TextPiece, Turn, UserTurn
from codeloop.schema.errors import APIError, APIErrorData
from codeloop.schema.limits import IMAGES, IMAGES_DATA
from codeloop.schema.message import AssistantMessage
from codeloop.store.conversation import Entry


def limit_images(turns: Sequence[Turn], count: int = IMAGES.value, size: int = IMAGES_DATA.value) -> tuple[Turn, ...]:
    """Return the turns with at most `count` images and PDFs and `size` characters of base64 in all.

    The first ones are kept, and a line replaces each that does not fit: what was sent once is sent again byte for
    byte, so that a longer conversation still begins with the shorter one.
    """
    kept_turns: list[Turn] = []
    for turn in turns:
        if not isinstance(turn, UserTurn) or not any(isinstance(piece, ImagePiece) for piece in turn.content):
            kept_turns.append(turn)
            continue
        content: list[TextPiece | ImagePiece] = []
        for piece in turn.content:
            if isinstance(piece, ImagePiece):
                if count < 1 or len(piece.data) > size:
                    content.append(_describe_omitted(piece))
                    continue
                count -= 1
                size -= len(piece.data)
            content.append(piece)
        is_unchanged = all(new is old for new, old in zip(content, turn.content, strict=True))
        kept_turns.append(
            turn if is_unchanged else UserTurn(tuple(content))
        )  # adapters recognise a sent turn by identity
    return tuple(kept_turns)


def has_images(turns: Iterable[Turn]) -> bool:
    """Return whether any of the turns holds an image or a PDF."""
    return any(isinstance(piece, ImagePiece) for turn in turns if isinstance(turn, UserTurn) for piece in turn.content)


def find_rejected_images(entries: Iterable[Entry]) -> frozenset[str]:
    """Return the ids of the messages whose images a service refused: from then on a line of text replaces each.

    A service doesn't say which image it means, so these are all since the last answer before the refusal.
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
    return data.status_code in REFUSED and any(word in message for word in ("image", "pdf", "media", "document"))


REFUSED = frozenset({400, 413, 415, 422})
"""Statuses with which services refuse what a request holds."""


def _describe_omitted(piece: ImagePiece) -> TextPiece:
    return TextPiece(
        f"[{piece.filename or 'attachment'}: {piece.mime}, left out: this conversation holds as many images and PDFs "
        "as a request takes. Look at it in a new session, or with a subagent.]"
    )
