"""Markdown with a YAML head between two lines of three dashes."""

import re
from typing import Any

from msgspec import Struct

from codeloop.kit.jsonc import is_object
from codeloop.kit.text.patterns import compile_once

_FENCE = r"---[ \t]*\r?(?:\n|\Z)"
_CLOSING = r"(?m)^---[ \t]*\r?$"
# A key at the start of a line with its value, and the indented lines that go on with it.
_ENTRY = (
    r"(?m)^([A-Za-z_][\w-]*):(?:[ \t]+(.*?))?[ \t]*\r?(?:\n((?:[ \t]+.*(?:\n|\Z)|[ \t]*\r?\n)*)|\Z)"
)
# The beginnings of values that are not texts: a block, a tag, a list or mapping without its end.
_NO_TEXT = r"[|>]|!!|\[[^\]]*\Z|\{[^}]*\Z"
_PAIR_BELOW = r"(?m)^[ \t]+(?:- |[\w-]+:)"
_NOT_ENTRY = r"(?m)^[^\s#]"

_MAX_DEPTH = 64


class FrontmatterError(ValueError):
    """The head can't be read; `line` (from 1) counts from the start of the text."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class Frontmatter(Struct, frozen=True):
    """The YAML head as its keys and values, empty when there is none, and everything after it."""

    head: dict[str, Any]
    body: str


def split_frontmatter(text: str) -> Frontmatter:
    """Split a text into its head and its body. The body starts after the line that closes the head,
    unchanged.

    In a head that is not valid YAML, each key is read alone, and a text that is not valid YAML is
    taken as it is: people write `description: Use this: often` and `argument-hint: [file] [line]`.
    Raises FrontmatterError with the line.
    """
    text = text.removeprefix("\ufeff")
    opening = re.match(_FENCE, text)
    if opening is None:
        return Frontmatter({}, text)
    closing = compile_once(_CLOSING).search(text, opening.end())
    if closing is None:
        raise FrontmatterError(
            "the head that starts in line 1 has no closing line of three dashes", 1
        )
    source = text[opening.end() : closing.start()]
    body = text[closing.end() :]
    return Frontmatter(_parse_head(source), body.removeprefix("\n"))


def _parse_head(source: str) -> dict[str, Any]:
    from yaml import YAMLError

    try:
        head = _load_yaml(source)
    except YAMLError as error:
        if (head := _parse_entries(source)) is None:
            raise FrontmatterError(*_describe_yaml_error(error)) from error
    if head is None:
        return {}
    if not is_object(head):
        raise FrontmatterError(f"expected `key: value` lines, found a {type(head).__name__}", 2)
    return {str(key): value for key, value in head.items()}


def _parse_entries(source: str) -> dict[str, Any] | None:
    """Return the keys of a head, each read alone;
    None: something besides texts is not valid YAML.
    """
    from yaml import YAMLError

    head: dict[str, Any] = {}
    if re.search(_NOT_ENTRY, re.sub(_ENTRY, "", source)) is not None:
        return None
    for entry in re.finditer(_ENTRY, source):
        try:
            head |= _load_yaml(entry[0])
        except YAMLError:
            # A mapping or list below the key, or one that is not closed, may be rules,
            # which must not be lost.
            if (
                not entry[2]
                or re.match(_NO_TEXT, entry[2])
                or re.search(_PAIR_BELOW, entry[3] or "")
            ):
                return None
            head[entry[1]] = " ".join([entry[2].strip("\"'"), *(entry[3] or "").split()])
    return head


def _load_yaml(source: str) -> Any:
    import yaml

    # The fast loader is absent where PyYAML was built without libyaml.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    # The check parses a head once more. Each level needs one of these characters,
    # so most heads don't need it.
    if sum(map(source.count, "[{?-:")) > _MAX_DEPTH:
        _check_depth(loader(source), yaml.CollectionStartEvent, yaml.CollectionEndEvent)
    try:
        return loader(source).get_single_data()
    except (RecursionError, ValueError) as error:
        raise FrontmatterError(f"a value can't be read: {error}", 2) from error
    # PyYAML's own mistakes with `!!int ""`, `!!bool maybe` and `!!timestamp soon`: their
    # texts say nothing to a user.
    except (LookupError, AttributeError) as error:
        raise FrontmatterError(
            "a value does not fit the type before it, such as `!!int` or `!!bool`", 2
        ) from error


def _check_depth(loader: Any, begin: type, end: type) -> None:
    """Raise FrontmatterError for a head that is nested so deeply that reading
    it would end the process.
    """
    depth = 0
    while (event := loader.get_event()) is not None:
        depth += isinstance(event, begin) - isinstance(event, end)
        if depth > _MAX_DEPTH:
            raise FrontmatterError("it is nested too deeply", event.start_mark.line + 2)


def _describe_yaml_error(error: Exception) -> tuple[str, int]:
    """Return the problem and its line in the whole text;
    the head's own first line is the text's second.
    """
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    what = getattr(error, "problem", None) or str(error)
    return f"not valid YAML: {what}", (mark.line if mark else 0) + 2
