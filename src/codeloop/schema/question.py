"""The model's questions to the user, as clients see them."""

import re

from codeloop.schema.permission import QuestionTool
from codeloop.schema.wire import Wire

_WITHHELD = re.compile(r"(?i)pass(word|phrase|code)|passwd|secret|token|api.?key|credential|private.?key|\bcv[vc]\b")
_PIN = re.compile(r"\bPIN\b|(?i:\b(your|card|security|digit|sim|bank|login)[\s-]+pin\b)")
"""The number: notes are pinned, too, so the bare word says nothing in a sentence."""


def asks_for_secret(text: str) -> bool:
    """Return whether words ask for a password, a key, a token or the like: no form of another program shows those."""
    return _WITHHELD.search(text) is not None or _PIN.search(text) is not None


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
