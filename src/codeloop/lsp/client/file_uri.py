"""Parses the `file:` URIs in which language servers name files."""

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


def parse_file_uri(uri: Any) -> Path | None:
    """Return the path that a `file:` URI names;
    None: it is no such URI, or names no absolute path.
    """
    if not isinstance(uri, str) or not uri.startswith("file:"):
        return None
    try:
        path = Path(unquote(urlsplit(uri).path))
    except ValueError:
        return None
    return path if path.is_absolute() and "\0" not in str(path) else None
