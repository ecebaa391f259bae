"""Splits docstrings of functions into their text and the descriptions of their parameters. Pure."""

import re

_SECTION_TITLE = r"(?i)(args|arguments|parameters|params|keyword args|keyword arguments):?"
# Matches `name: text` and `name (str, optional): text`.
_GOOGLE_ITEM = r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)"
# Matches `name` and `name : str`; the text is in the lines below.
_NUMPY_ITEM = r"\*{0,2}(\w+)\s*(?::.*)?"
# Matches `:param name: text` and `:param str name: text`.
_REST_PARAMETER = r":(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?\*{0,2}(\w+):\s*(.*)"
_REST_TYPE = r":(type|rtype)\b"


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Split a docstring into its text without the parameters,
    and the description of each parameter by name.

    Parameters are listed below `Args:` (Google), below `Parameters` with a line of hyphens (NumPy),
    or as
    `:param name:` (reST).
    """
    lines = text.splitlines()
    other_lines: list[str] = []
    descriptions: dict[str, list[str]] = {}
    index = 0
    while index < len(lines):
        line = lines[index]
        # NumPy underlines the title of a section; Google ends it with a colon.
        is_underlined = index + 1 < len(lines) and lines[index + 1].strip().startswith("---")
        is_title = re.fullmatch(_SECTION_TITLE, line.strip()) is not None
        if is_title and is_underlined:
            index = _read_numpy_section(lines, index + 2, descriptions)
        elif is_title and line.strip().endswith(":"):
            index = _read_google_section(lines, index + 1, _measure_indent(line), descriptions)
        elif field := re.match(_REST_PARAMETER, line.strip()):
            descriptions[field[1]] = [field[2]]
            index = _collect_indented(
                lines, index + 1, _measure_indent(line), descriptions[field[1]]
            )
        elif re.match(_REST_TYPE, line.strip()):
            # The annotation has the type: the line is left out, with those that continue it.
            index = _collect_indented(lines, index + 1, _measure_indent(line), [])
        else:
            other_lines.append(line)
            index += 1
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(other_lines)).strip()
    return text, {
        name: " ".join(filter(None, (part.strip() for part in parts)))
        for name, parts in descriptions.items()
    }


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _collect_indented(lines: list[str], start: int, depth: int, texts: list[str]) -> int:
    """Append the lines from `start` on that are indented more than `depth` to `texts`;
    return the index after them.
    """
    index = start
    while index < len(lines) and lines[index].strip() and _measure_indent(lines[index]) > depth:
        texts.append(lines[index])
        index += 1
    return index


def _read_google_section(
    lines: list[str], start: int, depth: int, descriptions: dict[str, list[str]]
) -> int:
    """Add the descriptions below `Args:`, which is indented by `depth`;
    return the index after the section.
    """
    item_indent: int | None = None
    parts: list[str] = []
    index = start
    while index < len(lines) and (
        not lines[index].strip() or _measure_indent(lines[index]) > depth
    ):
        line = lines[index]
        # The first line sets the indentation of the items; deeper lines continue an item's text.
        if item_indent is None and line.strip():
            item_indent = _measure_indent(line)
        item = (
            re.fullmatch(_GOOGLE_ITEM, line.strip())
            if _measure_indent(line) == item_indent
            else None
        )
        if item:
            parts = descriptions[item[1]] = [item[2]]
        else:
            parts.append(line)
        index += 1
    return index


def _read_numpy_section(lines: list[str], start: int, descriptions: dict[str, list[str]]) -> int:
    """Add the descriptions below an underlined `Parameters`; return the index after the section."""
    index = start
    while index < len(lines):
        if not lines[index].strip():
            index += 1
            continue
        item = re.fullmatch(_NUMPY_ITEM, lines[index].strip())
        # Another underlined title begins the next section.
        if item is None or (index + 1 < len(lines) and lines[index + 1].strip().startswith("---")):
            return index
        descriptions[item[1]] = []
        index = _collect_indented(
            lines, index + 1, _measure_indent(lines[index]), descriptions[item[1]]
        )
    return index
