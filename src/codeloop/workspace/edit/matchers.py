r"""Finds in a file the text that a model remembers: matchers, from strict to loose.

Each takes the content and the old text, both with `\n` line ends, and yields spans `(start, end)` of the content.
They never decide: the caller takes the first matcher that yields anything, and refuses two spans.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

Span = tuple[int, int]
Matcher = Callable[[str, str], Iterator[Span]]

_MIDDLE = 0.7  # how alike the lines between two equal edge lines must be, 0 to 1
_LINES = 0.75  # the share of lines that must be equal when an edge line differs
_WHOLE = 0.8  # how alike such a block must be as a whole, 0 to 1
_CANDIDATES = 200
_TYPOGRAPHIC = str.maketrans(  # curly quotes, hyphens and dashes, wide and narrow blanks
    "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2010\u2011\u2012\u2013\u2014\u2212\u00a0\u2002\u2003\u2009\u202f\u3000",
    "''''\"\"\"\"------      ",
)
_ESCAPE = re.compile(r"\\(n|t|r|\"|'|`|\$|\\)")
_PLAIN = {"n": "\n", "t": "\t", "r": "\r"}
_NUMBERED = re.compile(r"[ \t]*\d+(?:: ?|\| ?|\t)")
_LOOSE_SPACE = re.compile(r"(?<!\w)\s+|\s+(?!\w)")
_TOKEN = re.compile(r"\w+|[^\w\s]")


def exact(content: str, old: str) -> Iterator[Span]:
    """Yield where the text stands as it is, overlapping places too."""
    at = content.find(old)
    while at >= 0:
        yield at, at + len(old)
        at = content.find(old, at + 1)


def multi_occurrence(content: str, old: str) -> Iterator[Span]:
    """Yield where the text stands as it is, from left to right without overlaps: what `replaceAll` replaces."""
    end = 0
    for start, stop in exact(content, old):
        if start >= end:
            end = stop
            yield start, stop


def exact_lines(content: str, old: str) -> Iterator[Span]:
    """Yield where the lines stand as they are, as whole lines: `exact` for patches."""
    yield from _blocks(content, old, str)


def line_trimmed(content: str, old: str) -> Iterator[Span]:
    """Yield blocks whose lines are equal without the blanks around each."""
    yield from _blocks(content, old, str.strip)


def whitespace_normalised(content: str, old: str) -> Iterator[Span]:
    """Yield blocks that are equal when blanks count only between words, and typographic quotes and dashes are plain.

    A single line may also be found inside a longer one.
    """
    want = [_tight(line) for line in _old_lines(old)]
    found = False
    for begin, end in _blocks(fold(content), fold(old), _squeeze):
        if [_tight(line) for line in content[begin:end].removesuffix("\n").split("\n")] == want:
            found = True
            yield begin, end
    tokens = _TOKEN.findall(fold(old))
    if found or "\n" in old.strip() or len(tokens) < 2:
        return
    for hit in re.finditer(_loose(tokens), fold(content)):
        yield _widen(content, hit.start(), hit.end())


def escape_normalised(content: str, old: str) -> Iterator[Span]:
    r"""Yield places of the text without what its way added: escapes (`\n`), entities (`&lt;`), numbers (`12: `)."""
    seen: set[Span] = set()
    for undo in VARIANTS:
        plain = undo(old)
        if plain == old or not plain.strip():
            continue
        for matcher in (exact, line_trimmed):
            for span in matcher(content, plain):
                if span not in seen:
                    seen.add(span)
                    yield span
            if seen:
                return


def trimmed_boundary(content: str, old: str) -> Iterator[Span]:
    """Yield places of the text without the blanks and blank lines at its two ends."""
    inner = old.strip()
    if not inner or inner == old:
        return
    found = False
    for start, end in exact(content, inner):
        if _stands_alone(content, start, end):
            found = True
            yield _widen(content, start, end)
    if not found and "\n" in inner:
        yield from line_trimmed(content, inner)


def block_anchor(content: str, old: str) -> Iterator[Span]:
    """Yield blocks with the same first and last line whose lines between are alike (Levenshtein)."""
    want = [line.strip() for line in _old_lines(old)]
    while want and not want[-1]:
        want.pop()
    skipped = next((index for index, line in enumerate(want) if line), 0)
    want = want[skipped:]
    if len(want) < 3 or want[0] not in content or want[-1] not in content:
        return
    from rapidfuzz.distance import Levenshtein

    lines = [line.strip() for line in content.split("\n")]
    slack = max(1, len(want) // 4)
    middle = "\n".join(want[1:-1])
    for begin in _positions(lines, want[0])[:_CANDIDATES]:
        best, size = 0.0, 0
        for count in range(max(3, len(want) - slack), len(want) + slack + 1):
            stop = begin + count
            if stop > len(lines) or lines[stop - 1] != want[-1]:
                continue
            there = "\n".join(lines[begin + 1 : stop - 1])
            alike = Levenshtein.normalized_similarity(middle, there, score_cutoff=_MIDDLE)
            if alike > best:
                best, size = alike, count
        if best >= _MIDDLE:
            yield _span(content, begin, size, closed=old.endswith("\n"))


def context_aware(content: str, old: str) -> Iterator[Span]:
    """Yield blocks of as many lines in which most lines are equal, where the first or the last may have drifted."""
    want = [line.strip() for line in _old_lines(old)]
    solid = [index for index, line in enumerate(want) if line]
    if len(solid) < 4:
        return
    anchors = [index for index in sorted(solid, key=lambda index: -len(want[index]))[:3] if want[index] in content]
    if not anchors:
        return
    from rapidfuzz.distance import Levenshtein

    lines = [line.strip() for line in content.split("\n")]
    begins = {at - anchor for anchor in anchors for at in _positions(lines, want[anchor])[:_CANDIDATES]}
    whole = "\n".join(want)
    for begin in sorted(begins):
        block = lines[begin : begin + len(want)] if begin >= 0 else []
        if len(block) < len(want):
            continue
        equal = sum(1 for index in solid if block[index] == want[index])
        if equal < _LINES * len(solid):
            continue
        if Levenshtein.normalized_similarity(whole, "\n".join(block), score_cutoff=_WHOLE) >= _WHOLE:
            yield _span(content, begin, len(want), closed=old.endswith("\n"))


CASCADE: tuple[Matcher, ...] = (
    exact,
    line_trimmed,
    escape_normalised,
    trimmed_boundary,
    whitespace_normalised,
    block_anchor,
    context_aware,
)
"""What an edit tries, in order; `multi_occurrence` takes the first place with `replaceAll`."""

LINEWISE: tuple[Matcher, ...] = (
    exact_lines,
    line_trimmed,
    whitespace_normalised,
    block_anchor,
    context_aware,
)
"""What a patch tries for the lines of a hunk."""

HOW: dict[Matcher, str] = {
    line_trimmed: "ignoring indentation",
    escape_normalised: "without its escapes, entities or line numbers",
    trimmed_boundary: "without the blanks at its ends",
    whitespace_normalised: "ignoring blanks and the kind of quotes and dashes",
    block_anchor: "by its first and last line; those between differ a little",
    context_aware: "by most of its lines; the others differ a little",
}
"""How each matcher that does not find the very text found it, for the model."""

APPROXIMATE: frozenset[Matcher] = frozenset({block_anchor, context_aware})
"""Matchers whose places may hold other words than the old text; what the edit changes there is compared once more."""


def fold(text: str) -> str:
    """Return the text with typographic quotes, dashes and blanks as plain ones; offsets stay."""
    return text if text.isascii() else text.translate(_TYPOGRAPHIC)


def _backslashes(text: str) -> str:
    return _ESCAPE.sub(lambda found: _PLAIN.get(found[1], found[1]), text)


def _entities(text: str) -> str:
    for name, char in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#39;", "'"), ("&apos;", "'"), ("&amp;", "&")):
        text = text.replace(name, char)
    return text


def _numbers(text: str) -> str:
    lines = text.split("\n")
    if not all(_NUMBERED.match(line) for line in lines if line.strip()):
        return text
    return "\n".join(_NUMBERED.sub("", line, count=1) for line in lines)


VARIANTS: tuple[Callable[[str], str], ...] = (_backslashes, _entities, _numbers)
"""What undoes the ways in which a text is disfigured between a file and a model's call."""


def _old_lines(old: str) -> list[str]:
    return old.removesuffix("\n").split("\n")


def _positions(lines: Sequence[str], wanted: str) -> list[int]:
    return [index for index, line in enumerate(lines) if line == wanted]


def _blocks(content: str, old: str, key: Callable[[str], str]) -> Iterator[Span]:
    want = [key(line) for line in _old_lines(old)]
    anchor = max(range(len(want)), key=lambda index: len(want[index]))
    if not want[anchor].strip() or (key is not _squeeze and want[anchor] not in content):
        return
    have = [key(line) for line in content.split("\n")]
    for at in _positions(have, want[anchor]):
        begin = at - anchor
        if begin >= 0 and have[begin : begin + len(want)] == want:
            yield _span(content, begin, len(want), closed=old.endswith("\n"))


def _span(content: str, begin: int, count: int, *, closed: bool) -> Span:
    """Return the offsets of whole lines; `closed` takes the last line's end with them."""
    lengths = [len(line) + 1 for line in content.split("\n")[: begin + count]]
    ends = list(accumulate(lengths))
    start = ends[begin - 1] if begin else 0
    end = ends[-1] - (0 if closed else 1)
    return start, min(end, len(content))


def _squeeze(line: str) -> str:
    return "".join(line.split())


def _tight(line: str) -> str:
    return _LOOSE_SPACE.sub("", " ".join(fold(line).split()))


def _loose(tokens: Sequence[str]) -> str:
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
    """Take the indentation with a text that begins its line, so that what replaces it can be indented alike."""
    line = content.rfind("\n", 0, start) + 1
    return (line if not content[line:start].strip() else start), end
