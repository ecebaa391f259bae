"""A session as one page that needs nothing else: the template that `make web` builds,
with the session in it.
"""

from codeloop.schema.installation import check_package_file
from codeloop.web import STATIC_FOLDER

# The template has this in the place of the session.
_MARK = b"__SESSION__"


def fill_page(session: bytes) -> bytes:
    """Return the page of a session, which is given as the JSON of a `ShareableSession`."""
    before, _, after = (
        check_package_file(STATIC_FOLDER / "share.html").read_bytes().partition(_MARK)
    )
    # The JSON is in a `<script>` element, which a `</script>` in the session must not end.
    return before + session.replace(b"<", rb"\u003c") + after
