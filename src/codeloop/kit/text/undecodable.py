"""Text from bytes that may not be UTF-8, such as names of files: Python holds those bytes as surrogate escapes."""


def replace_undecodable(text: str) -> str:
    """Return a text in which bytes that were not UTF-8 (surrogate escapes) are U+FFFD, so that it can be sent."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def escape_path(path: str) -> str:
    """Return a path as text that can be shown and stored: bytes that are not UTF-8 and control characters escaped."""
    if path.isprintable() and path.isascii():
        return path
    return "".join(_escape(char) for char in path)


def _escape(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
