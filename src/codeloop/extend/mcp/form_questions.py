"""Turns a form that an MCP server sends (elicitation) into questions for the user,
and the answers into its content.
"""

import re
from contextlib import suppress
from typing import Any, cast

from codeloop.kit.text.secret_questions import asks_for_secret
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.errors import CodeloopError
from codeloop.schema.question import QuestionInfo, QuestionOption
from codeloop.schema.wire import JSON

_MAX_HEADER_CHARS = 30
# Splits `cardPin`, `card_pin` and `PIN code` into words.
_LABEL_WORD = r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+"
_WORDS_AFTER_PIN = frozenset(("code", "number", "no", "nr"))
# These names of fields say nothing; for them the form's message is searched for
# words such as "password".
_GENERIC_NAMES = frozenset(("value", "answer", "input", "response", "text", "data", "result"))


class SecretAsked(CodeloopError):
    """A form asks for a secret. Secrets are never entered in forms."""


def make_questions(schema: JSON, heading: str, message: str = "") -> list[QuestionInfo]:
    """Return a question for each field of a form; for a form without fields, a yes/no question.
    Raises SecretAsked.

    `heading`: says which server asks, and comes first in each question.
    `message`: the server's own.
    """
    fields = _get_fields(schema)
    for name, field in fields.items():
        if _is_secret(name, field, message):
            raise SecretAsked(f"it asks for {escape_controls(name)!r}, a secret")
    if not fields:
        agree = [
            QuestionOption(label="Yes", description=""),
            QuestionOption(label="No", description=""),
        ]
        return [QuestionInfo(question=heading, header="Agree", options=agree, custom=False)]
    required = schema.get("required", [])
    return [
        _make_question(name, field, heading, is_required=name in required)
        for name, field in fields.items()
    ]


def _is_secret(name: str, field: JSON, message: str) -> bool:
    """Return whether a field is for a secret; one with fixed choices is only if
    its format is `password`.
    """
    if field.get("format") == "password":
        return True
    if _list_choices(field) or field.get("type") == "array":
        return False
    title, description = str(field.get("title") or ""), str(field.get("description") or "")
    if _names_pin(name) or _names_pin(title):
        return True
    # Numbers are about secrets, not secrets themselves: a limit of tokens, the length of passwords.
    if field.get("type") in {"integer", "number"}:
        return False
    has_generic_name = name.lower() in _GENERIC_NAMES
    return any(
        map(asks_for_secret, (name, title, description, message if has_generic_name else ""))
    )


def _names_pin(label: str) -> bool:
    """Return whether a name or title is of a PIN: `card_pin` and `PIN code` are,
    `Pin to the top` is not.
    """
    words = [word.lower() for word in re.findall(_LABEL_WORD, label)]
    return "pin" in words and (
        words[-1] == "pin" or words[words.index("pin") + 1] in _WORDS_AFTER_PIN
    )


def _make_question(name: str, field: JSON, heading: str, *, is_required: bool) -> QuestionInfo:
    label = escape_controls(str(field.get("title") or name))
    description = escape_controls(str(field.get("description") or ""))
    choices = _list_choices(field)
    note = "" if is_required else " (optional)"
    if "default" in field:
        note = f" (left out: {escape_controls(_format_default(field))})"
    return QuestionInfo(
        question=f"{heading}\n{label}{note}{': ' + description if description else ''}",
        header=label[:_MAX_HEADER_CHARS],
        options=[QuestionOption(label=each, description="") for each in choices],
        multiple=True if field.get("type", "string") == "array" else None,
        custom=False if choices else None,
    )


def _format_default(field: JSON) -> str:
    """Return a field's default for display."""
    value = field["default"]
    if isinstance(value, bool):
        return "Yes" if value else "No"
    names = {str(each): name for name, each in _map_values(field).items()}
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    return ", ".join(names.get(str(each), str(each)) for each in values)


def _list_choices(field: JSON) -> list[str]:
    """Return the texts that the user can choose from; empty: the user types the value."""
    if field.get("type") == "boolean":
        return ["Yes", "No"]
    return list(_map_values(field))


def _map_values(field: JSON) -> dict[str, Any]:
    """Return a field's allowed values, by display text."""
    items: JSON = field.get("items", {}) if field.get("type") == "array" else field
    options: list[JSON] = items.get("oneOf") or items.get("anyOf") or []
    if options:
        return {
            escape_controls(str(option.get("title", option.get("const")))): option.get("const")
            for option in options
        }
    values: list[Any] = items.get("enum", [])
    # Older servers name the values of `enum` in `enumNames`, newer ones in `oneOf`.
    names: list[Any] = items.get("enumNames", values)
    return {escape_controls(str(name)): value for name, value in zip(names, values, strict=False)}


def convert_answers(schema: JSON, answers: list[list[str]]) -> JSON | None:
    """Convert the answers to the types of a form's fields;
    None if the user disagreed or left out a required field.
    """
    fields = _get_fields(schema)
    if not fields:
        return {} if answers[0][:1] == ["Yes"] else None
    content: JSON = {}
    for (name, field), choices in zip(fields.items(), answers, strict=True):
        value = _convert_answer(field, [each for each in choices if each.strip()])
        if value is not None:
            content[name] = value
        # A form with a missing field is invalid, so it counts as not filled in.
        elif name in schema.get("required", []):
            return None
    return content


def _convert_answer(field: JSON, choices: list[str]) -> Any:
    """Convert an answer to its field's type. No answer gives the default,
    a text of another type None.
    """
    if not choices:
        return field.get("default")
    values = _map_values(field)
    match field.get("type"):
        case "boolean":
            return choices[0] == "Yes"
        case "array":
            return [values.get(each, each) for each in choices]
        case "integer" | "number" as kind:
            with suppress(ValueError):
                return int(choices[0]) if kind == "integer" else float(choices[0])
            return None
        case _:
            return values.get(choices[0], choices[0])


def _get_fields(schema: JSON) -> dict[str, JSON]:
    return cast("dict[str, JSON]", schema.get("properties") or {})
