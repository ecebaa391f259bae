"""Permission requests and questions in the form of version 2, and its answers. Does no I/O."""

from typing import Any

import msgspec

from codeloop.kit.jsonc import is_list
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.question import QuestionInfo, QuestionRequest
from codeloop.schema.wire import JSON
from codeloop.server.version2.names import rename_permission
from codeloop.server.version2.session_forms import make_object


def translate_permission(request: PermissionRequest) -> JSON:
    """Return a permission request in version 2's form."""
    source = None
    if request.tool is not None:
        call = msgspec.to_builtins(request.tool)
        # The preview of version 2 called the id of the call `callID`.
        source = {"type": "tool", "id": request.tool.call_id, **call}
    return make_object(
        id=request.id,
        sessionID=request.session_id,
        action=rename_permission(request.permission),
        resources=request.patterns,
        save=request.always or None,
        metadata=request.metadata,
        source=source,
    )


def translate_permissions(requests: list[PermissionRequest]) -> list[JSON]:
    """Return permission requests in version 2's form."""
    return [translate_permission(each) for each in requests]


def translate_question(request: QuestionRequest) -> JSON:
    """Return a request with questions as the form that it is in version 2:
    a field for each question.
    """
    fields = [_translate_field(number, each) for number, each in enumerate(request.questions)]
    source = None if request.tool is None else msgspec.to_builtins(request.tool)
    return make_object(
        id=request.id,
        sessionID=request.session_id,
        title=request.questions[0].header if request.questions else "",
        fields=fields,
        metadata=None if source is None else {"tool": source},
    )


def _make_key(number: int) -> str:
    return f"question{number}"


def _translate_field(number: int, question: QuestionInfo) -> JSON:
    options = [
        {"value": each.label, "label": each.label, "description": each.description}
        for each in question.options
    ]
    field = {
        "key": _make_key(number),
        "title": question.header,
        "description": question.question,
        "required": True,
        "options": options,
        "custom": question.custom is not False,
    }
    return {**field, "type": "multiselect" if question.multiple else "string"}


def read_answers(request: QuestionRequest, answer: JSON) -> list[list[str]] | str:
    """Return the answers to a request's questions; a text: why the form is not answered by this."""
    answers: list[list[str]] = []
    for number, question in enumerate(request.questions):
        value: Any = answer.get(_make_key(number))
        if value is None:
            return f"The field {_make_key(number)} has no answer."
        values: list[Any] = value if is_list(value) else [value]
        answers.append([str(each) for each in values])
        labels = {option.label for option in question.options}
        if question.custom is False and not labels.issuperset(answers[-1]):
            return f"The answer to {_make_key(number)} must be one of its options."
    return answers


def write_answers(answers: list[list[str]]) -> JSON:
    """Return the answers to a request's questions as those to its form."""
    return {
        _make_key(number): each if len(each) != 1 else each[0]
        for number, each in enumerate(answers)
    }


def find_form_problem(fields: list[JSON], answer: JSON) -> str:
    """Return why an answer does not fit a client's form; "": it does."""
    types = {
        "string": str,
        "number": (int, float),
        "integer": int,
        "boolean": bool,
        "multiselect": list,
    }
    for field in fields:
        key, kind = str(field.get("key")), str(field.get("type"))
        if kind == "external" or not _is_shown(field, answer):
            continue
        value: Any = answer.get(key)
        if value is None:
            if field.get("required"):
                return f"The field {key} needs an answer."
            continue
        is_flag = isinstance(value, bool) and kind != "boolean"
        if is_flag or not isinstance(value, types.get(kind, object)):
            return f"The answer to {key} is not of the type {kind}."
        # A list: what the answer holds need not be hashable.
        allowed = [option.get("value") for option in field.get("options") or ()]
        chosen: list[Any] = value if is_list(value) else [value]
        if allowed and not field.get("custom") and any(each not in allowed for each in chosen):
            return f"The answer to {key} must be one of its options."
    unknown = set(answer) - {str(field.get("key")) for field in fields}
    return f"The form has no field {', '.join(sorted(unknown))}." if unknown else ""


def _is_shown(field: JSON, answer: JSON) -> bool:
    """Return whether a field is to be answered, after the other answers."""
    conditions: list[JSON] = field.get("when") or []
    return all(
        (answer.get(str(each.get("key"))) == each.get("value")) == (each.get("op") != "neq")
        for each in conditions
    )
