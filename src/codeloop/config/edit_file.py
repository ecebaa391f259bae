"""Changes of a configuration file that a client asks for: what is new in them, and the file's text afterwards."""

import json
import re
from typing import NoReturn

from codeloop.kit.jsonc import is_object, parse
from codeloop.schema.limits import CONFIG_DEPTH
from codeloop.schema.wire import JSON

_WHOLE = frozenset(("permission", "tools"))
"""Sections in which the order counts: they are the same as a whole, or not."""
_INDENT = re.compile(r"\A\s*\{[ \t\r]*\n([ \t]+)\"")


class NotPlain(ValueError):
    """A file is not a plain JSON object: rewriting it would lose its comments."""


def changed_settings(wanted: JSON, now: JSON) -> JSON:
    """Return what of the wanted settings is not so already; null takes a setting out."""
    found: JSON = {}
    for key, value in wanted.items():
        old = now.get(key)
        if is_object(value) and is_object(old) and key not in _WHOLE:
            inner = changed_settings(value, old)
            if inner:
                found[key] = inner
        elif value != old:
            found[key] = value
    return found


def edited(text: str | None, change: JSON) -> str:
    """Return a file's text (None: no file) with a change merged in, indented as before.

    Raises NotPlain; ValueError when the outcome is nested too deep.
    """
    old: JSON = {} if text is None else _plain(text)
    indent = _INDENT.match(text or "")
    merged = _merged(old, change, is_ordered=False)
    after = json.dumps(merged, indent=indent[1] if indent else 2, ensure_ascii=False) + "\n"
    parse(after, depth=CONFIG_DEPTH.value)
    return after


def _plain(text: str) -> JSON:
    try:
        parse(text, depth=CONFIG_DEPTH.value)
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise NotPlain("it holds comments or is not valid JSON") from error
    if not is_object(value):
        raise NotPlain("it is not an object in braces")
    return value


def _refuse(word: str) -> NoReturn:
    raise ValueError(word)


def _merged(old: JSON, change: JSON, *, is_ordered: bool) -> JSON:
    """Merge objects and replace everything else. Where the last entry wins (`is_ordered`), changed ones come last."""
    merged = dict(old)
    for key, value in change.items():
        ordered = is_ordered or key in _WHOLE
        before = merged.get(key)
        if is_ordered:
            merged.pop(key, None)
        if value is None:
            merged.pop(key, None)
        elif is_object(value):
            if ordered and isinstance(before, str):  # `"ask"` is short for `{"*": "ask"}`
                before = {"*": before}
            merged[key] = _merged(before if is_object(before) else {}, value, is_ordered=ordered)
        else:
            merged[key] = value
    return merged
