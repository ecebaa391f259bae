"""Converts permission requests and questions to forms (MCP's elicitation, which ACP has too),
and forms to answers.

A form never asks for a secret: the client is a program that we don't know,
and may show the answer to its model.
"""

from typing import Any, cast

from msgspec import Struct

from codeloop.client.questions.permission_text import RequestText, describe_request
from codeloop.client.questions.requester import Requester
from codeloop.kit.text.secret_questions import asks_for_secret
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.permission import AlwaysScope, PermissionRequest, Reply
from codeloop.schema.question import QuestionInfo, QuestionRequest
from codeloop.schema.wire import JSON

Request = PermissionRequest | QuestionRequest
_REQUEST_COLUMNS, _MAX_REQUEST_ROWS = 100, 60
"""The size of the quoted command, diff or arguments in a form's message."""
_MAX_LABEL = 200
"""Characters of a field's title or of a choice."""
ONCE, DENY = "Allow once", "Deny"
_INSTEAD_FIELD = "instead"


class ElicitedForm(Struct, frozen=True):
    """A message, and the JSON schema of the values to fill in."""

    message: str
    schema: JSON


class FormReply(Struct, frozen=True):
    """The answer to a permission request. `message`: an instruction for the
    model after a refusal.
    """

    reply: Reply
    message: str | None = None
    scope: AlwaysScope = "directory"


def build_form(request: Request, requester: Requester) -> ElicitedForm | None:
    """Build the form for a request; None: it would ask for a secret."""
    if isinstance(request, PermissionRequest):
        return _build_permission_form(request, requester)
    if any(asks_for_secret(f"{each.header} {each.question}") for each in request.questions):
        return None
    heading = (
        f"codeloop asks (its {requester.subagent}):" if requester.subagent else "codeloop asks:"
    )
    lines = [escape_controls(_write_question(each)) for each in request.questions]
    if len(lines) > 1:
        lines = [f"{number}. {line}" for number, line in enumerate(lines, 1)]
    message = "\n".join([heading, *lines])
    fields: JSON = {}
    required: list[str] = []
    for number, each in enumerate(request.questions, 1):
        question_fields, question_required = _build_fields(each, number)
        fields |= question_fields
        required += question_required
    return ElicitedForm(message, {"type": "object", "properties": fields, "required": required})


def _write_question(question: QuestionInfo) -> str:
    """Return a question, with the text that it is about."""
    return (
        question.question
        if question.document is None
        else f"{question.question}\n\n{question.document.text}"
    )


def _build_permission_form(request: PermissionRequest, requester: Requester) -> ElicitedForm:
    words = describe_request(request, requester, _REQUEST_COLUMNS, _MAX_REQUEST_ROWS)
    lines = [f"codeloop asks: {escape_controls(words.title)}", *(row for _, row in words.rows)]
    choices = [ONCE, *_list_always_choices(words), DENY]
    decision = {"type": "string", "title": "Allow it?", "enum": choices}
    instead = {
        "type": "string",
        "title": "If not: what to do instead",
        "description": "The work then goes on.",
    }
    schema = {
        "type": "object",
        "properties": {"decision": decision, _INSTEAD_FIELD: instead},
        "required": ["decision"],
    }
    return ElicitedForm("\n".join(lines), schema)


def _list_always_choices(words: RequestText) -> dict[str, AlwaysScope]:
    """Return the choices that allow more than the call, with what they allow, by scope;
    empty: none is offered.
    """
    if not words.always:
        return {}
    effects: dict[AlwaysScope, str] = {
        "session": f"Allow for this session: {words.session}",
        "directory": f"Allow always: {words.always}",
    }
    return {
        each if len(each) <= _MAX_LABEL else f"{each[:_MAX_LABEL]}…": scope
        for scope, each in effects.items()
    }


def read_permission_form(request: PermissionRequest, content: JSON | None) -> FormReply:
    """Read the filled-in form of a request. `content`: None if the user declined."""
    # Some clients fill forms in by themselves and may send anything: what is not a choice
    # of the form is a refusal.
    decision = str((content or {}).get("decision", DENY))
    if decision == ONCE:
        return FormReply("once")
    # The choices are the same whoever asks, so the requester is left out.
    words = describe_request(request, Requester(), _REQUEST_COLUMNS, _MAX_REQUEST_ROWS)
    if (scope := _list_always_choices(words).get(decision)) is not None:
        return FormReply("always", scope=scope)
    return FormReply("reject", str((content or {}).get(_INSTEAD_FIELD, "")).strip() or None)


def _build_fields(question: QuestionInfo, number: int) -> tuple[JSON, list[str]]:
    """Build the fields of a question; return the fields, and the names of the required ones."""
    name, title = (
        f"answer_{number}",
        escape_controls(question.header or question.question)[:_MAX_LABEL],
    )
    labels = [escape_controls(option.label) for option in question.options]
    descriptions = "; ".join(
        f"{o.label}: {o.description}" for o in question.options if o.description
    )
    description: JSON = {"description": escape_controls(descriptions)} if descriptions else {}
    own_words: JSON = {"type": "string", "title": f"{title}: in your own words"}
    if not labels:
        return {name: {"type": "string", "title": title}}, [name]
    # Forms have only flat fields, no lists: each option of a multiple choice is a box to tick.
    if question.multiple:
        fields: JSON = {
            f"{name}_{choice}": {"type": "boolean", "title": label}
            for choice, label in enumerate(labels, 1)
        }
    else:
        fields = {name: {"type": "string", "title": title, "enum": labels, **description}}
    if question.custom is False:
        return fields, [name] if name in fields else []
    return {**fields, f"{name}_own": own_words}, []


def read_question_form(request: QuestionRequest, content: JSON | None) -> list[list[str]] | None:
    """Read the answers to each question; None: the user declined, or left a question out."""
    if content is None:
        return None
    answers = [
        _read_answer(each, number, content) for number, each in enumerate(request.questions, 1)
    ]
    return answers if all(answers) else None


def _read_answer(question: QuestionInfo, number: int, content: JSON) -> list[str]:
    name = f"answer_{number}"
    # The form shows escaped labels; the model expects its own.
    labels = {escape_controls(option.label): option.label for option in question.options}
    own_words = str(content.get(f"{name}_own") or "").strip()
    if question.multiple and labels:
        ticked = [
            label
            for choice, label in enumerate(labels.values(), 1)
            if content.get(f"{name}_{choice}") is True
        ]
        return [*ticked, *([own_words] if own_words else [])]
    answer = str(cast("Any", content.get(name)) or "").strip()
    if own_words:
        return [own_words]
    return [labels.get(answer, answer)] if answer else []
