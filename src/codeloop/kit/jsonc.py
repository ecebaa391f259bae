"""Parser of JSON with comments and trailing commas, with the position of each value."""

import json
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NoReturn, TypeGuard

from msgspec import Struct

from codeloop.kit.text.patterns import compile_once

KeyPath = tuple[str | int, ...]
"""The keys and list indexes that lead to a value."""

_SPACE_AND_COMMENTS = r"(?s)(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*"
_PLAIN_STRING = r'"([^"\\\x00-\x1f]*)"'
_NUMBER_PATTERN = r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?"
_WORD_PATTERN = r"\w+"
_LITERALS: dict[str, Any] = {"true": True, "false": False, "null": None}
_MAX_DEPTH = 128
_DECODER = json.JSONDecoder()


class Position(Struct, frozen=True):
    """A position in a text. Both numbers count from 1, columns in characters."""

    line: int
    column: int

    def __str__(self) -> str:
        """Return `line:column`."""
        return f"{self.line}:{self.column}"


class ValueSpan(Struct, frozen=True):
    """The span of a value in a text, in characters from 0: its key (itself where it has none),
    its start, its end.
    """

    key: int
    start: int
    end: int


class JsoncError(ValueError):
    """The text is not JSON with comments. `position` says where,
    the message what was expected there.
    """

    def __init__(self, message: str, position: Position) -> None:
        super().__init__(message)
        self.position = position


class Document(Struct, frozen=True, dict=True):
    """A parsed text: its value, and the position of every key and value in it,
    computed when first needed.

    Of equal keys the last one counts. `depth`: the number of levels that were allowed.
    """

    text: str
    value: Any
    depth: int = _MAX_DEPTH

    def find_position(self, path: KeyPath, *, of_key: bool = False) -> Position:
        """Return the position of the value (or of its key) at `path`,
        or else of the nearest value around it.
        """
        while path and path not in self.spans:
            path = path[:-1]
        span = self.spans[path]
        return find_position(self.text, span.key if of_key else span.start)

    @cached_property
    def spans(self) -> dict[KeyPath, ValueSpan]:
        """The position of every value, by its path; () for the document."""
        parser = _Parser(self.text, self.depth)
        parser.parse_document()
        return parser.spans


def parse_jsonc(text: str, *, depth: int = _MAX_DEPTH) -> Document:
    """Read a text that may hold `//` and `/* */` comments and trailing commas.

    `depth`: the number of levels; deeper nesting is an error. Of equal keys the last one counts.
    Raises JsoncError.
    """
    return Document(text, _parse_strict(text, depth), depth)


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether a value read from JSON is an object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Return whether a value read from JSON is a list."""
    return isinstance(value, list)


def merge_objects(value: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Merge two objects, nested ones key by key; values of `over` take precedence.

    The keys of `over` come last, since of two spellings of one option the later one counts.
    """
    merged = {key: each for key, each in value.items() if key not in over}
    for key, each in over.items():
        below = value.get(key)
        merged[key] = merge_objects(below, each) if is_object(below) and is_object(each) else each
    return merged


def get_type_name(value: Any) -> str:
    """Return the name of a JSON value's type, as error messages write it;
    "integer" and "number" are two types.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "list"
        case _:
            return "object"


def iterate_texts(value: Any) -> Iterator[str]:
    """Yield the texts inside a value read from JSON, in their order; keys are left out."""
    if isinstance(value, str):
        yield value
    elif is_object(value):
        for each in value.values():
            yield from iterate_texts(each)
    elif is_list(value):
        for each in value:
            yield from iterate_texts(each)


def find_position(text: str, offset: int) -> Position:
    """Return line and column of an offset in characters."""
    before = text.rfind("\n", 0, offset)
    return Position(text.count("\n", 0, offset) + 1, offset - before)


def _parse_strict(text: str, depth: int) -> Any:
    """Parse valid JSON with the fast parser of `json`;
    what that refuses or is too lenient about, with our own.
    """
    # An escaped half of a surrogate pair, which `json` accepts alone.
    if "\\ud" not in text and "\\uD" not in text:
        try:
            value = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            pass
        else:
            # Counting is quick, and proves most texts to be shallow enough.
            if text.count("{") + text.count("[") <= depth or _is_shallow(value, depth):
                return value
    return _Parser(text, depth).parse_document()


def _is_shallow(value: Any, depth: int) -> bool:
    level: list[Any] = [value]
    for _ in range(depth + 1):
        level = [child for each in level for child in _list_children(each)]
    return not level


def _list_children(value: Any) -> list[Any]:
    if is_object(value):
        return list(value.values())
    return value if is_list(value) else []


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(word)


class _Parser:
    """One pass over a text by recursive descent. `offset`: the next character;
    `spans`: those of the values so far.
    """

    def __init__(self, text: str, depth: int) -> None:
        self.text = text
        self.depth = depth
        self.offset = 0
        self.spans: dict[KeyPath, ValueSpan] = {}

    def parse_document(self) -> Any:
        # A byte order mark, which editors on Windows write.
        self.offset = 1 if self.text.startswith("\ufeff") else 0
        self.skip_space()
        value = self.parse_value((), self.offset)
        self.skip_space()
        if self.offset < len(self.text):
            self.fail("expected nothing more after the value")
        return value

    def parse_value(self, path: KeyPath, key_offset: int) -> Any:
        start = self.offset
        value = self.parse_any(path)
        self.spans[path] = ValueSpan(key_offset, start, self.offset)
        return value

    def parse_any(self, path: KeyPath) -> Any:
        char = self.peek()
        if char == '"':
            return self.parse_string()
        if char == "'":
            self.fail("expected double quotes", show=False)
        if not char or char not in "{[":
            return self.parse_scalar()
        if len(path) >= self.depth:
            self.fail(f"expected at most {self.depth} levels", show=False)
        self.offset += 1
        return self.parse_members(path) if char == "{" else self.parse_items(path)

    def parse_members(self, path: KeyPath) -> dict[str, Any]:
        members: dict[str, Any] = {}
        self.skip_space()
        while not self.take_char("}"):
            key_offset = self.offset
            if self.peek() != '"':
                self.fail("expected a key in double quotes" + (" or '}'" if not members else ""))
            key = self.parse_string()
            self.skip_space()
            if not self.take_char(":"):
                self.fail("expected ':' after the key")
            self.skip_space()
            members[key] = self.parse_value((*path, key), key_offset)
            self.skip_separator("}")
        return members

    def parse_items(self, path: KeyPath) -> list[Any]:
        items: list[Any] = []
        self.skip_space()
        while not self.take_char("]"):
            items.append(self.parse_value((*path, len(items)), self.offset))
            self.skip_separator("]")
        return items

    def skip_separator(self, closing: str) -> None:
        self.skip_space()
        if self.take_char(","):
            self.skip_space()
        elif self.peek() != closing:
            self.fail(f"expected ',' or '{closing}'")

    def parse_string(self) -> str:
        # Most strings have no escapes.
        plain = compile_once(_PLAIN_STRING).match(self.text, self.offset)
        if plain is not None:
            self.offset = plain.end()
            return plain[1]
        start = self.offset
        try:
            text, self.offset = _DECODER.raw_decode(self.text, start)
            text.encode()
        except json.JSONDecodeError as error:
            self.offset = error.pos
            self.fail(_describe_string_error(error.msg), show=False)
        except UnicodeEncodeError:
            self.offset = start
            self.fail("expected both halves of a surrogate pair in this string", show=False)
        return text

    def parse_scalar(self) -> Any:
        number = compile_once(_NUMBER_PATTERN).match(self.text, self.offset)
        if number is not None:
            try:
                value = float(number[0]) if number[1] or number[2] else int(number[0])
            except ValueError:  # Python converts no integer of more than 4,300 digits
                self.fail("expected a number with fewer digits", show=False)
            self.offset = number.end()
            return value
        word = compile_once(_WORD_PATTERN).match(self.text, self.offset)
        if word is None or word[0] not in _LITERALS:
            self.fail("expected a value")
        self.offset = word.end()
        return _LITERALS[word[0]]

    def skip_space(self) -> None:
        match = compile_once(_SPACE_AND_COMMENTS).match(self.text, self.offset)
        self.offset = match.end() if match else self.offset
        if self.text.startswith("/*", self.offset):
            self.fail("expected '*/' at the end of this comment", show=False)

    def peek(self) -> str:
        return self.text[self.offset : self.offset + 1]

    def take_char(self, char: str) -> bool:
        if self.peek() != char:
            return False
        self.offset += 1
        return True

    def fail(self, expectation: str, *, show: bool = True) -> NoReturn:
        """Raise JsoncError. `show`: the message also says what was found instead."""
        position = find_position(self.text, self.offset)
        word = compile_once(_WORD_PATTERN).match(self.text, self.offset)
        token = word[0][:20] if word else self.peek()
        detail = f", found {ascii(token) if token else 'the end of the text'}" if show else ""
        raise JsoncError(expectation + detail, position)


def _describe_string_error(reason: str) -> str:
    if reason.startswith("Unterminated"):
        return "expected a closing double quote for the string that starts here"
    if reason.startswith("Invalid control"):
        return "expected no line break or control character inside a string (write it as \\n, \\t or \\u....)"
    return "expected a valid escape after the backslash"
