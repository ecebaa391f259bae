"""The model's questions to the user, as clients see them."""

import re

from codeloop.schema.permission import QuestionTool
from codeloop.schema.wire import Wire

_SECRET_WORDS = re.compile(
    r"(?i)pass(word|phrase|code)|passwd|secret|token|api.?key|credential|private.?key|\bcv[vc]\b"
)
_PIN = re.compile(r"\bPIN\b|(?i:\b(your|card|security|digit|sim|bank|login)[\s-]+pin\b)")
"""A PIN, the number. The verb is common (notes are pinned), so lower case needs a word such as "your" before it."""


def asks_for_secret(text: str) -> bool:
    """Return whether a text asks for a password, a key, a token or the like, which no form of another program may."""
    return _SECRET_WORDS.search(text) is not None or _PIN.search(text) is not None


class QuestionOption(Wire):
    """One choice."""

    label: str
    description: str


class QuestionInfo(Wire):
    """One question. `header`: a word or two for a tab. `custom`: a free answer is welcome too (unless false)."""

    question: str
    header: str
    options: list[QuestionOption]
    multiple: bool | None = None
    custom: bool | None = None


class QuestionRequest(Wire):
    """Questions that wait for their answers."""

    id: str
    session_id: str
    questions: list[QuestionInfo]
    tool: QuestionTool | None = None
