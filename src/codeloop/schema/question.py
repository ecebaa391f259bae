"""The model's questions to the user, as clients see them."""

from codeloop.schema.permission import QuestionTool
from codeloop.schema.wire import Wire


class QuestionOption(Wire):
    """One choice."""

    label: str
    description: str


class QuestionDocument(Wire):
    """The text that a question is about, in Markdown.
    `path`: of its file, from the project's folder.
    """

    path: str
    text: str


class QuestionInfo(Wire):
    """One question. `header`: a word or two for a tab.
    `custom`: a free answer is welcome too (unless false).

    `document`: what the user should read before the answer; the reference's clients do not know it.
    """

    question: str
    header: str
    options: list[QuestionOption]
    multiple: bool | None = None
    custom: bool | None = None
    document: QuestionDocument | None = None


class QuestionRequest(Wire):
    """Questions that wait for their answers."""

    id: str
    session_id: str
    questions: list[QuestionInfo]
    tool: QuestionTool | None = None
