"""JSON values for people to read: indented, as a block of markdown,
or as the arguments of a call.
"""

from collections.abc import Mapping

from codeloop.kit.text.terminal_text import escape_controls

_MAX_ARGUMENT_CHARS = 500


def format_json(value: object) -> str:
    """Format a value as indented JSON."""
    import json

    return json.dumps(value, indent=2, ensure_ascii=False)


def format_arguments(values: Mapping[str, object]) -> str:
    """Return a call's arguments as people read them: `name: value, name: value`."""
    return ", ".join(
        f"{escape_controls(name)}: {_format_argument(value)}" for name, value in values.items()
    )


def _format_argument(value: object) -> str:
    if isinstance(value, str):
        return escape_controls(value[:_MAX_ARGUMENT_CHARS])
    import json

    return escape_controls(
        json.dumps(value, ensure_ascii=False, separators=(",", ":"))[:_MAX_ARGUMENT_CHARS]
    )


def format_json_block(text: str) -> str:
    """Return a text that is a JSON object or list as a code block in markdown;
    any other text as it is.
    """
    plain = text.strip()
    if plain[:1] + plain[-1:] not in {"{}", "[]"}:
        return text
    import json

    try:
        return f"```json\n{format_json(json.loads(plain))}\n```"
    except (ValueError, RecursionError):
        return text
