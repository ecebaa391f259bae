"""The model's questions to the user, as clients see them."""

from codeloop.schema.permission import QuestionTool
from codeloop.schema.wire import Wire


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
