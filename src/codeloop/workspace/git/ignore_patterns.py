"""The patterns of .gitignore and .gitattributes files, matched as git does."""

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path

from msgspec import Struct

from codeloop.kit.small_files import read_start_or_empty

# To git, `**` next to other characters is `*`.
_PLAIN_STARS = r"(?<![^/])\*\*+(?=[^/*])"
_CONFIG_BYTES = 64 * 1024
_WILDCARD = r"[*?\[\\]"
# `*.log`
_NAME_ENDING = r"\*[^*?\[\\/]+"
# The most characters of patterns with wildcards in one file, without those like `*.end`. Further
# ones exclude nothing, since each costs time for every file of a project.
_MAX_WILDCARD_CHARS = 8 * 1024


class Pattern(Struct, frozen=True):
    """One line, compared with a name alone, or (`is_anchored`) with the path relative to
    the folder of the line's file.

    Exactly one is set: `plain`, the whole text; `ending`, the end of a name; `regex`, the slowest.
    """

    is_anchored: bool
    plain: str = ""
    ending: str = ""
    regex: str = ""
    is_negated: bool = False
    matches_folders_only: bool = False


class _PatternRun:
    """Consecutive lines that all exclude or all include.
    Their order does not matter, so they are matched at once.
    """

    # Most lines are plain names or endings: a set and one `endswith` decide these faster
    # than a regular expression.
    def __init__(self, is_negated: bool, lines: Sequence[Pattern]) -> None:
        self.is_negated = is_negated
        self._names = frozenset(line.plain for line in lines if line.plain and not line.is_anchored)
        self._paths = frozenset(line.plain for line in lines if line.plain and line.is_anchored)
        self._endings = tuple(line.ending for line in lines if line.ending)
        self._name_regex = _join_regexes(
            [line.regex for line in lines if line.regex and not line.is_anchored]
        )
        self._path_regex = _join_regexes(
            [line.regex for line in lines if line.regex and line.is_anchored]
        )

    def matches(self, relative_path: str, name: str) -> bool:
        """Return whether any line matches a path relative to the folder of the file,
        or its name.
        """
        return (
            name in self._names
            or relative_path in self._paths
            or name.endswith(self._endings)
            or (self._name_regex is not None and self._name_regex.fullmatch(name) is not None)
            or (
                self._path_regex is not None
                and self._path_regex.fullmatch(relative_path) is not None
            )
        )


class Patterns(Struct, frozen=True, dict=True):
    """The lines of one file that lies in the folder `base` ("" for the top,
    or else without a slash at its end).
    """

    base: str
    lines: tuple[Pattern, ...]

    def decide(self, path: str, name: str, *, is_folder: bool) -> bool | None:
        """Return whether the last matching line excludes (True) or includes (False) `path`;
        None: no line matches.
        """
        relative_path = path[len(self.base) + 1 :] if self.base else path
        for run in self._folder_runs if is_folder else self._file_runs:
            if run.matches(relative_path, name):
                return not run.is_negated
        return None

    @cached_property
    def _file_runs(self) -> list[_PatternRun]:
        return _group_runs([line for line in self.lines if not line.matches_folders_only])

    @cached_property
    def _folder_runs(self) -> list[_PatternRun]:
        return _group_runs(self.lines)


def parse_ignore_file(text: bytes, base: str) -> Patterns:
    """Parse a .gitignore. A line that git would not understand is skipped."""
    return Patterns(base, _parse_lines(_decode(text).split("\n")))


def read_ignore_file(file: Path, base: str, max_bytes: int) -> Patterns:
    """Parse the first `max_bytes` bytes of a .gitignore; no patterns when it can't be read."""
    return parse_ignore_file(read_start_or_empty(file, max_bytes), base)


def parse_attributes(text: bytes, base: str, attributes: Sequence[str]) -> Patterns:
    """Parse a .gitattributes: the patterns of the lines that set one of these attributes."""
    rows = (line.split() or [""] for line in _decode(text).splitlines())
    patterns = (
        row[0]
        for row in rows
        if any(setting.partition("=")[0] in attributes for setting in row[1:])
    )
    return Patterns(base, _parse_lines(patterns))


def _decode(text: bytes) -> str:
    """Return the text of a file of patterns, without the mark that some editors
    put at the start of UTF-8.
    """
    return text.removeprefix(BOM_UTF8).decode("utf-8", "surrogateescape")


def _parse_lines(lines: Iterable[str]) -> tuple[Pattern, ...]:
    patterns: list[Pattern] = []
    remaining_chars = _MAX_WILDCARD_CHARS
    for line in lines:
        pattern = _parse_line(line, remaining_chars)
        if pattern is not None:
            patterns.append(pattern)
            remaining_chars -= len(line) if pattern.regex else 0
    return tuple(patterns)


def is_ignored(chain: Iterable[Patterns], path: str, name: str, *, is_folder: bool) -> bool:
    """Return whether a path is excluded. `chain`: the nearest file first;
    the caller checks the parent folders.
    """
    for patterns in chain:
        is_excluded = patterns.decide(path, name, is_folder=is_folder)
        if is_excluded is not None:
            return is_excluded
    return False


def list_user_excludes(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the file with the patterns that the user's git ignores everywhere, in a tuple;
    () without a home.
    """
    home = environment.get("HOME", "")
    if not home:
        return ()
    folder = Path(environment.get("XDG_CONFIG_HOME") or f"{home}/.config") / "git"
    path = folder / "ignore"
    # As in git, a later setting replaces an earlier one.
    for config in (folder / "config", Path(home, ".gitconfig")):
        text = read_start_or_empty(config, _CONFIG_BYTES).decode("utf-8", "surrogateescape")
        for line in re.findall(r"(?im)^[ \t]*excludesfile[ \t]*=([^\n]+)$", text):
            value = line.strip().strip('"')
            path = Path(home + value[1:] if value.startswith("~/") else value)
    return (path,)


def _group_runs(lines: Sequence[Pattern]) -> list[_PatternRun]:
    """Group consecutive lines that all exclude or all include;
    the last run first, since the last match counts.
    """
    return [
        _PatternRun(is_negated, list(group))
        for is_negated, group in groupby(lines, key=lambda line: line.is_negated)
    ][::-1]


def _join_regexes(regexes: list[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(f"(?:{regex})" for regex in regexes), re.DOTALL) if regexes else None


def _parse_line(line: str, max_length: int) -> Pattern | None:
    """Parse a line; None: no pattern, one that is not valid,
    or one with wildcards that is longer than `max_length`.
    """
    line = line.removesuffix("\r")
    # Blanks at the end don't count, except one after a backslash.
    stripped_line = line.rstrip(" ")
    line = line[: len(stripped_line) + stripped_line.endswith("\\")]
    if not line or line.startswith("#"):
        return None
    is_negated = line.startswith("!")
    line = line[is_negated:]
    matches_folders_only = line.endswith("/")
    line = line[:-1] if matches_folders_only else line
    is_anchored = "/" in line  # a slash anywhere but at the end
    text = line.removeprefix("/")
    if text and not re.search(_WILDCARD, text):
        return Pattern(
            is_anchored,
            plain=text,
            is_negated=is_negated,
            matches_folders_only=matches_folders_only,
        )
    if not is_anchored and re.fullmatch(_NAME_ENDING, text):
        return Pattern(
            is_anchored,
            ending=text[1:],
            is_negated=is_negated,
            matches_folders_only=matches_folders_only,
        )
    if len(line) > max_length:
        return None
    try:
        regex = _translate(text)
        re.compile(regex)
    except (ValueError, re.error):
        return None
    return Pattern(
        is_anchored, regex=regex, is_negated=is_negated, matches_folders_only=matches_folders_only
    )


def _translate(glob: str) -> str:
    """Return the regular expression of a pattern.
    Raises ValueError for one that can match nothing.
    """
    if not glob or (len(glob) - len(glob.rstrip("\\"))) % 2:
        raise ValueError(glob)
    # Imported late: many projects ignore by plain names and endings only.
    from codeloop.kit.glob import make_regex

    if "/" not in glob:
        return make_regex(re.sub(_PLAIN_STARS, "*", glob))
    # git compares the text before the first wildcard separately,
    # and takes the rest as a pattern of its own.
    match = re.search(_WILDCARD, glob)
    first_wildcard = match.start() if match else len(glob)
    is_deep = glob.startswith("**", first_wildcard)
    head = glob[:first_wildcard] if is_deep else glob[: glob.rfind("/", 0, first_wildcard) + 1]
    return re.escape(head) + make_regex(re.sub(_PLAIN_STARS, "*", glob[len(head) :]))
