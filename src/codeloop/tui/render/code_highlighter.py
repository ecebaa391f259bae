"""Highlights code line by line with pygments' lexers: each line is lexed once,
in the state after the line before.

Pygments itself lexes whole texts, which would be too slow for a text that grows with each delta.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from rich.segment import Segment
from rich.style import Style

from codeloop.tui.themes.styles import Styles

Token = tuple[Any, str]
"""A pygments token type (a tuple of names), and the text."""
# Longer lines are generated code, and take long to lex.
MAX_LINE_LENGTH = 500
"""Characters of a line that is coloured."""
_LANGUAGES_BY_EXTENSION = {
    "py": "python", "pyi": "python", "js": "javascript", "mjs": "javascript", "cjs": "javascript", "jsx": "jsx",
    "ts": "typescript", "mts": "typescript", "tsx": "tsx", "json": "json", "jsonc": "json", "sh": "bash",
    "bash": "bash", "zsh": "bash", "c": "c", "h": "c", "cpp": "cpp", "cc": "cpp", "hpp": "cpp", "rs": "rust",
    "go": "go", "java": "java",
    "kt": "kotlin", "rb": "ruby", "php": "php", "cs": "csharp", "swift": "swift", "html": "html", "css": "css",
    "scss": "scss", "md": "markdown", "yaml": "yaml", "yml": "yaml", "toml": "toml", "sql": "sql", "lua": "lua",
    "xml": "xml", "ini": "ini", "cfg": "ini", "diff": "diff", "patch": "diff", "vue": "html", "svelte": "html",
    "txt": "", "log": "", "lock": "", "csv": "",
}  # fmt: skip
_LANGUAGES_BY_NAME = {"makefile": "make", "dockerfile": "docker", "cmakelists.txt": "cmake"}
# Names that pygments does not know, or has no good lexer for.
_LANGUAGE_ALIASES = {
    "jsonc": "json",
    "json5": "json",
    "shell": "bash",
    "zsh": "bash",
    "vue": "html",
    "svelte": "html",
}
# Real code does not nest deeper, but a lexer that misreads a text may push states without end.
_MAX_STACK_DEPTH = 50
_PLAIN_LANGUAGES = frozenset({"", "text", "txt", "plain", "plaintext", "output", "log", "none"})
_BLOCK_COMMENT_LANGUAGES = frozenset({
    "c", "cpp", "javascript", "typescript", "jsx", "tsx", "rust", "go", "java", "kotlin", "php", "csharp", "swift",
    "css", "scss", "sql", "scala", "dart", "objective-c",
})  # fmt: skip
"""Languages in which `/*` begins a comment that may have several lines."""
_TOKEN_COLOURS = (
    ("Comment.Preproc", "syntax_keyword"),
    ("Comment", "syntax_comment"),
    ("Keyword.Type", "syntax_type"),
    ("Keyword", "syntax_keyword"),
    ("Operator.Word", "syntax_keyword"),
    ("Operator", "syntax_operator"),
    ("Punctuation", "syntax_punctuation"),
    ("Name.Function", "syntax_function"),
    ("Name.Decorator", "syntax_function"),
    ("Name.Class", "syntax_type"),
    ("Name.Builtin", "syntax_type"),
    ("Name.Exception", "syntax_type"),
    ("Name.Tag", "syntax_keyword"),
    ("Name.Attribute", "syntax_function"),
    ("Name", "syntax_variable"),
    ("Literal.String", "syntax_string"),
    ("Literal.Number", "syntax_number"),
    ("Literal.Date", "syntax_number"),
    ("Generic.Deleted", "diff_removed"),
    ("Generic.Inserted", "diff_added"),
    ("Generic.Heading", "markdown_heading"),
    ("Generic.Subheading", "markdown_heading"),
)
"""The theme's colour of each token type: that of the first row whose name
is a prefix of the type.
"""


def find_language(path: str) -> str:
    """Return the language of a file by its name, as pygments calls it;
    "": unknown, or plain text.
    """
    name = path.rpartition("/")[2].lower()
    _, dot, extension = name.rpartition(".")
    return _LANGUAGES_BY_NAME.get(name, "") or (
        _LANGUAGES_BY_EXTENSION.get(extension, "") if dot else ""
    )


class CodeHighlighter:
    """Colours the lines of one text, one after the other.

    `background`: the theme's colour behind the text;
    `base`: the colour of text without another colour.
    """

    def __init__(
        self, language: str, styles: Styles, background: str = "", base: str = "markdown_code_block"
    ) -> None:
        name = language.lower()
        self._language = _LANGUAGE_ALIASES.get(name, name)
        self._stack = ["root"]
        """The states of pygments' lexer at the end of the last line."""
        self._in_comment = False
        """Whether the last line ended within a comment that `/*` began."""
        self._styles = styles
        self._background = background
        self._base = styles.of(base, "", background)

    def highlight(self, text: str) -> list[Segment]:
        """Return the next line of the text in colours."""
        if (
            not text
            or self._language in _PLAIN_LANGUAGES
            or len(text) > MAX_LINE_LENGTH
            or text.isspace()
        ):
            return [Segment(text, self._base)] if text else []
        return _merge_tokens(
            (self._find_style(token_type), value) for token_type, value in self._split_tokens(text)
        )

    def highlight_open_line(self, text: str) -> list[Segment]:
        """Return the next line in colours while it is incomplete;
        `highlight` is called with it once more.
        """
        before = list(self._stack), self._in_comment
        segments = self.highlight(text)
        self._stack, self._in_comment = before
        return segments

    def _find_style(self, token_type: tuple[str, ...]) -> Style:
        colour = _find_colour(token_type)
        return self._styles.of(colour, "", self._background) if colour else self._base

    def _split_tokens(self, text: str) -> Iterator[Token]:
        """Yield the tokens of a line. Multi-line comments are handled here: most lexers
        only match complete ones.
        """
        if self._in_comment:
            comment, mark, rest = text.partition("*/")
            self._in_comment = not mark
            yield ("Comment",), comment + mark
            text = rest
        start = text.rfind("/*") if _has_block_comments(self._language) else -1
        # Within a string or a line comment, `/*` begins no comment.
        before = text[: max(start, 0)]
        if (
            start == -1
            or "*/" in text[start:]
            or "//" in before
            or before.count('"') % 2
            or before.count("'") % 2
        ):
            yield from _lex(self._language, self._stack, text)
            return
        yield from _lex(self._language, self._stack, before)
        self._in_comment = True
        yield ("Comment",), text[start:]


@cache
def _find_colour(token_type: tuple[str, ...]) -> str:
    """Return the theme's colour of a token type; "": plain text."""
    name = ".".join(token_type)
    return next(
        (
            colour
            for start, colour in _TOKEN_COLOURS
            if name == start or name.startswith(f"{start}.")
        ),
        "",
    )


@cache
def _find_lexer(name: str) -> Any:
    """Return pygments' lexer for a language; None: pygments has none."""
    from pygments import lexers
    from pygments.util import ClassNotFound

    lexer_module: Any = lexers
    try:
        return lexer_module.get_lexer_by_name(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@cache
def _has_block_comments(name: str) -> bool:
    """Return whether a language, by any of its names, has comments between `/*` and `*/`."""
    lexer = _find_lexer(name)
    return lexer is not None and not _BLOCK_COMMENT_LANGUAGES.isdisjoint(lexer.aliases)


@cache
def _find_rules(name: str) -> dict[str, list[tuple[Any, Any, Any]]] | None:
    """Return a lexer's rules by state; None: the lexer keeps more state between lines than a stack.

    A rule is a function that matches at an index, the token type or a function that yields tokens,
    and the transition to other states.
    """
    from pygments.lexer import ExtendedRegexLexer, RegexLexer

    lexer = _find_lexer(name)
    if not isinstance(lexer, RegexLexer) or isinstance(lexer, ExtendedRegexLexer):
        return None
    # Private, but the only way to start a lexer in the state of an earlier line.
    return getattr(lexer, "_tokens", None)


def _lex(name: str, stack: list[str], text: str) -> Iterator[Token]:
    """Yield the tokens of a line in a language; `stack`: the lexer's states, which are updated."""
    lexer = _find_lexer(name)
    if lexer is None or not text:
        yield (), text
        return
    rules = _find_rules(name)
    if rules is not None:
        yield from _run_rules(lexer, rules, stack, text)
        return
    # Its state between lines is unknown, so each line is lexed as if it were the first.
    for _, token_type, value in lexer.get_tokens_unprocessed(text):
        yield token_type, value


def _run_rules(
    lexer: Any, rules: dict[str, list[tuple[Any, Any, Any]]], stack: list[str], text: str
) -> Iterator[Token]:
    """Yield the tokens of a line; `stack` holds the lexer's states before it,
    and afterwards those at its end.
    """
    line = text + "\n"
    # Some rules match without consuming text: the limit of steps ends a loop of such rules.
    index, remaining_steps = 0, 20 * len(line) + 100
    while index < len(line) and remaining_steps:
        remaining_steps -= 1
        for match_at, action, transition in rules[stack[-1]]:
            match = match_at(line, index)
            if match is None:
                continue
            if isinstance(action, tuple):
                yield action, match.group()
            elif action is not None:
                for _, token_type, value in action(lexer, match):
                    yield token_type, value
            index = match.end()
            _enter_state(stack, transition)
            break
        else:
            # As pygments does: an unexpected line end resets the lexer,
            # another character is an error token.
            if line[index] == "\n":
                stack[:] = ["root"]
            else:
                yield (), line[index]
            index += 1
    del stack[1:-_MAX_STACK_DEPTH]


def _enter_state(stack: list[str], transition: Any) -> None:
    """Apply a rule's transition to the stack of states: -n pops n, `#pop` pops one,
    `#push` repeats the top one.
    """
    if isinstance(transition, int):
        del stack[max(len(stack) + transition, 1) :]
        return
    states = (transition,) if isinstance(transition, str) else transition or ()
    for state in states:
        if state == "#pop":
            del stack[max(len(stack) - 1, 1) :]
        else:
            stack.append(stack[-1] if state == "#push" else state)


def _merge_tokens(tokens: Iterable[tuple[Style, str]]) -> list[Segment]:
    """Return tokens as segments. Tokens of equal style are joined;
    blank tokens are joined to the token before them.
    """
    segments: list[Segment] = []
    text, text_style = "", None
    for style, token in tokens:
        value = token.replace("\n", "")
        # Fewer segments are faster to wrap and to draw.
        if style is text_style or (text_style is not None and value.isspace()):
            text += value
        elif value:
            if text:
                segments.append(Segment(text, text_style))
            text, text_style = value, style
    return [*segments, Segment(text, text_style)] if text else segments
