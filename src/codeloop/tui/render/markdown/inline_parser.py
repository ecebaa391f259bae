"""Parses the Markdown within a paragraph into pieces of text with their markup: emphasis, code,
links, line breaks.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from codeloop.kit.text.patterns import compile_once

PLAIN, EMPHASIS, STRONG, STRIKE, CODE, LINK, ADDRESS, IMAGE = 0, 1, 2, 4, 8, 16, 32, 64
"""The markup of a piece of text, as bits: a piece may have several."""


class Piece(Struct):
    """A text with the same markup; `link`: the address that it leads to.
    A line break is a piece of one line feed.
    """

    text: str
    markup: int = PLAIN
    link: str = ""


class _Delimiter(Struct):
    """A run of `*`, `_` or `~` that may begin or end emphasis.

    `piece_index`: that of its piece; `length`: how many characters are still unused;
    `original_length`: how many there were.
    """

    char: str
    piece_index: int
    length: int
    original_length: int
    can_open_emphasis: bool
    can_close_emphasis: bool


class _Bracket(Struct):
    """A `[` or `![`.

    `piece_index`: that of its piece; `text_end`: where it ends in the text;
    `delimiter_count`: how many are before it.
    """

    piece_index: int
    text_end: int
    delimiter_count: int
    is_image: bool


_SPECIAL_CHARACTER = r"[\\`*_~\[\]!<&\n]|(?<![A-Za-z0-9])(?:https?://|www\.)[^\s<>`]+"
# In order: `\*`, the line ends, "`", `<https://example.org>` and `<me@example.org>`, `&amp;`, `**`,
# `[` and `![`, `]`, and `https://example.org`.
_MARK_START = (
    r"\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|(?P<hard>(?: {2,}|\\)\n *)|(?P<soft> ?\n *)"
    r"|(?P<ticks>`+)"
    r"|<(?P<auto>[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*|[\w.+-]+@[\w-]+(?:\.[\w-]+)+)>"
    r"|(?P<entity>&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
    r"|(?P<run>\*+|_+|~~?(?!~))"
    r"|(?P<bracket>!?\[)|(?P<close>\])"
    r"|(?P<bare>(?<![A-Za-z0-9])(?:https?://|www\.)[^\s<>`]+)"
)
# What follows the `]` of a link: `(address)`, `(<address with blanks>)`, `(address "title")`.
_LINK_TARGET = r"\(\s*(?:<([^<>\n]*)>|((?:[^\s()\\]|\\.|\((?:[^\s()\\]|\\.)*\))*))(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)"
# The beginning of one at the end of a text that still grows: `(https://exa`.
_OPEN_LINK_TARGET = r"\([^\s()]*(?:\([^\s()]*\)?)?\Z"
# A single star within a word or a path is more often a pattern or a multiplication than emphasis.
_BEFORE_STAR = "([{\"'>-*_~\u201c\u2014"
"""Characters other than a space that may precede a single star that begins emphasis."""
_LINE_BREAK = r" *\n *"
_WRAPPED_LENGTH = 60
"""Characters of a line from which its end counts as a wrap;
the end of a shorter line is taken as a line break.
"""
# A text with more is not prose, and pairing takes the square of their number.
_MAX_DELIMITERS = 400
"""Delimiters and brackets that are parsed in a paragraph."""


def parse_pieces(text: str, *, is_open: bool = False) -> list[Piece]:
    """Return a paragraph in pieces. `is_open`: it still grows, so open emphasis,
    code and links are taken as closed.
    """
    if compile_once(_SPECIAL_CHARACTER).search(text) is None:
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
        """Lengths of runs of backticks for which there is no closing run,
        so that it is searched for only once.
        """

    def parse(self) -> list[Piece]:
        """Return the paragraph in pieces."""
        text, position = self._text, 0
        while (match := compile_once(_MARK_START).search(text, position)) is not None:
            if match.start() > position:
                self._pieces.append(Piece(text[position : match.start()]))
            position = self._parse_token(match)
        if position < len(text):
            self._pieces.append(Piece(text[position:]))
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
                self._pieces.append(
                    Piece(" " if match.start() - begin >= _WRAPPED_LENGTH else "\n")
                )
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
                    _Bracket(
                        piece_index=len(self._pieces),
                        text_end=match.end(),
                        delimiter_count=len(self._delimiters),
                        is_image=value.startswith("!"),
                    )
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
        """Add an address without brackets, and return its length;
        the punctuation of the sentence is left out.
        """
        # A bracket that was opened within the address belongs to it, as in
        # `/wiki/Python_(language)`.
        while url[-1] in "?!.,:*_~'\";]" or (url[-1] == ")" and url.count(")") > url.count("(")):
            url = url[:-1]
        self._pieces.append(Piece(url, LINK, url if url.startswith("http") else f"https://{url}"))
        return len(url)

    def _add_delimiter(self, match: re.Match[str]) -> None:
        """Add a run of delimiters, with whether it can open or close emphasis by
        the characters around it.
        """
        run, text = match.group(), self._text
        # The ends of the text count as blanks; but while it still grows,
        # a word is likely to follow.
        before = text[match.start() - 1] if match.start() else " "
        end = "a" if self._is_open else " "
        after = text[match.end()] if match.end() < len(text) else end
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
            can_open_emphasis = is_left_flanking and (
                not is_right_flanking or _is_punctuation(before)
            )
            can_close_emphasis = is_right_flanking and (
                not is_left_flanking or _is_punctuation(after)
            )
        # Patterns such as src/*.py are text.
        elif run == "*":
            can_open_emphasis = is_left_flanking and (before.isspace() or before in _BEFORE_STAR)
            can_close_emphasis = is_right_flanking
        # More lenient than CommonMark, which closes no emphasis next to Chinese
        # or Japanese punctuation.
        else:
            can_open_emphasis, can_close_emphasis = not after.isspace(), not before.isspace()
        self._delimiters.append(
            _Delimiter(
                char=run[0],
                piece_index=len(self._pieces),
                length=len(run),
                original_length=len(run),
                can_open_emphasis=can_open_emphasis,
                can_close_emphasis=can_close_emphasis,
            )
        )
        self._pieces.append(Piece(run))

    def _parse_closing_bracket(self, end: int) -> int:
        """Handle a `]`, which may end a link; return the index at which parsing continues."""
        if not self._brackets or len(self._brackets) > _MAX_DELIMITERS:
            self._pieces.append(Piece("]"))
            return end
        bracket = self._brackets.pop()
        target = compile_once(_LINK_TARGET).match(self._text, end)
        if target is not None:
            # A backslash before a punctuation mark is dropped.
            link = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", target[1] or target[2] or "")
            link_end = target.end()
        elif self._is_open and (
            end == len(self._text) or compile_once(_OPEN_LINK_TARGET).match(self._text, end)
        ):
            link, link_end = "", len(self._text)
        else:
            self._pieces.append(Piece("]"))
            return end
        self._pair_delimiters(bracket.delimiter_count)
        del self._delimiters[bracket.delimiter_count :]
        self._pieces[bracket.piece_index].text = ""
        label = "".join(piece.text for piece in self._pieces[bracket.piece_index :])
        markup = IMAGE if bracket.is_image else LINK
        for piece in self._pieces[bracket.piece_index :]:
            piece.markup, piece.link = piece.markup | markup, link
        if not label:
            self._pieces.append(Piece(link or "image", markup, link))
        elif link and not link.startswith("#") and _strip_scheme(link) != _strip_scheme(label):
            self._pieces.append(Piece(f" ({link})", ADDRESS, link))
        # A link can't be within another one.
        if not bracket.is_image:
            self._brackets.clear()
        return link_end

    def _show_open_link(self, bracket: _Bracket) -> None:
        """Show the text after an open bracket near the end as a link, which it probably becomes."""
        label = self._text[bracket.text_end :]
        before = self._text[: bracket.text_end - 1 - bracket.is_image][-1:]
        if label[:1].strip() and not before.strip("( ") and len(label) <= 80 and "\n" not in label:
            self._pieces[bracket.piece_index].text = ""
            for piece in self._pieces[bracket.piece_index :]:
                piece.markup |= LINK

    def _pair_delimiters(self, bottom: int) -> None:
        """Pair the delimiters from index `bottom` on, by the rules of CommonMark,
        and apply their markup.
        """
        stack = self._delimiters
        index = bottom
        while index < len(stack):
            closer = stack[index]
            opener_index = self._find_opener(bottom, index) if closer.can_close_emphasis else None
            if opener_index is None:
                index += 1
                continue
            opener = stack[opener_index]
            count = 2 if opener.length >= 2 and closer.length >= 2 else 1
            if closer.char == "~":
                count = closer.length
            self._apply_markup(opener, closer.piece_index, count)
            closer.length -= count
            self._pieces[closer.piece_index].text = closer.char * closer.length
            # Delimiters between the two can't pair any more.
            del stack[opener_index + 1 : index]
            index = opener_index + 1
            if not opener.length:
                del stack[opener_index]
                index -= 1
            if not closer.length:
                del stack[index]
        if self._is_open and not bottom:
            self._close_open_emphasis()

    def _find_opener(self, bottom: int, closer_index: int) -> int | None:
        """Return the index of the delimiter that another one closes;
        None: there is none from `bottom` on.
        """
        closer = self._delimiters[closer_index]
        for index in range(closer_index - 1, bottom - 1, -1):
            opener = self._delimiters[index]
            if opener.char != closer.char or not opener.can_open_emphasis:
                continue
            if closer.char == "~" and opener.length != closer.length:
                continue
            # CommonMark's rule of three, for runs that can both open and close emphasis.
            is_ambiguous = opener.can_close_emphasis or closer.can_open_emphasis
            opener_remainder, closer_remainder = (
                opener.original_length % 3,
                closer.original_length % 3,
            )
            if is_ambiguous and opener_remainder and opener_remainder + closer_remainder == 3:
                continue
            return index
        return None

    def _close_open_emphasis(self) -> None:
        """Apply emphasis that is not closed yet, up to the end of the text."""
        # Not that of `_`, which is more often part of a name;
        # nor of a long run of stars, which is not emphasis.
        for opener in self._delimiters:
            if opener.can_open_emphasis and 0 < opener.length <= 3 and opener.char != "_":
                if opener.piece_index == len(self._pieces) - 1:
                    self._pieces[opener.piece_index].text = ""
                elif opener.char == "~" or opener.length >= 2 or not opener.can_close_emphasis:
                    self._apply_markup(opener, len(self._pieces), opener.length)

    def _apply_markup(self, opener: _Delimiter, end: int, count: int) -> None:
        """Apply emphasis to the pieces between a delimiter and index `end`;
        it uses `count` of its characters.
        """
        markup = STRIKE if opener.char == "~" else (EMPHASIS, STRONG, STRONG | EMPHASIS)[count - 1]
        for piece in self._pieces[opener.piece_index + 1 : end]:
            piece.markup |= markup
        opener.length -= count
        self._pieces[opener.piece_index].text = opener.char * opener.length


def _merge_pieces(pieces: list[Piece]) -> list[Piece]:
    """Join neighbouring pieces with the same markup and link, and drop empty pieces."""
    merged_pieces: list[Piece] = []
    for piece in pieces:
        last = merged_pieces[-1] if merged_pieces else None
        if (
            last is not None
            and last.markup == piece.markup
            and last.link == piece.link
            and "\n" not in {last.text, piece.text}
        ):
            last.text += piece.text
        elif piece.text:
            merged_pieces.append(piece)
    return merged_pieces


def _is_punctuation(char: str) -> bool:
    """Return whether a character is punctuation or a symbol."""
    return not char.isalnum() and not char.isspace()


def _trim_code(text: str) -> str:
    """Return the text of a code span: without the blank on each side that separates
    it from the backticks.
    """
    text = compile_once(_LINE_BREAK).sub(" ", text)
    return text[1:-1] if len(text) > 2 and text[0] == text[-1] == " " and text.strip() else text


def _strip_scheme(link: str) -> str:
    """Return an address without its scheme, for comparing it with the label of its link."""
    return re.sub(r"^(https?://|mailto:)(www\.)?", "", link).rstrip("/")


def _decode_entity(entity: str) -> str:
    # Late, since the table of entities is large, and few texts have any.
    from html import unescape

    return unescape(entity)


def split_lines(pieces: list[Piece]) -> Iterator[list[Piece]]:
    """Yield the pieces of each line, without the line breaks."""
    line: list[Piece] = []
    for piece in pieces:
        if piece.text == "\n" and not piece.markup & CODE:
            yield line
            line = []
        else:
            line.append(piece)
    yield line
