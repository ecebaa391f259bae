"""Pages of lists, and their cursors."""

import base64
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from codeloop.server.version2.request import TaggedError

_PAGE = 50
"""Items of a page where the client asks for no other number."""
Item = TypeVar("Item")


class _Cursor(msgspec.Struct, frozen=True):
    """The position of a page: the id of the item beside it, the order of the list,
    and on which side the page is.

    It names an item, not an index: items that are added while a client pages through the
    list don't shift the pages.
    """

    id: str
    order: str
    is_back: bool = False


def select_page(
    items: Sequence[Item],
    ids: list[str],
    limit: int | None,
    order: str | None,
    cursor_text: str | None,
) -> tuple[Sequence[Item], Any]:
    """Return a page of items, and the cursors of the pages before and after it.

    `items`: oldest first, with their `ids`. `cursor_text`: the cursor that was sent.
    Raises TaggedError.
    """
    limit = limit or _PAGE
    cursor = None if cursor_text is None else _parse_cursor(cursor_text, ids)
    # A client may leave the order out of its next requests.
    order = order or "desc" if cursor is None else cursor.order
    if order == "desc":
        items, ids = items[::-1], ids[::-1]
    start = 0
    if cursor is not None:
        position = ids.index(cursor.id)
        if cursor.is_back:
            start = max(position - limit, 0)
            # The first page may be shorter, but must not overlap with the next one.
            limit = min(limit, position)
        else:
            start = position + 1
    page = items[start : start + limit]
    if not page:
        return page, {}
    first, last = ids[start], ids[start + len(page) - 1]
    cursors = {"previous": _Cursor(first, order, is_back=True)} if start else {}
    if start + len(page) < len(ids):
        cursors["next"] = _Cursor(last, order)
    return page, {
        name: base64.urlsafe_b64encode(msgspec.json.encode(each)).decode()
        for name, each in cursors.items()
    }


def _parse_cursor(text: str, ids: list[str]) -> _Cursor:
    try:
        cursor = msgspec.json.decode(base64.urlsafe_b64decode(text), type=_Cursor)
    except (ValueError, msgspec.DecodeError) as error:
        raise TaggedError(
            "InvalidCursorError", 400, "This is not a cursor of this server."
        ) from error
    if cursor.id not in ids:
        raise TaggedError(
            "InvalidCursorError", 400, "The item that the cursor names is no longer in this list."
        )
    return cursor
