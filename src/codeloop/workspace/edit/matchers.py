r"""Matchers that find a model's remembered text in a file, from strict to loose.

Each takes the content and the old text, both with `\n` line ends, and yields spans `(start, end)` of the content.
They never decide: the caller takes the first matcher that yields anything, and refuses two spans.
The strict ones are linear. The loose ones look at candidates, with a budget: TooAlike when it is used up.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise

from codeloop.schema.errors import CodeloopError

Span = tuple[int, int]
Matcher = Callable[[str, str], Iterator[Span]]

_MIDDLE = 0.7  # how alike the lines between two equal edge lines must be, 0 to 1
_LINES = 0.75  # the share of lines that must be equal when an edge line differs
_WHOLE_BLOCK = 0.8  # how alike such a block must be as a whole, 0 to 1
_CANDIDATES = 200
_WORK = 5_000_000  # steps of one matcher, some 50 ns each
_CELLS = 2_000  # of a Levenshtein table that are worked out in one step
_MOST_LINES = 1_000_000
_LARGEST = 400_000  # steps; a comparison that takes more can't be interrupted for too long
_TYPOGRAPHIC = str.maketrans(  # curly quotes, hyphens and dashes, wide and narrow blanks
    "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2010\u2011\u2012\u2013\u2014\u2212\u00a0\u2002\u2003\u2009\u202f\u3000",
    "''''\"\"\"\"------      ",
)
_ESCAPE = re.compile(r"\\(n|t|r|\"|'|`|\$|\\)")
_PLAIN = {"n": "\n", "t": "\t", "r": "\r"}
_LINE_NUMBER = re.compile(r"[ \t]*(\d{1,9})(?:: ?|\| ?|\t|-(?: |$))")
_LOOSE_SPACE = re.compile(r"(?<!\w)\s+|\s+(?!\w)")
_TOKEN = re.compile(r"\w+|[^\w\s]")


class TooAlike(CodeloopError):
    """The content has too many places that are nearly the text, so that they can't all be compared in time."""


class Comparisons:
    """Counts the steps of one matcher. Raises TooAlike when there were too many."""

    __slots__ = ("_work_left",)

    def __init__(self) -> None:
        self._work_left = _WORK

    def spend(self, steps: int) -> None:
        """Use up `steps` of the budget."""
        self._work_left -= steps
        if self._work_left < 0:
            raise TooAlike("the file has too many places like it to compare them all")

    def compare(self, one: str, other: str) -> None:
        """Use up the cost of comparing two texts."""
        steps = len(one) * len(other) // _CELLS
        self.spend(steps + 20 if steps <= _LARGEST else _WORK + 1)


def match_exact(content: str, old: str) -> Iterator[Span]:
    """Yield every exact occurrence, overlapping ones too."""
    at = content.find(old)
    while at >= 0:
        yield at, at + len(old)
        at = content.find(old, at + 1)


def match_all(content: str, old: str) -> Iterator[Span]:
    """Yield the exact occurrences from left to right without overlaps: what `replaceAll` replaces."""
    at = content.find(old)
    while at >= 0:
        yield at, at + len(old)
        at = content.find(old, at + len(old))


def match_exact_lines(content: str, old: str) -> Iterator[Span]:
    """Yield exact occurrences that are whole lines: `match_exact` for patches."""
    lines = old.removesuffix("\n")
    if lines.strip():
        for start, end in match_exact(f"\n{content}\n", f"\n{lines}\n"):
            yield start, min(end - 2 + old.endswith("\n"), len(content))


def match_trimmed_lines(content: str, old: str) -> Iterator[Span]:
    """Yield blocks whose lines are equal once each is stripped."""
    yield from _find_blocks(content, old, str.strip)


def match_loose_whitespace(content: str, old: str) -> Iterator[Span]:
    """Yield blocks that are equal when blanks count only between words, and typographic quotes and dashes are plain.

    A single line may also be found inside a longer one.
    """
    want = [_squeeze_spaces(line) for line in _split_lines(old)]
    folded, plain, budget = fold(content), fold(old), Comparisons()
    is_found = False
    for begin, end in _find_blocks(folded, plain, _squeeze):
        budget.spend((end - begin) // 4)
        if [_squeeze_spaces(line) for line in content[begin:end].removesuffix("\n").split("\n")] == want:
            is_found = True
            yield begin, end
    tokens = _TOKEN.findall(plain)
    if is_found or "\n" in old.strip() or len(tokens) < 2:
        return
    for start, end in _find_inside_lines(folded, tokens, budget):
        yield _widen(content, start, end)


def match_unescaped(content: str, old: str) -> Iterator[Span]:
    r"""Yield places of the text without what its way added: escapes (`\n`), entities (`&lt;`), numbers (`12: `)."""
    seen: set[Span] = set()
    for undo in VARIANTS:
        plain = undo(old)
        if plain == old or not plain.strip():
            continue
        for matcher in (match_exact, match_trimmed_lines):
            for span in matcher(content, plain):
                if span not in seen:
                    seen.add(span)
                    yield span
            if seen:
                return


def match_trimmed_ends(content: str, old: str) -> Iterator[Span]:
    """Yield occurrences of the text stripped of blanks and blank lines at both ends."""
    inner = old.strip()
    if not inner or inner == old:
        return
    is_found, budget = False, Comparisons()
    for start, end in match_exact(content, inner):
        budget.spend(10 + len(inner) // 20)
        if _stands_alone(content, start, end):
            is_found = True
            yield _widen(content, start, end)
    if not is_found and "\n" in inner:
        yield from match_trimmed_lines(content, inner)


def match_block_edges(content: str, old: str) -> Iterator[Span]:
    """Yield blocks with the same first and last line whose lines between are alike (Levenshtein)."""
    want = [line.strip() for line in _split_lines(old)]
    while want and not want[-1]:
        want.pop()
    skipped = next((index for index, line in enumerate(want) if line), 0)
    want = want[skipped:]
    if len(want) < 3 or want[0] not in content or want[-1] not in content:
        return
    from rapidfuzz.distance import Levenshtein

    lines, budget = [line.strip() for line in content.split("\n")], Comparisons()
    starts = _find_line_starts(content)
    slack = max(1, len(want) // 4)
    middle = "\n".join(want[1:-1])
    for begin in _find_positions(lines, want[0])[:_CANDIDATES]:
        best, size = 0.0, 0
        for count in range(max(3, len(want) - slack), len(want) + slack + 1):
            stop = begin + count
            if stop > len(lines):
                break
            budget.spend(1)
            if lines[stop - 1] != want[-1]:
                continue
            budget.spend(count)
            there = "\n".join(lines[begin + 1 : stop - 1])
            budget.compare(middle, there)
            alike = Levenshtein.normalized_similarity(middle, there, score_cutoff=_MIDDLE)
            if alike > best:
                best, size = alike, count
        if best >= _MIDDLE:
            yield _make_span(starts, begin, size, closed=old.endswith("\n"))


def match_most_lines(content: str, old: str) -> Iterator[Span]:
    """Yield blocks of as many lines in which most lines are equal, where the first or the last may have drifted."""
    want = [line.strip() for line in _split_lines(old)]
    solid = [index for index, line in enumerate(want) if line]
    if len(solid) < 4:
        return
    anchors = [index for index in sorted(solid, key=lambda index: -len(want[index]))[:3] if want[index] in content]
    if not anchors:
        return
    from rapidfuzz.distance import Levenshtein

    lines, budget = [line.strip() for line in content.split("\n")], Comparisons()
    starts = _find_line_starts(content)
    begins = {at - anchor for anchor in anchors for at in _find_positions(lines, want[anchor])[:_CANDIDATES]}
    text = "\n".join(want)
    for begin in sorted(begins):
        block = lines[begin : begin + len(want)] if begin >= 0 else []
        if len(block) < len(want):
            continue
        budget.spend(2 * len(want))
        equal = sum(1 for index in solid if block[index] == want[index])
        if equal < _LINES * len(solid):
            continue
        there = "\n".join(block)
        budget.compare(text, there)
        if Levenshtein.normalized_similarity(text, there, score_cutoff=_WHOLE_BLOCK) >= _WHOLE_BLOCK:
            yield _make_span(starts, begin, len(want), closed=old.endswith("\n"))


CASCADE: tuple[Matcher, ...] = (
    match_exact,
    match_trimmed_lines,
    match_unescaped,
    match_trimmed_ends,
    match_loose_whitespace,
    match_block_edges,
    match_most_lines,
)
"""What an edit tries, in order; `match_all` takes the first place with `replaceAll`."""

LINEWISE: tuple[Matcher, ...] = (
    match_exact_lines,
    match_trimmed_lines,
    match_loose_whitespace,
    match_block_edges,
    match_most_lines,
)
"""What a patch tries for the lines of a hunk."""

HOW: dict[Matcher, str] = {
    match_trimmed_lines: "ignoring indentation",
    match_unescaped: "without its escapes, entities or line numbers",
    match_trimmed_ends: "without the blanks at its ends",
    match_loose_whitespace: "ignoring blanks and the kind of quotes and dashes",
    match_block_edges: "by its first and last line; those between differ a little",
    match_most_lines: "by most of its lines; the others differ a little",
}
"""How each inexact matcher found the text, for the model."""

APPROXIMATE: frozenset[Matcher] = frozenset({match_block_edges, match_most_lines})
"""Matchers whose spans may hold other words than the old text; the lines that the edit changes are compared again."""


def fold(text: str) -> str:
    """Return the text with typographic quotes, dashes and blanks as plain ones; offsets stay."""
    return text if text.isascii() else text.translate(_TYPOGRAPHIC)


def _undo_backslashes(text: str) -> str:
    return _ESCAPE.sub(lambda match: _PLAIN.get(match[1], match[1]), text)


def _undo_entities(text: str) -> str:
    for name, char in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#39;", "'"), ("&apos;", "'"), ("&amp;", "&")):
        text = text.replace(name, char)
    return text


def strip_numbers(text: str) -> str:
    """Return a text without the line numbers that `read` and `grep` show.

    Each line has one, or those that have are numbered upwards: in a block of grep only matches and the first line are.
    """
    lines = text.split("\n")
    numbers = [int(found[1]) for line in lines if (found := _LINE_NUMBER.match(line))]
    is_numbered = all(_LINE_NUMBER.match(line) for line in lines if line.strip())
    if not is_numbered and any(number >= after for number, after in pairwise(numbers)):
        return text
    return "\n".join(_LINE_NUMBER.sub("", line, count=1) for line in lines)


VARIANTS: tuple[Callable[[str], str], ...] = (_undo_backslashes, _undo_entities, strip_numbers)
"""Functions that undo how a text is disfigured between a file and a model's call."""


def _split_lines(old: str) -> list[str]:
    return old.removesuffix("\n").split("\n")


def _find_positions(lines: Sequence[str], text: str) -> list[int]:
    return [index for index, line in enumerate(lines) if line == text]


def _find_blocks(content: str, old: str, key: Callable[[str], str]) -> Iterator[Span]:
    """Yield the spans of whole lines.

    Each distinct line is mapped to one character, so that blocks are found as text.
    """
    want = [key(line) for line in _split_lines(old)]
    anchor = max(want, key=len)
    if not anchor.strip() or (key is not _squeeze and anchor not in content):
        return
    if len(want) > _MOST_LINES:
        raise TooAlike(f"it has more than {_MOST_LINES:,} lines")
    kinds = {line: chr(number) for number, line in enumerate(dict.fromkeys(want), 1)}
    have = "".join([kinds.get(key(line), "\0") for line in content.split("\n")])
    starts: list[int] = []
    for begin, _ in match_exact(have, "".join(map(kinds.__getitem__, want))):
        starts = starts or _find_line_starts(content)
        yield _make_span(starts, begin, len(want), closed=old.endswith("\n"))


def _find_line_starts(content: str) -> list[int]:
    """Return the offset of each line's start, and the end of the text."""
    return [0, *accumulate(len(line) + 1 for line in content.split("\n"))]


def _make_span(starts: Sequence[int], begin: int, count: int, *, closed: bool) -> Span:
    """Return the offsets of whole lines; `closed` takes the last line's end with them."""
    return starts[begin], min(starts[begin + count] - (0 if closed else 1), starts[-1] - 1)


def _find_inside_lines(content: str, tokens: Sequence[str], budget: Comparisons) -> Iterator[Span]:
    """Yield where the tokens follow one another on a line, with any blanks between them."""
    text, fits = "".join(tokens), re.compile(_join_tokens(tokens)).match
    end = 0
    for start, stop in pairwise(_find_line_starts(content)):
        line = content[start : stop - 1]
        if text not in (squeezed := _squeeze(line)):
            continue
        solid = [start + at for at, char in enumerate(line) if not char.isspace()]
        for at, _ in match_exact(squeezed, text):
            budget.spend(20 + len(text))
            match = fits(content, solid[at]) if solid[at] >= end else None
            if match is not None:
                end = match.end()
                yield match.span()


def _squeeze(line: str) -> str:
    return "".join(line.split())


def _squeeze_spaces(line: str) -> str:
    return _LOOSE_SPACE.sub("", " ".join(fold(line).split()))


def _join_tokens(tokens: Sequence[str]) -> str:
    parts = [r"(?<!\w)"] if tokens[0][0].isalnum() else []
    for index, token in enumerate(tokens):
        if index:
            both = (tokens[index - 1][-1] + token[0]).replace("_", "a").isalnum()
            parts.append("[ \t]+" if both else "[ \t]*")
        parts.append(re.escape(token))
    parts.extend([r"(?!\w)"] if tokens[-1][-1].isalnum() else [])
    return "".join(parts)


def _stands_alone(content: str, start: int, end: int) -> bool:
    """Return whether a found text does not begin or end inside a word."""
    before = start > 0 and _is_word(content[start - 1]) and _is_word(content[start])
    after = end < len(content) and _is_word(content[end]) and _is_word(content[end - 1])
    return not before and not after


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _widen(content: str, start: int, end: int) -> Span:
    """Extend a span that begins its line over the indentation, so that the replacement can be indented alike."""
    line = content.rfind("\n", 0, start) + 1
    return (line if not content[line:start].strip() else start), end
