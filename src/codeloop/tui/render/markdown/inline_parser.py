"""Parses the Markdown within a paragraph into pieces of text with their markup: emphasis, code, links, line breaks."""

import re
from collections.abc import Iterator

from msgspec import Struct

PLAIN, EMPHASIS, STRONG, STRIKE, CODE, LINK, ADDRESS, IMAGE = 0, 1, 2, 4, 8, 16, 32, 64
"""The markup of a piece of text, as bits: a piece may have several."""


class Piece(Struct):
    """A text with the same markup; `link`: the address that it leads to. A line break is a piece of one line feed."""

    text: str
    markup: int = PLAIN
    link: str = ""


class _Delimiter(Struct):
    """A run of `*`, `_` or `~` that may begin or end emphasis.

    `at`: the index of its piece; `length`: how many characters are still unused; `original`: how many there were.
    """

    char: str
    at: int
    length: int
    original: int
    can_open_emphasis: bool
    can_close_emphasis: bool


class _Bracket(Struct):
    """A `[` or `![`. `at`: the index of its piece; `end`: its end in the text; `below`: the delimiters before it."""

    at: int
    end: int
    below: int
    is_image: bool


_SPECIAL_CHARACTER = re.compile(r"[\\`*_~\[\]!<&\n]|(?<![A-Za-z0-9])(?:https?://|www\.)[^\s<>`]+")
_TOKEN = re.compile(
    r"\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|(?P<hard>(?: {2,}|\\)\n *)|(?P<soft> ?\n *)"
    r"|(?P<ticks>`+)"
    r"|<(?P<auto>[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*|[\w.+-]+@[\w-]+(?:\.[\w-]+)+)>"
    r"|(?P<entity>&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
    r"|(?P<run>\*+|_+|~~?(?!~))"
    r"|(?P<bracket>!?\[)|(?P<close>\])"
    r"|(?P<bare>(?<![A-Za-z0-9])(?:https?://|www\.)[^\s<>`]+)"
)
_LINK_TARGET = re.compile(
    r"\(\s*(?:<([^<>\n]*)>|((?:[^\s()\\]|\\.|\((?:[^\s()\\]|\\.)*\))*))(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)"
)
_OPEN_LINK_TARGET = re.compile(r"\([^\s()]*(?:\([^\s()]*\)?)?\Z")
# A single star within a word or a path is more often a pattern or a multiplication than emphasis.
_BEFORE_STAR = "([{\"'>-*_~\u201c\u2014"
"""Characters other than a space that may precede a single star that begins emphasis."""
_LINE_BREAK = re.compile(r" *\n *")
_WRAPPED_LENGTH = 60
"""Characters of a line from which its end counts as a wrap; the end of a shorter line is taken as a line break."""
# A text with more is not prose, and pairing takes the square of their number.
_MAX_DELIMITERS = 400
"""Delimiters and brackets that are parsed in a paragraph."""


def parse_pieces(text: str, *, is_open: bool = False) -> list[Piece]:
    """Return a paragraph in pieces. `is_open`: it still grows, so open emphasis, code and links are taken as closed."""
    if _SPECIAL_CHARACTER.search(text) is None:
        return [Piece(text)]
    return _InlineParser(text, is_open=is_open).parse()


class _InlineParser:
    """Parses one paragraph."""

    def __init__(self, text: str, *, is_open: bool) -> None:
        self._text = text
        self._is_open = is_open
        self._pieces: list[Piece] = []
        self._delimiters: list[_Delimiter] = []
        self._brackets: list[_Bracket] = []
        self._unmatched_runs: set[int] = set()
        """Lengths of runs of backticks for which there is no closing run, so that it is searched for only once."""

    def parse(self) -> list[Piece]:
        text, at = self._text, 0
        while (match := _TOKEN.search(text, at)) is not None:
            if match.start() > at:
                self._pieces.append(Piece(text[at : match.start()]))
            at = self._parse_token(match)
        if at < len(text):
            self._pieces.append(Piece(text[at:]))
        self._pair_delimiters(0)
        if self._is_open and self._brackets:
            self._show_open_link(self._brackets[-1])
        return _merge_pieces(self._pieces)

    def _parse_token(self, match: re.Match[str]) -> int:
        """Handle a token, and return the index at which parsing continues."""
        kind, value = match.lastgroup, match.group()
        match kind:
            case "escaped":
                self._pieces.append(Piece(match[kind]))
            case "hard":
                self._pieces.append(Piece("\n"))
            case "soft":
                begin = self._text.rfind("\n", 0, match.start()) + 1
                self._pieces.append(Piece(" " if match.start() - begin >= _WRAPPED_LENGTH else "\n"))
            case "entity":
                self._pieces.append(Piece(_decode_entity(value)))
            case "ticks":
                return self._parse_code(match)
            case "auto":
                link = match[kind]
                self._pieces.append(Piece(link, LINK, link if ":" in link else f"mailto:{link}"))
            case "bare":
                return match.start() + self._add_bare_link(value)
            case "run":
                self._add_delimiter(match)
            case "bracket":
                self._brackets.append(
                    _Bracket(len(self._pieces), match.end(), len(self._delimiters), value.startswith("!"))
                )
                self._pieces.append(Piece(value))
            case _:
                return self._parse_closing_bracket(match.end())
        return match.end()

    def _parse_code(self, match: re.Match[str]) -> int:
        """Parse a code span from its opening backticks, and return the index behind it."""
        run, start = match.group(), match.end()
        if len(run) not in self._unmatched_runs:
            for close in re.compile("`+").finditer(self._text, start):
                if len(close.group()) == len(run):
                    self._pieces.append(Piece(_trim_code(self._text[start : close.start()]), CODE))
                    return close.end()
            if self._is_open and len(run) < 3:
                self._pieces.append(Piece(_trim_code(self._text[start:]), CODE))
                return len(self._text)
            self._unmatched_runs.add(len(run))
        self._pieces.append(Piece(run))
        return start

    def _add_bare_link(self, url: str) -> int:
        """Add an address without brackets, and return its length; the punctuation of the sentence is left out."""
        while url[-1] in "?!.,:*_~'\";" or (url[-1] == ")" and url.count(")") > url.count("(")) or url[-1] == "]":
            url = url[:-1]
        self._pieces.append(Piece(url, LINK, url if url.startswith("http") else f"https://{url}"))
        return len(url)

    def _add_delimiter(self, match: re.Match[str]) -> None:
        """Add a run of delimiters, with whether it can open or close emphasis by the characters around it."""
        run, text = match.group(), self._text
        before = text[match.start() - 1] if match.start() else " "
        after = text[match.end()] if match.end() < len(text) else "a" if self._is_open else " "
        if len(self._delimiters) >= _MAX_DELIMITERS:
            self._pieces.append(Piece(run))
            return
        is_left_flanking = not after.isspace() and (
            not _is_punctuation(after) or before.isspace() or _is_punctuation(before)
        )
        is_right_flanking = not before.isspace() and (
            not _is_punctuation(before) or after.isspace() or _is_punctuation(after)
        )
        if run[0] == "_":
            can_open_emphasis, can_close_emphasis = (
                is_left_flanking and (not is_right_flanking or _is_punctuation(before)),
                is_right_flanking and (not is_left_flanking or _is_punctuation(after)),
            )
        # Patterns such as src/*.py are text.
        elif run == "*":
            can_open_emphasis, can_close_emphasis = (
                is_left_flanking and (before.isspace() or before in _BEFORE_STAR),
                is_right_flanking,
            )
        # More lenient than CommonMark, which closes no emphasis next to Chinese or Japanese punctuation.
        else:
            can_open_emphasis, can_close_emphasis = not after.isspace(), not before.isspace()
        self._delimiters.append(
            _Delimiter(run[0], len(self._pieces), len(run), len(run), can_open_emphasis, can_close_emphasis)
        )
        self._pieces.append(Piece(run))

    def _parse_closing_bracket(self, end: int) -> int:
        """Handle a `]`, which may end a link."""
        if not self._brackets or len(self._brackets) > _MAX_DELIMITERS:
            self._pieces.append(Piece("]"))
            return end
        bracket = self._brackets.pop()
        target = _LINK_TARGET.match(self._text, end)
        if target is not None:
            link, stop = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", target[1] or target[2] or ""), target.end()
        elif self._is_open and (end == len(self._text) or _OPEN_LINK_TARGET.match(self._text, end)):
            link, stop = "", len(self._text)
        else:
            self._pieces.append(Piece("]"))
            return end
        self._pair_delimiters(bracket.below)
        del self._delimiters[bracket.below :]
        self._pieces[bracket.at].text = ""
        label = "".join(piece.text for piece in self._pieces[bracket.at :])
        markup = IMAGE if bracket.is_image else LINK
        for piece in self._pieces[bracket.at :]:
            piece.markup, piece.link = piece.markup | markup, link
        if not label:
            self._pieces.append(Piece(link or "image", markup, link))
        elif link and not link.startswith("#") and _strip_scheme(link) != _strip_scheme(label):
            self._pieces.append(Piece(f" ({link})", ADDRESS, link))
        # A link can't be within another one.
        if not bracket.is_image:
            self._brackets.clear()
        return stop

    def _show_open_link(self, bracket: _Bracket) -> None:
        """Show the text after an open bracket near the end as a link, which it probably becomes."""
        label = self._text[bracket.end :]
        before = self._text[: bracket.end - 1 - bracket.is_image][-1:]
        if label[:1].strip() and not before.strip("( ") and len(label) <= 80 and "\n" not in label:
            self._pieces[bracket.at].text = ""
            for piece in self._pieces[bracket.at :]:
                piece.markup |= LINK

    def _pair_delimiters(self, bottom: int) -> None:
        """Pair the delimiters from index `bottom` on, by the rules of CommonMark, and apply their markup."""
        stack = self._delimiters
        at = bottom
        while at < len(stack):
            closer = stack[at]
            opener_at = self._find_opener(bottom, at) if closer.can_close_emphasis else None
            if opener_at is None:
                at += 1
                continue
            opener = stack[opener_at]
            count = 2 if opener.length >= 2 and closer.length >= 2 else 1
            if closer.char == "~":
                count = closer.length
            self._apply_markup(opener, closer.at, count)
            closer.length -= count
            self._pieces[closer.at].text = closer.char * closer.length
            del stack[opener_at + 1 : at]
            at = opener_at + 1
            if not opener.length:
                del stack[opener_at]
                at -= 1
            if not closer.length:
                del stack[at]
        if self._is_open and not bottom:
            self._close_open_emphasis()

    def _find_opener(self, bottom: int, at: int) -> int | None:
        """Return the index of the delimiter that the one at `at` closes; None: there is none from `bottom` on."""
        closer = self._delimiters[at]
        for index in range(at - 1, bottom - 1, -1):
            opener = self._delimiters[index]
            if opener.char != closer.char or not opener.can_open_emphasis:
                continue
            if closer.char == "~" and opener.length != closer.length:
                continue
            # CommonMark's rule of three, for runs that can both open and close emphasis.
            may_not_pair = (opener.can_close_emphasis or closer.can_open_emphasis) and (
                opener.original + closer.original
            ) % 3 == 0
            if may_not_pair and (opener.original % 3 or closer.original % 3):
                continue
            return index
        return None

    def _close_open_emphasis(self) -> None:
        """Apply emphasis that is not closed yet, up to the end of the text."""
        for opener in self._delimiters:
            if opener.can_open_emphasis and 0 < opener.length <= 3 and opener.char != "_":
                if opener.at == len(self._pieces) - 1:
                    self._pieces[opener.at].text = ""
                elif opener.char == "~" or opener.length >= 2 or not opener.can_close_emphasis:
                    self._apply_markup(opener, len(self._pieces), opener.length)

    def _apply_markup(self, opener: _Delimiter, end: int, count: int) -> None:
        """Apply emphasis to the pieces between a delimiter and index `end`; it uses `count` of its characters."""
        markup = STRIKE if opener.char == "~" else (EMPHASIS, STRONG, STRONG | EMPHASIS)[count - 1]
        for piece in self._pieces[opener.at + 1 : end]:
            piece.markup |= markup
        opener.length -= count
        self._pieces[opener.at].text = opener.char * opener.length


def _merge_pieces(pieces: list[Piece]) -> list[Piece]:
    """Join neighbouring pieces with the same markup and link, and drop empty pieces."""
    result_pieces: list[Piece] = []
    for piece in pieces:
        last = result_pieces[-1] if result_pieces else None
        if (
            last is not None
            and last.markup == piece.markup
            and last.link == piece.link
            and "\n" not in {last.text, piece.text}
        ):
            last.text += piece.text
        elif piece.text:
            result_pieces.append(piece)
    return result_pieces


def _is_punctuation(char: str) -> bool:
    """Return whether a character is punctuation or a symbol."""
    return not char.isalnum() and not char.isspace()


def _trim_code(text: str) -> str:
    """Return the text of a code span: without the blank on each side that separates it from the backticks."""
    text = _LINE_BREAK.sub(" ", text)
    return text[1:-1] if len(text) > 2 and text[0] == text[-1] == " " and text.strip() else text


def _strip_scheme(link: str) -> str:
    """Return an address without its scheme, for comparing it with the label of its link."""
    return re.sub(r"^(https?://|mailto:)(www\.)?", "", link).rstrip("/")


def _decode_entity(entity: str) -> str:
    # Late, since the table of entities is large, and few texts have any.
    from html import unescape

    return unescape(entity)


def split_lines(pieces: list[Piece]) -> Iterator[list[Piece]]:
    """Yield the pieces of each line; hard breaks end lines."""
    line: list[Piece] = []
    for piece in pieces:
        if piece.text == "\n" and not piece.markup & CODE:
            yield line
            line = []
        else:
            line.append(piece)
    yield line
