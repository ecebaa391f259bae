"""The format of scripts and recordings: a model's answers as JSON Lines, one a line.

    {"text": "I look at the file.", "calls": [{"name": "read", "arguments": {"filePath":
    "{directory}/a.py"}}]} {"text": "Done.", "deltas": 5, "delay_ms": 20}

`{directory}` and `{root}` stand for the project's working directory and the root of its work tree.
"""

import re
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from codeloop.model.chat import FinishReason, ModelRequest
from codeloop.model.errors import ModelUnavailable
from codeloop.schema.errors import MessageError
from codeloop.schema.message import NO_TOKENS, CacheTokens, Tokens
from codeloop.schema.wire import DECODE_ERRORS, JSON

RequestKind = Literal["main", "side"]
"""`main`: a request of the conversation; `side`: one outside of it (a title, a summary),
which has no tools.
"""


def classify_request(request: ModelRequest) -> RequestKind:
    """Return the kind of a request."""
    return "main" if request.tools else "side"


class ScriptedCall(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A tool call. `arguments` is an object, or else the raw text that the model sent."""

    name: str
    arguments: JSON | str = {}
    id: str = ""
    complete: bool = True
    """False: the answer ends before the call does."""


class TextBlock(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag="text",
    tag_field="type",
):
    """Text that comes in `deltas` pieces, spread over `ms`."""

    text: str
    deltas: int = 1
    ms: int = 0


class ReasoningBlock(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag="reasoning",
    tag_field="type",
):
    """Thinking; `metadata` comes after its last piece."""

    text: str
    metadata: JSON = {}
    deltas: int = 1
    ms: int = 0


class CallBlock(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag="call",
    tag_field="type",
):
    """A call whose arguments come in `deltas` pieces, spread over `ms`."""

    call: ScriptedCall
    deltas: int = 1
    ms: int = 0


class RetryBlock(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag="retry",
    tag_field="type",
):
    """The request was sent again; what came before no longer counts."""

    attempt: int
    message: str
    ms: int = 0


ScriptedBlock = TextBlock | ReasoningBlock | CallBlock | RetryBlock


class TokenCount(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Tokens of one answer; `input` excludes cached ones."""

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache_read: int = 0
    cache_write: int = 0


class RecordedRequest(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The request of a recorded answer. `messages`: a description of each that the
    previous request did not have.
    """

    digest: str
    system: str
    """Digest of the system prompt."""
    messages: tuple[str, ...] = msgspec.field(default=(), name="turns")  # as recordings have it
    tools: tuple[str, ...] = ()


class ScriptedAnswer(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """One answer. A script uses `reasoning`, `text`, `calls`;
    a recording `content`, which says the same in any order.

    `delay_ms` is the pause before each piece; `error` ends the answer instead of `finish`.
    `directory` and `root` are the placeholders of the paths,
    in case the usual ones occur in the text themselves.
    """

    kind: RequestKind = "main"
    reasoning: str = ""
    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    deltas: int = 1
    delay_ms: int = 0
    content: tuple[ScriptedBlock, ...] = ()
    finish: FinishReason | None = None
    tokens: TokenCount = TokenCount()
    error: MessageError | None = None
    directory: str = "{directory}"
    root: str = "{root}"
    request: RecordedRequest | None = None

    def list_blocks(self) -> tuple[ScriptedBlock, ...]:
        """Return the blocks of the answer, in order."""
        if self.content:
            return self.content
        ms = self.delay_ms * self.deltas
        blocks: list[ScriptedBlock] = []
        if self.reasoning:
            blocks.append(ReasoningBlock(self.reasoning, deltas=self.deltas, ms=ms))
        if self.text:
            blocks.append(TextBlock(self.text, deltas=self.deltas, ms=ms))
        return (*blocks, *(CallBlock(call, deltas=self.deltas, ms=ms) for call in self.calls))

    def infer_finish_reason(self) -> FinishReason:
        """Return why the answer ends: its own `error` or `finish`, else by whether it has calls."""
        if self.error is not None:
            return "error"
        if self.finish is not None:
            return self.finish
        return (
            "tool-calls"
            if any(isinstance(block, CallBlock) for block in self.list_blocks())
            else "stop"
        )

    def to_tokens(self) -> Tokens:
        """Return the tokens in the form of messages."""
        count = self.tokens
        if count == TokenCount():
            return NO_TOKENS
        return Tokens(
            input=count.input,
            output=count.output,
            reasoning=count.reasoning,
            cache=CacheTokens(read=count.cache_read, write=count.cache_write),
        )


def read_answers(path: Path) -> list[ScriptedAnswer]:
    """Read a script or a recording. Blank lines and lines that start with `//` are skipped.

    Raises `ModelUnavailable` naming the line that is wrong.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ModelUnavailable(f"The recording {path} can't be read: {error.strerror}.") from error
    answers: list[ScriptedAnswer] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith(b"//"):
            continue
        try:
            answers.append(msgspec.json.decode(line, type=ScriptedAnswer))
        except DECODE_ERRORS as error:
            raise ModelUnavailable(
                f"{path}, line {number}, is not an answer of a model: {error}."
            ) from error
    return answers


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
    replacer = _make_replacer(
        {path: word for path, word in words.items() if len(path) > 1}, only_full_names=True
    )
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
    # Full names: `/home/me/a` is replaced in `/home/me/a/b.py`,
    # but not in `/home/me/ab` or `/old/home/me/a`.
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
        call,
        arguments={
            replacer(name): _map_value(value, replacer) for name, value in call.arguments.items()
        },
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
