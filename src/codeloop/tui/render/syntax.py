"""Incremental syntax highlighting with pygments' lexers: a line is lexed once, with the state after the last line."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from rich.segment import Segment
from rich.style import Style

from codeloop.tui.themes.styles import Styles

Token = tuple[Any, str]
"""A pygments token type (a tuple of names), and the text."""
MAX_LINE_LENGTH = 500
"""Characters of a line that is coloured; longer lines are generated code, and take long to lex."""
_EXTENSIONS = {
    "py": "python", "pyi": "python", "js": "javascript", "mjs": "javascript", "cjs": "javascript", "jsx": "jsx",
    "ts": "typescript", "mts": "typescript", "tsx": "tsx", "json": "json", "jsonc": "json", "sh": "bash",
    "bash": "bash", "zsh": "bash", "c": "c", "h": "c", "cpp": "cpp", "cc": "cpp", "hpp": "cpp", "rs": "rust",
    "go": "go", "java": "java",
    "kt": "kotlin", "rb": "ruby", "php": "php", "cs": "csharp", "swift": "swift", "html": "html", "css": "css",
    "scss": "scss", "md": "markdown", "yaml": "yaml", "yml": "yaml", "toml": "toml", "sql": "sql", "lua": "lua",
    "xml": "xml", "ini": "ini", "cfg": "ini", "diff": "diff", "patch": "diff", "vue": "html", "svelte": "html",
    "txt": "", "log": "", "lock": "", "csv": "",
}  # fmt: skip
_NAMES = {"makefile": "make", "dockerfile": "docker", "cmakelists.txt": "cmake"}
_ALIASES = {"jsonc": "json", "json5": "json", "shell": "bash", "zsh": "bash", "vue": "html", "svelte": "html"}
_MAX_STACK = 50
"""States on a lexer's stack; real code does not nest deeper."""
_PLAIN = frozenset({"", "text", "txt", "plain", "plaintext", "output", "log", "none"})
_BLOCK_COMMENTS = frozenset({
    "c", "cpp", "javascript", "typescript", "jsx", "tsx", "rust", "go", "java", "kotlin", "php", "csharp", "swift",
    "css", "scss", "sql", "scala", "dart", "objective-c",
})  # fmt: skip
"""Languages in which `/*` begins a comment that may have several lines."""
_COLOURS = (
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
"""The theme's colour of each token type: that of the first row whose name is a prefix of the type."""


def language_of(path: str) -> str:
    """Return the language of a file by its name; "": unknown, or plain text."""
    name = path.rpartition("/")[2].lower()
    return _NAMES.get(name) or _EXTENSIONS.get(name.rpartition(".")[2], "") if "." in name else _NAMES.get(name, "")


class CodeHighlighter:
    """Colours the lines of one text, one after the other.

    `background`: the theme's colour behind the text; `base`: the colour of text without another colour.
    """

    def __init__(self, language: str, styles: Styles, background: str = "", base: str = "markdown_code_block") -> None:
        name = language.lower()
        self._name = _ALIASES.get(name, name)
        self._stack = ["root"]
        self._in_comment = False
        self._styles = styles
        self._background = background
        self._base = styles.of(base, "", background)

    def highlight(self, text: str) -> list[Segment]:
        """Return the next line of the text in colours."""
        if not text or self._name in _PLAIN or len(text) > MAX_LINE_LENGTH or text.isspace():
            return [Segment(text, self._base)] if text else []
        return _merge((self._find_style(kind), value) for kind, value in self._split_tokens(text))

    def preview(self, text: str) -> list[Segment]:
        """Return the next line in colours while it is incomplete; `highlight` is called with it once more."""
        before = list(self._stack), self._in_comment
        segments = self.highlight(text)
        self._stack, self._in_comment = before
        return segments

    def _find_style(self, kind: tuple[str, ...]) -> Style:
        colour = _find_colour(kind)
        return self._styles.of(colour, "", self._background) if colour else self._base

    def _split_tokens(self, text: str) -> Iterator[Token]:
        """Yield the tokens of a line. Multi-line comments are handled here: most lexers only match complete ones."""
        if self._in_comment:
            end = text.find("*/")
            self._in_comment = end == -1
            cut = len(text) if end == -1 else end + 2
            yield ("Comment",), text[:cut]
            text = text[cut:]
        start = text.rfind("/*") if _has_block_comments(self._name) else -1
        before = text[: max(start, 0)]
        if start == -1 or "*/" in text[start:] or "//" in before or before.count('"') % 2 or before.count("'") % 2:
            yield from _lex(self._name, self._stack, text)
            return
        yield from _lex(self._name, self._stack, before)
        self._in_comment = True
        yield ("Comment",), text[start:]


@cache
def _find_colour(kind: tuple[str, ...]) -> str:
    name = ".".join(kind)
    return next((colour for start, colour in _COLOURS if name == start or name.startswith(f"{start}.")), "")


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
    lexer = _find_lexer(name)
    return lexer is not None and not _BLOCK_COMMENTS.isdisjoint(lexer.aliases)


@cache
def _find_rules(name: str) -> dict[str, list[tuple[Any, Any, Any]]] | None:
    """Return a lexer's rules by state; None: the lexer keeps more state between lines than a stack."""
    from pygments.lexer import ExtendedRegexLexer, RegexLexer

    lexer = _find_lexer(name)
    if not isinstance(lexer, RegexLexer) or isinstance(lexer, ExtendedRegexLexer):
        return None
    return getattr(lexer, "_tokens", None)


def _lex(name: str, stack: list[str], text: str) -> Iterator[Token]:
    lexer = _find_lexer(name)
    if lexer is None or not text:
        yield (), text
        return
    rules = _find_rules(name)
    if rules is not None:
        yield from _run_rules(lexer, rules, stack, text)
        return
    for _, kind, value in lexer.get_tokens_unprocessed(text):
        yield kind, value


def _run_rules(
    lexer: Any, rules: dict[str, list[tuple[Any, Any, Any]]], stack: list[str], text: str
) -> Iterator[Token]:
    """Yield the tokens of a line; `stack` holds the lexer's states before it, and afterwards those at its end."""
    line = text + "\n"
    at, steps = 0, 20 * len(line) + 100
    while at < len(line) and steps:
        steps -= 1
        for matches, action, then in rules[stack[-1]]:
            match = matches(line, at)
            if match is None:
                continue
            if isinstance(action, tuple):
                yield action, match.group()
            elif action is not None:
                for _, kind, value in action(lexer, match):
                    yield kind, value
            at = match.end()
            _enter_state(stack, then)
            break
        else:
            if line[at] == "\n":
                stack[:] = ["root"]
            else:
                yield (), line[at]
            at += 1
    del stack[1:-_MAX_STACK]


def _enter_state(stack: list[str], then: Any) -> None:
    """Apply a rule's transition to the stack of states: -n pops n, `#pop` pops one, `#push` repeats the top one."""
    if isinstance(then, int):
        del stack[max(len(stack) + then, 1) :]
        return
    for state in (then,) if isinstance(then, str) else then or ():
        if state == "#pop":
            del stack[max(len(stack) - 1, 1) :]
        else:
            stack.append(stack[-1] if state == "#push" else state)


def _merge(tokens: Iterable[tuple[Style, str]]) -> list[Segment]:
    """Return tokens as segments. Tokens of equal style are joined; blank tokens are joined to the token before them."""
    segments: list[Segment] = []
    text, last = "", None
    for style, token in tokens:
        value = token.replace("\n", "")
        if style is last or (last is not None and value.isspace()):
            text += value
        elif value:
            if text:
                segments.append(Segment(text, last))
            text, last = value, style
    return [*segments, Segment(text, last)] if text else segments
