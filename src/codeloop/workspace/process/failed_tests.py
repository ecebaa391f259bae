"""Shortens what pytest and vitest print about failed tests: name, assertion,
difference and place always stay. Pure.
"""

import re
from collections.abc import Iterator, Sequence

from codeloop.kit.text.patterns import compile_once

# Of pytest's output: `____ test_a ____`, `==== short test summary info ====`,
# `tests/test_a.py:12: AssertionError`.
_FAILURE_HEADING = r"_{2,} .+ _{2,}$"
_SECTION_RULE = r"=+ .+ =+$"
_LOCATION = r"\S+:\d+: \w+"
# The number of failures at one location that are shown whole, of those that pytest prints.
_MAX_WHOLE_FAILURES = 5
# The lines of the message of each further failure there.
_MESSAGE_LINES = 6
# Rows of dots, and lines about pytest itself and its plugins, which stand above the results.
_PROGRESS = r"(?:\S+\.py )?[.sxXFE]+ *\[ *\d+%\]$"
_HEADER = (
    r"platform \w+ -- Python |(?:cachedir|plugins|benchmark|timeout|metadata): |(?:asyncio|hypothesis profile)\b"
    r"|bringing up nodes\.\.\.|created: \d+/\d+ workers|\d+ workers \[|scheduling tests via |\[gw\d+\] \w+ -- Python "
)
# A line of source as pytest shows it, the one that failed, and the head of a function.
_SOURCE = r"    |\s*$"
_FAILING_LINE = r">\s"
_FUNCTION = r"    (?:async )?def .*"
# The lines of a function that are shown above the one that failed.
_LINES_ABOVE = 6
# Fewer lines are shown, not left out.
_MIN_OMITTED = 3
_OMITTED = "        ..."
_RULER = r"([=_-])\1{4,}( .+ )\1{4,}$|(?:_ ){4,}_?\s*$"
# Of vitest's output: the head of a failure, its place, a line of its code with its number,
# and the line between two.
_VITEST_HEAD = r" FAIL  \S.*"
_VITEST_PLACE = r" \u276f \S.*:\d+:\d+$"
_VITEST_CODE = r" +(?:\d+)?\| ?"
_VITEST_MARK = r" +\| +\^"
_VITEST_RULER = r"\u23af{4,}"
_VITEST_NUMBER = r"\u23af+\[\d+/\d+\]\u23af+$"
# A row of a failed test above the failures, each of which has the name again.
_VITEST_ROW = r"\s+\u00d7 "
# Failures of one kind, whose messages differ in names and numbers alone, that are shown whole.
_WHOLE_OF_A_KIND = 2
_NAMES = r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`|\d+(?:\.\d+)?"


def shorten_pytest(lines: Sequence[str]) -> list[str]:
    """Shorten pytest's failures: long functions, rulers, the third of a kind,
    the sixth at one place; its header.
    """
    sections = [*_split_sections(lines)]
    is_failure = [
        compile_once(_FAILURE_HEADING).match(section[0]) is not None for section in sections
    ]
    has_failures = any(is_failure)
    kept: list[str] = []
    counts: dict[str, int] = {}
    kinds: dict[tuple[str, ...], int] = {}
    for section, fails in zip(sections, is_failure, strict=True):
        if not fails:
            kept += [line for line in section if not _is_left_out(line, has_failures=has_failures)]
            continue
        location = next(
            (each for each in reversed(section) if compile_once(_LOCATION).match(each)), ""
        )
        counts[location] = counts.get(location, 0) + 1
        message = [each for each in section if each.startswith("E ")]
        kind = (location, *(compile_once(_NAMES).sub("", each) for each in message))
        kinds[kind] = kinds.get(kind, 0) + 1
        if location and kinds[kind] > _WHOLE_OF_A_KIND:
            kept += [section[0], *message[:1]]
        elif location and counts[location] > _MAX_WHOLE_FAILURES:
            kept += [
                section[0],
                *message[:_MESSAGE_LINES],
                *(["E   ..."] if len(message) > _MESSAGE_LINES else []),
            ]
        else:
            kept += _shorten_functions(section)
    return (
        [compile_once(_RULER).sub(_shorten_ruler, line) for line in kept] if has_failures else kept
    )


def _split_sections(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the lines from each heading or rule up to the next; the first section may have none."""
    section: list[str] = []
    for line in lines:
        if section and (
            compile_once(_FAILURE_HEADING).match(line) or compile_once(_SECTION_RULE).match(line)
        ):
            yield section
            section = []
        section.append(line)
    if section:
        yield section


def _is_left_out(line: str, *, has_failures: bool) -> bool:
    """Return whether a line is about pytest itself,
    or a row of results that the failures below name.
    """
    if compile_once(_HEADER).match(line):
        return True
    return (
        has_failures
        and ("F" in line or "E" in line)
        and compile_once(_PROGRESS).match(line) is not None
    )


def _shorten_functions(section: Sequence[str]) -> list[str]:
    """Return a failure with the head of each function, the line that failed in it,
    and the six lines above that.
    """
    kept: list[str] = []
    # The source of a function, as far as it was read.
    source: list[str] = []
    for line in section:
        if compile_once(_SOURCE).match(line):
            source.append(line)
            continue
        kept += _shorten_source(source) if compile_once(_FAILING_LINE).match(line) else source
        source = []
        kept.append(line)
    return [*kept, *source]


def _shorten_source(source: Sequence[str]) -> Sequence[str]:
    """Return the lines of a function above the one that failed: from its head on,
    without those in the middle.
    """
    start = next((index for index, line in enumerate(source) if line.strip()), 0)
    head = next(
        (index for index, line in enumerate(source) if compile_once(_FUNCTION).match(line)), None
    )
    if head is None:
        return source
    body = next(
        (index + 1 for index in range(head, len(source)) if source[index].rstrip().endswith(":")),
        head + 1,
    )
    near = max(body, len(source) - _LINES_ABOVE)
    middle = source[body:near] if near - body < _MIN_OMITTED else [_OMITTED]
    decorators = source[start:head] if head - start < _MIN_OMITTED else list[str]()
    return [*source[:start], *decorators, *source[head:body], *middle, *source[near:]]


def _shorten_ruler(ruler: re.Match[str]) -> str:
    """Return a ruler, or a heading between two, with three of its characters for many."""
    return f"{ruler[1] * 3}{ruler[2]}{ruler[1] * 3}" if ruler[1] else "_ _ _"


def shorten_vitest(lines: Sequence[str]) -> list[str]:
    """Shorten vitest's failures: less code around a place, and of the third of a kind name,
    message and place.

    Names of failed tests stand once, where each has its failure.
    """
    rows = [line for line in lines if compile_once(_VITEST_ROW).match(line)]
    heads = [line for line in lines if compile_once(_VITEST_HEAD).match(line)]
    if len(rows) <= len(heads):
        lines = [line for line in lines if not compile_once(_VITEST_ROW).match(line)]
    kept: list[str] = []
    counts: dict[tuple[str, ...], int] = {}
    failure: list[str] = []
    for line in lines:
        is_head = compile_once(_VITEST_HEAD).match(line) is not None
        is_end = compile_once(_VITEST_RULER).match(line) is not None
        if failure and (is_head or is_end):
            kept += _shorten_vitest_failure(failure, counts)
            failure = []
        if is_head or failure:
            failure.append(line)
        elif not compile_once(_VITEST_NUMBER).match(line) and (line or kept[-1:] != [""]):
            kept.append(compile_once(_VITEST_RULER).sub("\u23af\u23af\u23af", line))
    return [*kept, *(_shorten_vitest_failure(failure, counts) if failure else [])]


def _shorten_vitest_failure(lines: Sequence[str], counts: dict[tuple[str, ...], int]) -> list[str]:
    place = next(
        (index for index, line in enumerate(lines) if compile_once(_VITEST_PLACE).match(line)),
        len(lines),
    )
    kind = tuple(compile_once(_NAMES).sub("", line) for line in lines[1:place])
    counts[kind] = counts.get(kind, 0) + 1
    if counts[kind] > _WHOLE_OF_A_KIND and place < len(lines):
        return [lines[0], *lines[1:2], lines[place], ""]
    return [*lines[:place], *_shorten_code(lines[place:])]


def _shorten_code(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines; of code around a marked line only the one above it."""
    for index, line in enumerate(lines):
        near = lines[index : index + 3]
        is_near = any(compile_once(_VITEST_MARK).match(each) for each in near)
        if is_near or not compile_once(_VITEST_CODE).match(line):
            yield line
