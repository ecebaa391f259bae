"""How many images and PDFs a request may hold: services refuse one with more, and then the session could not go on."""

from collections.abc import Iterable, Sequence

from codeloop.model.chat import ImagePiece, TextPiece, Turn, UserTurn
from codeloop.schema.limits import IMAGES, IMAGES_DATA


def bounded(turns: Sequence[Turn], count: int = IMAGES.value, size: int = IMAGES_DATA.value) -> tuple[Turn, ...]:
    """Give the turns with at most `count` images and PDFs and `size` characters of base64 in all.

    Those that come first stay and a line stands for each that does not fit: what was sent once is sent again byte for
    byte, so that a longer conversation still begins with the shorter one.
    """
    kept: list[Turn] = []
    for turn in turns:
        if not isinstance(turn, UserTurn) or not any(isinstance(piece, ImagePiece) for piece in turn.content):
            kept.append(turn)
            continue
        content: list[TextPiece | ImagePiece] = []
        for piece in turn.content:
            if isinstance(piece, ImagePiece):
                if count < 1 or len(piece.data) > size:
                    content.append(_left_out(piece))
                    continue
                count -= 1
                size -= len(piece.data)
            content.append(piece)
        whole = all(new is old for new, old in zip(content, turn.content, strict=True))
        kept.append(turn if whole else UserTurn(tuple(content)))  # adapters know a turn they have sent by identity
    return tuple(kept)


def has_images(turns: Iterable[Turn]) -> bool:
    """Tell whether any of the turns holds an image or a PDF."""
    return any(isinstance(piece, ImagePiece) for turn in turns if isinstance(turn, UserTurn) for piece in turn.content)


def _left_out(piece: ImagePiece) -> TextPiece:
    return TextPiece(
        f"[{piece.filename or 'attachment'}: {piece.mime}, left out: this conversation holds as many images and PDFs "
        "as a request takes. Look at it in a new session, or with a subagent.]"
    )
