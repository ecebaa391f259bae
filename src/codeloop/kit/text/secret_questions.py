"""Recognises questions that ask for a secret: no answer to them may pass through a
form of another program. Pure.
"""

import re

_SENSITIVE_WORDS = (
    r"(?i)pass(word|phrase|code)|passwd|secret|token|api.?key|credential|private.?key|\bcv[vc]\b"
)
_PIN = r"\bPIN\b|(?i:\b(your|card|security|digit|sim|bank|login)[\s-]+pin\b)"
"""A PIN, the number. The verb is common (notes are pinned),
so lower case needs a word such as "your" before it.
"""


def asks_for_secret(text: str) -> bool:
    """Return whether a text asks for a password, a key, a token or the like.

    Forms of MCP servers must not ask for one, and ours must not ask for one through
    another program's form.

    >>> asks_for_secret("What is your API key?"), asks_for_secret("Which notes are pinned?")
    (True, False)
    """
    return re.search(_SENSITIVE_WORDS, text) is not None or re.search(_PIN, text) is not None
