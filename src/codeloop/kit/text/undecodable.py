"""Text from bytes that may not be UTF-8, such as names of files: Python holds those
bytes as surrogate escapes.
"""

import os
import re


def replace_undecodable(text: str) -> str:
    """Return a text in which bytes that were not UTF-8 (surrogate escapes) are U+FFFD,
    so that it can be sent.
    """
    return (
        text
        if text.isascii()
        else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    )


def escape_path(path: str) -> str:
    """Return a path as text that can be shown and stored: bytes that are not UTF-8 and
    control characters escaped.
    """
    if path.isprintable() and path.isascii():
        return path
    return "".join(_escape(char) for char in path)


def escape_undecodable(text: str) -> str:
    """Return a text in which bytes that were not UTF-8 (surrogate escapes) are written out,
    by their numbers.

    `find_undecodable` is the way back for paths. Other lone surrogates become question marks.
    """
    if text.isascii():
        return text
    return (
        "".join(_escape(char) if 0xDC80 <= ord(char) <= 0xDCFF else char for char in text)
        .encode("utf-8", "replace")
        .decode("utf-8")
    )


def find_undecodable(path: str) -> str:
    """Return the path on the disk that `escape_undecodable` has written as `path`: `path`
    itself where that exists.
    """
    if "\\x" not in path or os.path.lexists(path):
        return path
    escaped = re.sub(
        rb"\\x([89a-f][0-9a-f])", lambda match: bytes.fromhex(match[1].decode()), os.fsencode(path)
    )
    written = os.fsdecode(escaped)
    return written if os.path.lexists(written) else path


def _escape(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
