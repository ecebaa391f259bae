r"""Matchers that find a model's remembered text in a file, from strict to loose.

Each takes the content and the old text, both with `\n` line ends, and yields spans `(start, end)`
of the content. They never decide: the caller takes the first matcher that yields anything, and
refuses several spans or chooses one. The strict ones are linear. The loose ones look at candidates,
with a budget: TooManyCandidates when it is used up.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise

from codeloop.schema.errors import CodeloopError
from codeloop.workspace.edit.escapes import unescape_backslashes

Span = tuple[int, int]
Matcher = Callable[[str, str], Iterator[Span]]

# How similar the lines between two equal edge lines must be, 0 to 1.
_MIN_MIDDLE_SIMILARITY = 0.7
# The share of lines that must be equal when the first or the last line may differ.
_MIN_EQUAL_LINES = 0.75
# How similar such a block must be as a whole, 0 to 1.
_MIN_BLOCK_SIMILARITY = 0.8
_MAX_CANDIDATES = 200
# Steps of one matcher, some 50 ns each.
_MAX_STEPS = 5_000_000
# Cells of a Levenshtein table that are computed in one step.
_CELLS_PER_STEP = 2_000
# Each distinct line becomes one character, and Python has little more than a million.
_MAX_LINES = 1_000_000
# A single comparison can't be interrupted, so a longer one is not begun.
_MAX_COMPARISON_STEPS = 400_000
# Curly quotes, hyphens and dashes, wide and narrow blanks, each with its plain character.
_PLAIN_CHARACTERS = str.maketrans(
    "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2010\u2011\u2012\u2013\u2014\u2212\u00a0\u2002\u2003\u2009\u202f\u3000",
    "''''\"\"\"\"------      ",
)
# `\n` in place of a line end, `\"` in place of a quote.
# The number before a line, as `read` and `grep` show it: `12: `, `12| `, `12\t`, `12- `.
_LINE_NUMBER = r"[ \t]*(\d{1,9})(?:: ?|\| ?|\t|-(?: |$))"
# Blanks that are not between two words.
_LOOSE_SPACE = r"(?<!\w)\s+|\s+(?!\w)"
_WORD_OR_SIGN = r"\w+|[^\w\s]"


class TooManyCandidates(CodeloopError):
    """The content has too many places similar to the text to compare them all in time;
    the message is a clause.
    """


class ComparisonBudget:
    """Counts the steps of one search. Its methods raise TooManyCandidates
    when there are too many.
    """

    __slots__ = ("_remaining_steps",)

    def __init__(self) -> None:
        self._remaining_steps = _MAX_STEPS

    def spend(self, steps: int) -> None:
        """Use up `steps` of the budget."""
        self._remaining_steps -= steps
        if self._remaining_steps < 0:
            raise TooManyCandidates("the file has too many places like it to compare them all")

    def spend_for_comparison(self, one: str, other: str) -> None:
        """Use up the steps that the comparison of two texts takes.
        Call it before comparing them.
        """
        steps = len(one) * len(other) // _CELLS_PER_STEP
        # The call itself takes as long as some twenty steps.
        self.spend(steps + 20 if steps <= _MAX_COMPARISON_STEPS else _MAX_STEPS + 1)


def match_exact(content: str, old: str) -> Iterator[Span]:
    """Yield every exact occurrence, overlapping ones too."""
    start = content.find(old)
    while start >= 0:
        yield start, start + len(old)
        start = content.find(old, start + 1)


def match_exact_lines(content: str, old: str) -> Iterator[Span]:
    """Yield exact occurrences that are whole lines: `match_exact` for patches."""
    lines = old.removesuffix("\n")
    if lines.strip():
        # Both get a line end before and after them. So in `content`, offsets are one less, and the
        # match begins one character later: the start stays, the end is two less, or one if the last
        # line end belongs to `old`.
        for start, end in match_exact(f"\n{content}\n", f"\n{lines}\n"):
            yield start, min(end - 2 + old.endswith("\n"), len(content))


def match_trimmed_lines(content: str, old: str) -> Iterator[Span]:
    """Yield blocks whose lines are equal once each is stripped."""
    yield from _find_blocks(content, old, str.strip)


def match_loose_whitespace(content: str, old: str) -> Iterator[Span]:
    """Yield blocks that are equal when blanks count only between words,
    and typographic quotes and dashes are plain.

    A single line may also be found inside a longer one.
    """
    wanted = [_remove_loose_spaces(line) for line in _split_lines(old)]
    folded, plain, budget = fold_typography(content), fold_typography(old), ComparisonBudget()
    is_found = False
    for begin, end in _find_blocks(folded, plain, _remove_spaces):
        # Four characters are compared in about one step.
        budget.spend((end - begin) // 4)
        if [
            _remove_loose_spaces(line) for line in content[begin:end].removesuffix("\n").split("\n")
        ] == wanted:
            is_found = True
            yield begin, end
    tokens = re.findall(_WORD_OR_SIGN, plain)
    if is_found or "\n" in old.strip() or len(tokens) < 2:
        return
    for start, end in _find_inside_lines(folded, tokens, budget):
        yield _widen(content, start, end)


def match_unescaped(content: str, old: str) -> Iterator[Span]:
    r"""Yield occurrences of the text without added escapes (`\n`),
    entities (`&lt;`) or line numbers (`12: `).
    """
    seen: set[Span] = set()
    for unescape in UNESCAPERS:
        plain = unescape(old)
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
    is_found, budget = False, ComparisonBudget()
    for start, end in match_exact(content, inner):
        budget.spend(10 + len(inner) // 20)
        if _stands_alone(content, start, end):
            is_found = True
            yield _widen(content, start, end)
    if not is_found and "\n" in inner:
        yield from match_trimmed_lines(content, inner)


def match_block_edges(content: str, old: str) -> Iterator[Span]:
    """Yield blocks with the same first and last line,
    and similar lines between them (by Levenshtein distance).
    """
    wanted = [line.strip() for line in _split_lines(old)]
    while wanted and not wanted[-1]:
        wanted.pop()
    skipped = next((index for index, line in enumerate(wanted) if line), 0)
    wanted = wanted[skipped:]
    # A cheap check first: in most files an edge line is missing.
    if len(wanted) < 3 or wanted[0] not in content or wanted[-1] not in content:
        return
    from rapidfuzz.distance import Levenshtein

    lines, budget = [line.strip() for line in content.split("\n")], ComparisonBudget()
    starts = _find_line_starts(content)
    slack = max(1, len(wanted) // 4)
    middle = "\n".join(wanted[1:-1])
    for begin in _find_positions(lines, wanted[0])[:_MAX_CANDIDATES]:
        best_similarity, best_count = 0.0, 0
        for count in range(max(3, len(wanted) - slack), len(wanted) + slack + 1):
            stop = begin + count
            if stop > len(lines):
                break
            budget.spend(1)
            if lines[stop - 1] != wanted[-1]:
                continue
            budget.spend(count)
            actual = "\n".join(lines[begin + 1 : stop - 1])
            budget.spend_for_comparison(middle, actual)
            similarity = Levenshtein.normalized_similarity(
                middle, actual, score_cutoff=_MIN_MIDDLE_SIMILARITY
            )
            if similarity > best_similarity:
                best_similarity, best_count = similarity, count
        if best_similarity >= _MIN_MIDDLE_SIMILARITY:
            yield _make_span(starts, begin, best_count, with_line_end=old.endswith("\n"))


def match_most_lines(content: str, old: str) -> Iterator[Span]:
    """Yield blocks with the same number of lines as the old text, most of them equal;
    any line may differ.
    """
    wanted = [line.strip() for line in _split_lines(old)]
    nonblank = [index for index, line in enumerate(wanted) if line]
    if len(nonblank) < 4:
        return
    # Blocks are looked for around the places of the longest lines, which are the rarest.
    longest_lines = sorted(nonblank, key=lambda index: -len(wanted[index]))[:3]
    anchors = [index for index in longest_lines if wanted[index] in content]
    if not anchors:
        return
    from rapidfuzz.distance import Levenshtein

    lines, budget = [line.strip() for line in content.split("\n")], ComparisonBudget()
    starts = _find_line_starts(content)
    begins = {
        position - anchor
        for anchor in anchors
        for position in _find_positions(lines, wanted[anchor])[:_MAX_CANDIDATES]
    }
    text = "\n".join(wanted)
    for begin in sorted(begins):
        block = lines[begin : begin + len(wanted)] if begin >= 0 else []
        if len(block) < len(wanted):
            continue
        budget.spend(2 * len(wanted))
        equal_count = sum(1 for index in nonblank if block[index] == wanted[index])
        if equal_count < _MIN_EQUAL_LINES * len(nonblank):
            continue
        actual = "\n".join(block)
        budget.spend_for_comparison(text, actual)
        similarity = Levenshtein.normalized_similarity(
            text, actual, score_cutoff=_MIN_BLOCK_SIMILARITY
        )
        if similarity >= _MIN_BLOCK_SIMILARITY:
            yield _make_span(starts, begin, len(wanted), with_line_end=old.endswith("\n"))


# The matchers of an edit, in the order in which they are tried: the strictest first.
EDIT_MATCHERS: tuple[Matcher, ...] = (
    match_exact,
    match_trimmed_lines,
    match_unescaped,
    match_trimmed_ends,
    match_loose_whitespace,
    match_block_edges,
    match_most_lines,
)

# The same for the lines of a patch's hunk.
PATCH_MATCHERS: tuple[Matcher, ...] = (
    match_exact_lines,
    match_trimmed_lines,
    match_loose_whitespace,
    match_block_edges,
    match_most_lines,
)

# A clause for the model, in results and errors: how each inexact matcher found the text.
MATCH_NOTES: dict[Matcher, str] = {
    match_trimmed_lines: "ignoring indentation",
    match_unescaped: "without its escapes, entities or line numbers",
    match_trimmed_ends: "without the blanks at its ends",
    match_loose_whitespace: "ignoring blanks and the kind of quotes and dashes",
    match_block_edges: "by its first and last line; those between differ a little",
    match_most_lines: "by most of its lines; the others differ a little",
}

# Matchers whose spans may hold other words than the old text;
# the lines that the edit changes are compared again.
APPROXIMATE_MATCHERS: frozenset[Matcher] = frozenset({match_block_edges, match_most_lines})


def fold_typography(text: str) -> str:
    """Return the text with typographic quotes, dashes and blanks as plain ones; offsets stay."""
    return text if text.isascii() else text.translate(_PLAIN_CHARACTERS)


def _unescape_entities(text: str) -> str:
    for name, char in (
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", '"'),
        ("&#39;", "'"),
        ("&apos;", "'"),
        ("&amp;", "&"),
    ):
        text = text.replace(name, char)
    return text


def strip_line_numbers(text: str) -> str:
    """Return a text without the line numbers that `read` and `grep` show.

    It stays as it is unless each line has a number, or the numbers rise: in the output of `grep`,
    not every line of a block has one.
    """
    lines = text.split("\n")
    numbers = [int(found[1]) for line in lines if (found := re.match(_LINE_NUMBER, line))]
    is_numbered = all(re.match(_LINE_NUMBER, line) for line in lines if line.strip())
    if not is_numbered and any(number >= next_number for number, next_number in pairwise(numbers)):
        return text
    return "\n".join(re.sub(_LINE_NUMBER, "", line, count=1) for line in lines)


# Functions that take back what may happen to a text between a file and a model's call.
UNESCAPERS: tuple[Callable[[str], str], ...] = (
    unescape_backslashes,
    _unescape_entities,
    strip_line_numbers,
)


def _split_lines(old: str) -> list[str]:
    return old.removesuffix("\n").split("\n")


def _find_positions(lines: Sequence[str], text: str) -> list[int]:
    return [index for index, line in enumerate(lines) if line == text]


def _find_blocks(content: str, old: str, key: Callable[[str], str]) -> Iterator[Span]:
    """Yield the spans of whole lines that are equal to those of `old`;
    lines are compared by their `key`.
    """
    wanted = [key(line) for line in _split_lines(old)]
    anchor = max(wanted, key=len)
    # Without its spaces, the longest line need not occur in the content as it is.
    if not anchor.strip() or (key is not _remove_spaces and anchor not in content):
        return
    if len(wanted) > _MAX_LINES:
        raise TooManyCandidates(f"it has more than {_MAX_LINES:,} lines")
    # Each distinct line is mapped to one character, so that blocks are found by a search
    # in a string, which is fast.
    characters = {line: chr(number) for number, line in enumerate(dict.fromkeys(wanted), 1)}
    content_characters = "".join([characters.get(key(line), "\0") for line in content.split("\n")])
    starts: list[int] = []
    for begin, _ in match_exact(content_characters, "".join(map(characters.__getitem__, wanted))):
        starts = starts or _find_line_starts(content)
        yield _make_span(starts, begin, len(wanted), with_line_end=old.endswith("\n"))


def _find_line_starts(content: str) -> list[int]:
    """Return the offset of each line's start, and the end of the text."""
    return [0, *accumulate(len(line) + 1 for line in content.split("\n"))]


def _make_span(starts: Sequence[int], begin: int, count: int, *, with_line_end: bool) -> Span:
    """Return the offsets of `count` whole lines from line `begin` on. `starts`: as
    `_find_line_starts` returns them.
    """
    end = starts[begin + count] - (0 if with_line_end else 1)
    # The last line of a text may have no line end.
    return starts[begin], min(end, starts[-1] - 1)


def _find_inside_lines(
    content: str, tokens: Sequence[str], budget: ComparisonBudget
) -> Iterator[Span]:
    """Yield the spans in which the tokens follow one another on a line,
    with any blanks between them.
    """
    text, match_tokens = "".join(tokens), re.compile(_join_tokens(tokens)).match
    last_end = 0
    for start, stop in pairwise(_find_line_starts(content)):
        line = content[start : stop - 1]
        # A search without blanks first, which is fast; the expression is then tried
        # only where the text begins.
        compact_line = _remove_spaces(line)
        if text not in compact_line:
            continue
        # The offset in `content` of each character of `compact_line`.
        offsets = [start + column for column, char in enumerate(line) if not char.isspace()]
        for index, _ in match_exact(compact_line, text):
            budget.spend(20 + len(text))
            match = match_tokens(content, offsets[index]) if offsets[index] >= last_end else None
            if match is not None:
                last_end = match.end()
                yield match.span()


def _remove_spaces(line: str) -> str:
    return "".join(line.split())


def _remove_loose_spaces(line: str) -> str:
    return re.sub(_LOOSE_SPACE, "", " ".join(fold_typography(line).split()))


def _join_tokens(tokens: Sequence[str]) -> str:
    """Return a regular expression for the tokens: blanks between them may differ,
    but not join or split words.
    """
    parts = [r"(?<!\w)"] if tokens[0][0].isalnum() else []
    for index, token in enumerate(tokens):
        if index:
            is_between_words = _is_word(tokens[index - 1][-1]) and _is_word(token[0])
            parts.append("[ \t]+" if is_between_words else "[ \t]*")
        parts.append(re.escape(token))
    parts.extend([r"(?!\w)"] if tokens[-1][-1].isalnum() else [])
    return "".join(parts)


def _stands_alone(content: str, start: int, end: int) -> bool:
    """Return whether a found text neither begins nor ends inside a word."""
    begins_inside = start > 0 and _is_word(content[start - 1]) and _is_word(content[start])
    ends_inside = end < len(content) and _is_word(content[end]) and _is_word(content[end - 1])
    return not begins_inside and not ends_inside


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _widen(content: str, start: int, end: int) -> Span:
    """Extend a span that begins its line over the indentation,
    so that the replacement can be indented alike.
    """
    line_start = content.rfind("\n", 0, start) + 1
    return (line_start if not content[line_start:start].strip() else start), end
