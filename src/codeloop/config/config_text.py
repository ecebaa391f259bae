"""Edits the text of a configuration file, and keeps its comments and indentation.

Texts are taken and returned; `file_entries.py` and the handlers of the API
read and write the files.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from codeloop.kit.jsonc import Document, KeyPath, ValueSpan, is_list, is_object, parse_jsonc
from codeloop.schema.limits import CONFIG_DEPTH
from codeloop.schema.wire import JSON

_ORDERED_SECTIONS = frozenset(("permission", "tools"))
"""Sections in which the order of keys matters: each is compared and written as one value,
changed keys at its end.
"""
_NOT_AN_OBJECT = "it is not an object in braces"
_FIRST_INDENT = r"\A\s*\{[ \t\r]*\n([ \t]+)\""
"""Matches the start of a file to the first key; its group is the indentation of that key."""


class NotEditable(ValueError):
    """A file can't be edited: it is invalid, or has a value of another type in
    place of an object or a list.
    """


def find_changed_settings(requested: JSON, present: JSON) -> JSON:
    """Return the requested settings that differ from the present ones; null removes a setting.

    What a section holds but does not show, such as variables, can be removed as well.
    """
    return _find_changed(requested, present, is_inner=False)


def _find_changed(requested: JSON, present: JSON, *, is_inner: bool) -> JSON:
    changes: JSON = {}
    for key, value in requested.items():
        old = present.get(key)
        if is_object(value) and is_object(old) and key not in _ORDERED_SECTIONS:
            inner = _find_changed(value, old, is_inner=True)
            if inner:
                changes[key] = inner
        elif value is None and is_inner:
            changes[key] = None
        # Two objects are equal in Python whatever the order of their keys; their texts are not.
        elif value != old or (key in _ORDERED_SECTIONS and json.dumps(value) != json.dumps(old)):
            changes[key] = value
    return changes


def edit_text(text: str | None, change: JSON) -> str:
    """Return a file's text (None: there is no file) with a change merged in;
    comments and indentation stay.

    Raises NotEditable, and ValueError if the result is nested too deeply.
    """
    old: JSON = {} if text is None else _parse_object(text)
    _check_servers(old, change)
    # A file in plain JSON has no comments that could be lost, so it is written anew.
    if text is not None and not _is_plain_json(text):
        for path, value in _list_changes((), old, change):
            text = set_value(text, path, value)
        return text
    indent = re.match(_FIRST_INDENT, text or "")
    result = _merge(old, change, is_ordered=False)
    after = json.dumps(result, indent=indent[1] if indent else 2, ensure_ascii=False) + "\n"
    # Raises ValueError if the file could not be read again.
    parse_jsonc(after, depth=CONFIG_DEPTH.value)
    return after


def _check_servers(old: JSON, change: JSON) -> None:
    """Raise NotEditable for a change of an MCP server that the file has in another form: a part
    in ours beside it would be all that counts, and what is not in `mcp` can't be removed there.
    """
    changed = change.get("mcp")
    if not is_object(changed):
        return
    # Imported late: few changes are of servers.
    from codeloop.config.forms.server_entries import read_servers

    for name in read_servers(old).names:
        is_here = changed.get(name) is None and name in old.get("mcp", {})
        if name in changed and not is_here:
            raise NotEditable(f"its MCP server {name} is in the form of other programs")


def _list_changes(
    path: tuple[str, ...], old: JSON, change: JSON
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path and the new value of each change; None removes a value.
    An ordered section is one value.
    """
    for key, value in change.items():
        before = old.get(key)
        if is_object(value) and is_object(before) and key not in _ORDERED_SECTIONS:
            yield from _list_changes((*path, key), before, value)
        elif is_object(value):
            yield (*path, key), _merge({key: before}, {key: value}, is_ordered=False)[key]
        else:
            yield (*path, key), value


def add_to_list(text: str | None, key: str, entry: str, is_match: Callable[[Any], bool]) -> str:
    """Return a file's text (None: there is no file) with an entry added to the list at `key`,
    the rest as it is.

    Nothing is added if `is_match` accepts an entry of the list. Raises JsoncError; NotEditable if
    the value at `key` is not a list.
    """
    document = parse_jsonc(text if text and text.strip() else "{}\n", depth=CONFIG_DEPTH.value)
    source, entries, literal = (
        document.text,
        _get_list(document, key),
        json.dumps(entry, ensure_ascii=False),
    )
    if entries is None:
        # Behind the opening brace.
        offset = document.spans[()].start + 1
        comma = "," if document.value else "\n"
        return f'{source[:offset]}\n  "{key}": [{literal}]{comma}{source[offset:]}'
    if any(map(is_match, entries)):
        return source
    if not entries:
        offset = document.spans[key,].start + 1
        return f"{source[:offset]}{literal}{source[offset:]}"
    last = document.spans[key, len(entries) - 1]
    line_start = source.rfind("\n", 0, last.start) + 1
    indent = source[line_start : last.start]
    # A list with a line for each entry gets another line.
    gap = "\n" + indent if line_start and not indent.strip() else " "
    return f"{source[: last.end]},{gap}{literal}{source[last.end :]}"


def remove_from_list(text: str, key: str, is_match: Callable[[Any], bool]) -> str:
    """Return a file's text without the entries of the list at `key` that `is_match` accepts,
    the rest as it is.

    Raises JsoncError; NotEditable if the value at `key` is not a list.
    """
    while True:
        document = parse_jsonc(text, depth=CONFIG_DEPTH.value)
        entries = _get_list(document, key) or []
        # One entry at a time, since its removal moves the others.
        index = next((number for number, entry in enumerate(entries) if is_match(entry)), None)
        if index is None:
            return text
        spans = document.spans
        start, end = spans[key, index].start, spans[key, index].end
        if index + 1 < len(entries):
            end = spans[key, index + 1].start
        elif index:
            start = spans[key, index - 1].end
        text = text[:start] + text[end:] if len(entries) > 1 else _remove_member(text, spans[key,])


def set_value(text: str, path: Sequence[str], value: Any) -> str:
    """Return a file's text with the value at a path of keys set (None removes it),
    the rest as it is.

    Raises JsoncError; NotEditable if a value on that path is not an object.
    """
    document = parse_jsonc(text if text.strip() else "{}\n", depth=CONFIG_DEPTH.value)
    current: Any = document.value
    for depth, key in enumerate(path):
        if not is_object(current):
            raise NotEditable(
                f"its `{'.'.join(path[:depth])}` is not an object in braces"
                if depth
                else _NOT_AN_OBJECT
            )
        if key not in current:
            if value is None:
                return text
            return _add_member(
                document, tuple(path[:depth]), key, _wrap_in_objects(path[depth + 1 :], value)
            )
        current = current[key]
    span = document.spans[tuple(path)]
    if value is None:
        return _remove_member(document.text, span)
    return (
        document.text[: span.start]
        + _indent(_format_value(value), 2 * len(path))
        + document.text[span.end :]
    )


def _add_member(document: Document, path: KeyPath, key: str, value: Any) -> str:
    """Return a document's text with a member added at the end of the object at `path`,
    on its own lines.
    """
    text, blanks = document.text, 2 * len(path) + 2
    member = f"\n{' ' * blanks}{json.dumps(key, ensure_ascii=False)}: {_indent(_format_value(value), blanks)}"
    # The ends of the members that the object has already.
    # (The path of the whole document is empty.)
    ends = [span.end for each, span in document.spans.items() if each[:-1] == path and each]
    if ends:
        return f"{text[: max(ends)]},{member}{text[max(ends) :]}"
    offset = document.spans[path].start + 1
    rest = text[offset:]
    line_end = "" if rest.startswith("\n") else "\n" + " " * (blanks - 2)
    return f"{text[:offset]}{member}{line_end}{rest}"


def _wrap_in_objects(keys: Sequence[str], value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _format_value(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _indent(text: str, blanks: int) -> str:
    return text.replace("\n", "\n" + " " * blanks)


def _remove_member(text: str, span: ValueSpan) -> str:
    """Return the text of an object without a member, and without the comma next to it."""
    before, after = text[: span.key].rstrip(" \t"), text[span.end :]
    if comma := re.match(r"\s*,", after):
        return before.removesuffix("\n") + after[comma.end() :]
    return re.sub(r",?\s*\Z", "", before) + after


def _get_list(document: Document, key: str) -> list[Any] | None:
    if not is_object(document.value):
        raise NotEditable(_NOT_AN_OBJECT)
    entries = document.value.get(key, None)
    if entries is None:
        return None
    if not is_list(entries):
        raise NotEditable(f"its `{key}` is not a list")
    return entries


def _parse_object(text: str) -> JSON:
    try:
        value = parse_jsonc(text, depth=CONFIG_DEPTH.value).value
    except (ValueError, RecursionError) as error:
        raise NotEditable(f"it is not valid JSON: {error}") from error
    if not is_object(value):
        raise NotEditable(_NOT_AN_OBJECT)
    return value


def _is_plain_json(text: str) -> bool:
    """Return whether a text is plain JSON: writing its value anew loses no comments."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _merge(old: JSON, change: JSON, *, is_ordered: bool) -> JSON:
    """Return `old` with a change merged in: objects are merged, other values replaced;
    None removes a key.

    `is_ordered`: of several matching keys the last one wins, so changed keys move to the end.
    """
    result = dict(old)
    for key, value in change.items():
        ordered = is_ordered or key in _ORDERED_SECTIONS
        before = result.get(key)
        if is_ordered:
            result.pop(key, None)
        if value is None:
            result.pop(key, None)
        elif is_object(value):
            # `"ask"` is short for `{"*": "ask"}`.
            if ordered and isinstance(before, str):
                before = {"*": before}
            result[key] = _merge(before if is_object(before) else {}, value, is_ordered=ordered)
        else:
            result[key] = value
    return result
