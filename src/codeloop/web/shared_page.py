"""A session as one page that needs nothing else: the template that `make web` builds, with the session in it."""

from codeloop.web import FILES

_MARK = b"__SESSION__"


def fill_page(session: bytes) -> bytes:
    """Return the page of a session: the JSON of a `ShareableSession`, which must not end the element it stands in."""
    before, _, after = (FILES / "share.html").read_bytes().partition(_MARK)
    return before + session.replace(b"<", rb"\u003c") + after
