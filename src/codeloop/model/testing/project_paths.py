"""The placeholders for a project's paths in scripts and recordings, by which other projects can play them."""

import re
from typing import NamedTuple

import msgspec

from codeloop.model.testing.script import (
    CallBlock,
    ReasoningBlock,
    RetryBlock,
    ScriptedAnswer,
    ScriptedBlock,
    ScriptedCall,
    TextBlock,
)


class ProjectPaths(NamedTuple):
    """The present project: working directory and root of the work tree, absolute paths or empty."""

    directory: str = ""
    root: str = ""


NO_PATHS = ProjectPaths()


def fill_paths(answer: ScriptedAnswer, paths: ProjectPaths) -> ScriptedAnswer:
    """Return an answer with the present paths in place of its placeholders."""
    words = {answer.directory: paths.directory, answer.root: paths.root}
    replacer = _make_replacer({word: path for word, path in words.items() if word and path})
    return answer if replacer is None else _map_answer(answer, replacer)


def mask_paths(answer: ScriptedAnswer, paths: ProjectPaths) -> ScriptedAnswer:
    """Replace the project's paths by placeholders that do not occur in the answer otherwise."""
    text = msgspec.json.encode(answer).decode()
    directory = _find_free_placeholder("directory", text)
    root = _find_free_placeholder("root", text)
    words = {paths.root: root, paths.directory: directory}
    # An empty path is unknown, and `/` is in nearly every text.
    replacer = _make_replacer({path: word for path, word in words.items() if len(path) > 1}, only_full_names=True)
    masked = answer if replacer is None else _map_answer(answer, replacer)
    return msgspec.structs.replace(masked, directory=directory, root=root)


def _find_free_placeholder(name: str, text: str) -> str:
    word, number = f"{{{name}}}", 1
    while word in text:
        number += 1
        word = f"{{{name}-{number}}}"
    return word


class _WordReplacer(NamedTuple):
    """A function that replaces words in a text: `pattern` matches any of them."""

    pattern: re.Pattern[str]
    words: dict[str, str]

    def __call__(self, text: str) -> str:
        return self.pattern.sub(lambda match: self.words[match[0]], text)


def _make_replacer(words: dict[str, str], *, only_full_names: bool = False) -> _WordReplacer | None:
    """Make a function that replaces all words in one pass; None: there are no words.

    `only_full_names`: leave out what is only a part of a name in a longer path.
    """
    if not words:
        return None
    # The longest first: of `/home/me/project` and `/home/me` the first has to match.
    body = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    # Full names: `/home/me/a` is replaced in `/home/me/a/b.py`, but not in `/home/me/ab` or `/old/home/me/a`.
    pattern = rf"(?<![\w.~-])(?:{body})(?![\w-]|\.\w)" if only_full_names else body
    return _WordReplacer(re.compile(pattern), words)


def _map_answer(answer: ScriptedAnswer, replacer: _WordReplacer) -> ScriptedAnswer:
    return msgspec.structs.replace(
        answer,
        reasoning=replacer(answer.reasoning),
        text=replacer(answer.text),
        calls=tuple(_map_call(call, replacer) for call in answer.calls),
        content=tuple(_map_block(block, replacer) for block in answer.content),
    )


def _map_block(block: ScriptedBlock, replacer: _WordReplacer) -> ScriptedBlock:
    match block:
        case TextBlock() | ReasoningBlock():
            return msgspec.structs.replace(block, text=replacer(block.text))
        case CallBlock():
            return msgspec.structs.replace(block, call=_map_call(block.call, replacer))
        case RetryBlock():
            return block


def _map_call(call: ScriptedCall, replacer: _WordReplacer) -> ScriptedCall:
    if isinstance(call.arguments, str):
        return msgspec.structs.replace(call, arguments=replacer(call.arguments))
    return msgspec.structs.replace(
        call, arguments={replacer(name): _map_value(value, replacer) for name, value in call.arguments.items()}
    )


def _map_value(value: object, replacer: _WordReplacer) -> object:
    match value:
        case str():
            return replacer(value)
        case list():
            items: list[object] = [*value]
            return [_map_value(item, replacer) for item in items]
        case dict():
            fields: dict[str, object] = {**value}
            return {replacer(name): _map_value(item, replacer) for name, item in fields.items()}
        case _:
            return value
