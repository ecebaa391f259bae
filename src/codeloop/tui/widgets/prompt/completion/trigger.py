"""Finds the word at the cursor that can be completed: a command, its arguments, or a mention.
Without side effects.
"""

from typing import Literal

from msgspec import Struct

from codeloop.kit.text.patterns import compile_once

# An `@` within a word (an address), after a slash or a backtick begins no mention. A path may be
# quoted; unquoted it ends at punctuation, but for a colon within it (`docs:note://today`,
# the name of an MCP resource).
_MENTION = (
    r"""(?<![\w`@/.])@(?:"([^"\n]*)|((?:[^\s`"',;:!?()<>\[\]{}]+:)*[^\s`"',;:!?()<>\[\]{}]*))\Z"""
)
_UNQUOTED = r"""[^\s`"',;:!?()<>\[\]{}]+(?::[^\s`"',;:!?()<>\[\]{}]+)*"""
# While a range is being typed its numbers may still be missing: `#`, `#10`, `#10-`.
_RANGE = r"#\d*(-\d*)?\Z"
# A second slash makes it a path, such as `/etc/hosts`.
_COMMAND = r"/([^\s/]*)\Z"
_ARGUMENTS = r"/([^\s/]+)[ \t]"
_MAX_LOOKBACK = 400
"""The characters before the cursor that are scanned: longer words are not completed."""


class Trigger(Struct, frozen=True):
    """The text at the cursor that can be completed, from `start` to `end`.

    `query`: the typed command or path; `range`: the line range after a path, such as `#10-20`.
    For arguments, `query` is the command's name and `arguments` the text after it.
    """

    kind: Literal["command", "arguments", "mention"]
    start: int
    end: int
    query: str
    range: str = ""
    arguments: str = ""


def find_trigger(text: str, cursor: int) -> Trigger | None:
    """Return the text at the cursor that can be completed, with its kind; None: there is none."""
    if text.startswith("/"):
        head = text[:cursor] if cursor < _MAX_LOOKBACK else text[:_MAX_LOOKBACK]
        if (match := compile_once(_COMMAND).match(head)) is not None:
            return Trigger("command", 0, cursor, match[1])
        if (
            (match := compile_once(_ARGUMENTS).match(head)) is not None
            and "\n" not in head
            and "@" not in head
        ):
            return Trigger("arguments", 0, cursor, match[1], arguments=text[match.end() : cursor])
    start = max(cursor - _MAX_LOOKBACK, 0)
    if (match := compile_once(_MENTION).search(text[start:cursor])) is None:
        return None
    query = match[1] if match[1] is not None else match[2]
    span = compile_once(_RANGE).search(query)
    query, lines = (query[: span.start()], span[0]) if span else (query, "")
    return Trigger("mention", start + match.start(), cursor, query, lines)


def format_mention(path: str, lines: str = "") -> str:
    """Return a path as a mention, in quotes where the parser of mentions needs them."""
    name = path + lines
    # Without quotes a final full stop would be read as the end of a sentence.
    needs_quotes = compile_once(_UNQUOTED).fullmatch(name) is None or name.endswith(".")
    return f'@"{name}"' if needs_quotes else f"@{name}"
