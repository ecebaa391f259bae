"""Changes of a configuration file that a client asks for: what is new in them, and the file's text afterwards."""

import json
import re
from collections.abc import Callable
from typing import Any, NoReturn

from codeloop.kit.jsonc import Document, ValueSpan, is_list, is_object, parse
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


def with_listed(text: str | None, key: str, entry: str, is_meant: Callable[[Any], bool]) -> str:
    """Return a file's text (None: no file) with an entry more in a list, the rest as it is, comments too.

    `is_meant`: whether an entry of the list is that one already. Raises JsoncError; NotPlain when there is no list.
    """
    document = parse(text if text and text.strip() else "{}\n", depth=CONFIG_DEPTH.value)
    whole, listed, said = document.text, _listed(document, key), json.dumps(entry, ensure_ascii=False)
    if listed is None:
        at = document.spans[()].start + 1
        comma = "," if document.value else "\n"
        return f'{whole[:at]}\n  "{key}": [{said}]{comma}{whole[at:]}'
    if any(map(is_meant, listed)):
        return whole
    if not listed:
        at = document.spans[key,].start + 1
        return f"{whole[:at]}{said}{whole[at:]}"
    last = document.spans[key, len(listed) - 1]
    start = whole.rfind("\n", 0, last.start) + 1
    indent = whole[start : last.start]
    gap = "\n" + indent if start and not indent.strip() else " "
    return f"{whole[: last.end]},{gap}{said}{whole[last.end :]}"


def without_listed(text: str, key: str, is_meant: Callable[[Any], bool]) -> str:
    """Return a file's text without the entries of a list that are meant, the rest as it is.

    Raises JsoncError; NotPlain when there is something else than a list.
    """
    while True:
        document = parse(text, depth=CONFIG_DEPTH.value)
        listed = _listed(document, key) or []
        place = next((place for place, entry in enumerate(listed) if is_meant(entry)), None)
        if place is None:
            return text
        spans = document.spans
        start, end = spans[key, place].start, spans[key, place].end
        if place + 1 < len(listed):
            end = spans[key, place + 1].start
        elif place:
            start = spans[key, place - 1].end
        text = text[:start] + text[end:] if len(listed) > 1 else _without_member(text, spans[key,])


def _without_member(text: str, span: ValueSpan) -> str:
    """Return the text of an object without a member, and without the comma that parted it from another one."""
    before, after = text[: span.key].rstrip(" \t"), text[span.end :]
    if comma := re.match(r"\s*,", after):
        return before.removesuffix("\n") + after[comma.end() :]
    return re.sub(r",?\s*\Z", "", before) + after


def _listed(document: Document, key: str) -> list[Any] | None:
    if not is_object(document.value):
        raise NotPlain("it is not an object in braces")
    listed = document.value.get(key, None)
    if listed is None:
        return None
    if not is_list(listed):
        raise NotPlain(f"its `{key}` is no list")
    return listed


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
