"""Converts a session's questions to MCP forms, and filled-in forms to answers. Pure.

A form never asks for a secret: it goes through a program that we don't know, and may end up before its model.
"""

from typing import Any, cast

from msgspec import Struct

from codeloop.client.permission_text import Asking, in_words
from codeloop.kit.terminal_text import escape_controls
from codeloop.schema.permission import PermissionRequest, Reply
from codeloop.schema.question import QuestionInfo, QuestionRequest, asks_for_secret
from codeloop.schema.wire import JSON

Request = PermissionRequest | QuestionRequest
_COLUMNS, _ROWS = 100, 60
_SHORT = 200
ONCE, DENY = "Allow once", "Deny"
_WORDS = "instead"


class ElicitedForm(Struct, frozen=True):
    """A message and the schema of its answer, as elicitation has them."""

    message: str
    schema: JSON


class FormReply(Struct, frozen=True):
    """A permission that was given or refused, the latter with words for the model perhaps."""

    reply: Reply
    message: str | None = None


def form_of(request: Request, asking: Asking) -> ElicitedForm | None:
    """Return the form for a request; None when it would ask for a secret."""
    if isinstance(request, PermissionRequest):
        return _permission(request, asking)
    if any(asks_for_secret(f"{each.header} {each.question}") for each in request.questions):
        return None
    who = f"codeloop asks{f' (its {asking.subagent})' if asking.subagent else ''}:"
    many = len(request.questions) > 1
    lines = [f"{number}. {escape_controls(each.question)}" for number, each in enumerate(request.questions, 1)]
    message = "\n".join([who, *(lines if many else [escape_controls(request.questions[0].question)])])
    fields: JSON = {}
    required: list[str] = []
    for number, each in enumerate(request.questions, 1):
        own, own_required = _fields(each, number)
        fields |= own
        required += own_required
    return ElicitedForm(message, {"type": "object", "properties": fields, "required": required})


def _permission(request: PermissionRequest, asking: Asking) -> ElicitedForm:
    words = in_words(request, asking, _COLUMNS, _ROWS)
    lines = [f"codeloop asks: {escape_controls(words.title)}", *(row for _, row in words.rows)]
    choices = [ONCE, *([_label_always(words.always)] if words.always else []), DENY]
    decision = {"type": "string", "title": "Allow it?", "enum": choices}
    instead = {"type": "string", "title": "If not: what to do instead", "description": "The work then goes on."}
    schema = {"type": "object", "properties": {"decision": decision, _WORDS: instead}, "required": ["decision"]}
    return ElicitedForm("\n".join(lines), schema)


def _label_always(text: str) -> str:
    line = " ".join(text.split())
    return f"Allow always: {line if len(line) <= _SHORT else f'{line[:_SHORT]}…'}"


def permission_answer(content: JSON | None) -> FormReply:
    """Read a filled-in permission form; None: it was declined."""
    decision = str((content or {}).get("decision", DENY))
    if decision == ONCE:
        return FormReply("once")
    if decision.startswith("Allow always"):
        return FormReply("always")
    return FormReply("reject", str((content or {}).get(_WORDS, "")).strip() or None)


def _fields(question: QuestionInfo, number: int) -> tuple[JSON, list[str]]:
    """Return the fields of a question, and which of them have to be filled in."""
    name, title = f"answer_{number}", escape_controls(question.header or question.question)[:_SHORT]
    labels = [escape_controls(option.label) for option in question.options]
    descriptions = "; ".join(f"{o.label}: {o.description}" for o in question.options if o.description)
    about: JSON = {"description": escape_controls(descriptions)} if descriptions else {}
    own: JSON = {"type": "string", "title": f"{title}: in your own words"}
    if not labels:
        return {name: {"type": "string", "title": title}}, [name]
    if question.multiple:
        fields: JSON = {f"{name}_{at}": {"type": "boolean", "title": label} for at, label in enumerate(labels, 1)}
    else:
        fields = {name: {"type": "string", "title": title, "enum": labels, **about}}
    if question.custom is False:
        return fields, [name] if name in fields else []
    return {**fields, f"{name}_own": own}, []


def question_answers(request: QuestionRequest, content: JSON | None) -> list[list[str]] | None:
    """Return the answers to each question; None: declined, or one was left out."""
    if content is None:
        return None
    answers = [_answer(each, number, content) for number, each in enumerate(request.questions, 1)]
    return answers if all(answers) else None


def _answer(question: QuestionInfo, number: int, content: JSON) -> list[str]:
    name = f"answer_{number}"
    labels = {escape_controls(option.label): option.label for option in question.options}
    own = str(content.get(f"{name}_own") or "").strip()
    if question.multiple and labels:
        choices = [label for at, label in enumerate(labels.values(), 1) if content.get(f"{name}_{at}") is True]
        return [*choices, *([own] if own else [])]
    answer = str(cast("Any", content.get(name)) or "").strip()
    return [own] if own else [labels.get(answer, answer)] if answer else []
