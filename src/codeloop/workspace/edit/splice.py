"""Splices a new text in place of an old one: unchanged lines keep their bytes,
new ones get the file's indentation.
"""

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from codeloop.kit.text.diff import BoundedMatcher, list_edits
from codeloop.workspace.edit.normalized_text import NormalizedText

# The most comparisons of lines in one edit.
_MAX_COMPARISONS = 1_000_000


class LineChange(Struct, frozen=True):
    """Lines that a new text replaces, as the model `remembered` them and
    as they are in the file.
    """

    remembered: tuple[str, ...]
    actual: tuple[str, ...]


def splice(source: NormalizedText, span: tuple[int, int], old: str, new: str) -> str:
    """Return the text that replaces a span in which `old` was found: `new`,
    with the file's line ends and indentation.

    A line that `old` and `new` share stays as the file has it,
    even where the model remembers it wrongly.
    """
    start, end = span
    segment = source.text[start:end]
    line_end = source.find_line_end(start, end)
    if segment == old and "\n" not in old:
        return new.replace("\n", line_end) if line_end != "\n" else new
    file_lines = segment.split("\n")
    old_lines, new_lines = old.split("\n"), _match_end(segment, old, new).split("\n")
    # The span holds the last line's end, which `new` replaces but `old` lacks.
    if len(file_lines) > 1 and not file_lines[-1] and old_lines[-1] and not new_lines[-1]:
        old_lines.append("")
    edges = _find_edges(old_lines, file_lines)
    indentation = Indentation(_pair_indents(old_lines, file_lines, edges))
    # Each line of the file with its own line end, since a file may mix them.
    *body, tail = source.slice_original(start, end).split("\n")
    original_lines = [
        (line.removesuffix("\r"), "\r\n" if line.endswith("\r") else "\n") for line in body
    ]
    original_lines.append((tail, line_end))
    pieces: list[tuple[str, str]] = []
    for tag, i1, i2, j1, j2 in list_edits(old_lines, new_lines):
        if tag == "equal":
            pieces.extend(original_lines[edges[i1] : edges[i2]])
            continue
        # The old lines that new ones replace, each with its index in the file;
        # "" and -1 where there is none.
        replaced = [*zip(old_lines[i1:i2], edges[i1:i2], strict=True), *[("", -1)] * (j2 - j1)]
        for line, (old_line, file_index) in zip(new_lines[j1:j2], replaced, strict=False):
            have_text = 0 <= file_index < len(file_lines) and line.strip() and old_line.strip()
            # A line that keeps the indentation of the old one gets that of the file's line.
            if have_text and _get_indent(line) == _get_indent(old_line):
                indented = _get_indent(file_lines[file_index]) + line.lstrip(" \t")
            else:
                indented = indentation.reindent(line)
            pieces.append((indented, line_end))
    return "".join(text + ending for text, ending in pieces[:-1]) + (
        pieces[-1][0] if pieces else ""
    )


def find_replaced_lines(segment: str, old: str, new: str) -> list[LineChange]:
    """Return the lines that an edit would remove from an approximate match,
    for a last comparison.
    """
    file_lines, old_lines = segment.split("\n"), old.split("\n")
    edges = _find_edges(old_lines, file_lines)
    return [
        LineChange(tuple(old_lines[i1:i2]), tuple(file_lines[edges[i1] : edges[i2]]))
        for tag, i1, i2, _, _ in list_edits(old_lines, new.split("\n"))
        if tag in {"replace", "delete"}
    ]


def _match_end(segment: str, old: str, new: str) -> str:
    """Drop the final line end of `new` where the file has none,
    although `old` and `new` both end with one.
    """
    if old.endswith("\n") and new.endswith("\n") and not segment.endswith("\n"):
        return new.removesuffix("\n")
    return new


def _find_edges(old: Sequence[str], file_lines: Sequence[str]) -> list[int]:
    """Return for each line of the old text, and for its end,
    the index of the file's line where it begins.
    """
    if len(old) == len(file_lines):
        return list(range(len(old) + 1))
    edges = [0] * (len(old) + 1)
    matcher = BoundedMatcher(
        [line.strip() for line in old], [line.strip() for line in file_lines], _MAX_COMPARISONS
    )
    for _, i1, i2, j1, j2 in matcher.get_opcodes():
        for index in range(i1, i2):
            edges[index] = min(j1 + index - i1, j2)
    edges[0], edges[-1] = 0, len(file_lines)
    return edges


def _pair_indents(
    old: Sequence[str], file_lines: Sequence[str], edges: Sequence[int]
) -> list[tuple[str, str]]:
    """Return the indent of each old line with that of the file's line,
    where exactly one line corresponds to it.
    """
    pairs: list[tuple[str, str]] = []
    for index, line in enumerate(old):
        if edges[index + 1] - edges[index] == 1:
            file_line = file_lines[edges[index]]
            if line.strip() and file_line.strip():
                pairs.append((_get_indent(line), _get_indent(file_line)))
    return pairs


def _get_indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


class Indentation:
    """Converts the model's indentation to the file's, learnt from pairs of indents (the model's,
    the file's).
    """

    __slots__ = ("_known_indents", "_step", "_unit")

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        # The model's indent -> the file's.
        self._known_indents: dict[str, str] = {}
        for model, file in pairs:
            self._known_indents.setdefault(model, file)
        # One step of indentation: the model's, and the file's.
        self._unit, self._step = _learn_step(self._known_indents)

    def reindent(self, line: str) -> str:
        """Return a new line with the indentation that the file would have there."""
        lead = _get_indent(line)
        are_equal = all(model == file for model, file in self._known_indents.items())
        if are_equal or not line.strip():
            return line
        return self._convert_lead(lead) + line[len(lead) :]

    def _convert_lead(self, lead: str) -> str:
        if lead in self._known_indents:
            return self._known_indents[lead]
        # The longest known indent that this one begins with, and the rest converted.
        inner = max(
            (model for model in self._known_indents if lead.startswith(model)),
            key=len,
            default=None,
        )
        if inner is not None:
            return self._known_indents[inner] + self._convert(lead[len(inner) :])
        # Otherwise, the rest is taken off the shortest known one that begins with it.
        outer = min(
            (model for model in self._known_indents if model.startswith(lead)),
            key=len,
            default=None,
        )
        if outer is not None:
            extra = self._convert(outer[len(lead) :])
            base = self._known_indents[outer]
            return base[: len(base) - len(extra)] if base.endswith(extra) else base
        return self._convert(lead)

    def _convert(self, extra: str) -> str:
        """Convert a part of an indent: whole units of the model's become steps of the file's."""
        if not self._unit or not self._step:
            return extra
        units, rest = divmod(len(extra), len(self._unit))
        if extra != self._unit * units + self._unit[:rest]:
            return extra
        return self._step * units + ("" if self._step[0] == "\t" else self._unit[:rest])


def _learn_step(indents: dict[str, str]) -> tuple[str, str]:
    """Learn one step of indentation, the model's and the file's (four blanks, a tab);
    ("", "") where they are equal.

    `indents`: the model's -> the file's.
    """
    pairs = sorted(indents.items(), key=lambda pair: len(pair[0]))
    # What a deeper line has more than the line before it is one or more steps.
    for (model_low, file_low), (model_high, file_high) in pairwise(pairs):
        model, file = model_high[len(model_low) :], file_high[len(file_low) :]
        if (
            model_high.startswith(model_low)
            and file_high.startswith(file_low)
            and model
            and file
            and model != file
        ):
            if file == "\t" * len(file) and len(model) % len(file) == 0:
                return model[: len(model) // len(file)], "\t"
            if model == "\t" * len(model) and len(file) % len(model) == 0:
                return "\t", file[: len(file) // len(model)]
            return model, file
    # Without two depths to compare, only the change between tabs and blanks shows.
    for model, file in pairs:
        if model and file and set(model) != set(file):
            if set(file) == {"\t"} and set(model) == {" "} and len(model) % len(file) == 0:
                return model[: len(model) // len(file)], "\t"
            if set(model) == {"\t"} and set(file) == {" "} and len(file) % len(model) == 0:
                return "\t", file[: len(file) // len(model)]
    return "", ""
