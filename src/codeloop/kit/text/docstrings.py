"""Splits docstrings of functions into their text and the descriptions of their parameters. Pure."""

import re

_SECTION_TITLE = re.compile(r"(args|arguments|parameters|params|keyword args|keyword arguments):?", re.IGNORECASE)
_GOOGLE_ITEM = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_NUMPY_ITEM = re.compile(r"\*{0,2}(\w+)\s*(?::.*)?")
_REST_PARAMETER = re.compile(r":(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?\*{0,2}(\w+):\s*(.*)")
_REST_TYPE = re.compile(r":(type|rtype)\b")


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Split a docstring into its text without the parameters, and the description of each parameter by name.

    Parameters are listed below `Args:` (Google), below `Parameters` with a line of hyphens (NumPy), or as
    `:param name:` (reST).
    """
    lines = text.splitlines()
    lines_left: list[str] = []
    sections: dict[str, list[str]] = {}
    at = 0
    while at < len(lines):
        line = lines[at]
        # NumPy underlines the title of a section; Google ends it with a colon.
        is_underlined = at + 1 < len(lines) and lines[at + 1].strip().startswith("---")
        if _SECTION_TITLE.fullmatch(line.strip()) and (is_underlined or line.strip().endswith(":")):
            at = (
                _read_numpy_section(lines, at + 2, sections)
                if is_underlined
                else _read_google_section(lines, at + 1, _measure_indent(line), sections)
            )
        elif field := _REST_PARAMETER.match(line.strip()):
            sections[field[1]] = [field[2]]
            at = _collect_indented(lines, at + 1, _measure_indent(line), sections[field[1]])
        elif _REST_TYPE.match(line.strip()):
            at = _collect_indented(lines, at + 1, _measure_indent(line), [])
        else:
            lines_left.append(line)
            at += 1
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines_left)).strip()
    return text, {name: " ".join(filter(None, (each.strip() for each in texts))) for name, texts in sections.items()}


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _collect_indented(lines: list[str], at: int, depth: int, texts: list[str]) -> int:
    """Append the lines that are indented more than `depth` to `texts`; return the index of the first other line."""
    while at < len(lines) and lines[at].strip() and _measure_indent(lines[at]) > depth:
        texts.append(lines[at])
        at += 1
    return at


def _read_google_section(lines: list[str], at: int, depth: int, sections: dict[str, list[str]]) -> int:
    own: int | None = None
    texts: list[str] = []
    while at < len(lines) and (not lines[at].strip() or _measure_indent(lines[at]) > depth):
        line = lines[at]
        # The first line sets the indentation of the items; deeper lines continue an item's text.
        own = _measure_indent(line) if own is None and line.strip() else own
        item = _GOOGLE_ITEM.fullmatch(line.strip()) if _measure_indent(line) == own else None
        if item:
            texts = sections[item[1]] = [item[2]]
        else:
            texts.append(line)
        at += 1
    return at


def _read_numpy_section(lines: list[str], at: int, sections: dict[str, list[str]]) -> int:
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        item = _NUMPY_ITEM.fullmatch(lines[at].strip())
        # Another underlined title begins the next section.
        if item is None or (at + 1 < len(lines) and lines[at + 1].strip().startswith("---")):
            return at
        sections[item[1]] = []
        at = _collect_indented(lines, at + 1, _measure_indent(lines[at]), sections[item[1]])
    return at
