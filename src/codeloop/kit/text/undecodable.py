"""Text from bytes that may not be UTF-8, such as names of files: Python holds those bytes as surrogate escapes."""


def replace_undecodable(text: str) -> str:
    """Return a text in which bytes that were not UTF-8 (surrogate escapes) are U+FFFD, so that it can be sent."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
