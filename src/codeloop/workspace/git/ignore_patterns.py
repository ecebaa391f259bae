"""The patterns of .gitignore and .gitattributes files, matched as git does."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path

from msgspec import Struct

from codeloop.kit.glob import make_regex
from codeloop.workspace.git.index import read_small

_PLAIN_STARS = re.compile(r"(?<![^/])\*\*+(?=[^/*])")  # to git, `**` next to other characters is `*`
_MAGIC = re.compile(r"[*?\[\\]")
_ENDING = re.compile(r"\*[^*?\[\\/]+")
_MAX_WILD_CHARS = 8 * 1024
"""Characters of the patterns with wildcards in one file, without those like `*.end`.

Further ones exclude nothing, since each costs time for every file of a project."""


class Pattern(Struct, frozen=True):
    """One line, which is compared with the name alone, or (`anchored`) with the path relative to the file's folder.

    Exactly one is set: `plain`, the whole text; `ending`, the end of a name; `regex`, the slowest.
    """

    anchored: bool
    plain: str = ""
    ending: str = ""
    regex: str = ""
    negated: bool = False
    folders_only: bool = False


class _Run:
    """Consecutive lines that all exclude or all include. Their order does not matter, so they are matched at once."""

    def __init__(self, negated: bool, lines: Sequence[Pattern]) -> None:
        self.negated = negated
        self._names = frozenset(line.plain for line in lines if line.plain and not line.anchored)
        self._paths = frozenset(line.plain for line in lines if line.plain and line.anchored)
        self._endings = tuple(line.ending for line in lines if line.ending)
        self._name = _join_regexes([line.regex for line in lines if line.regex and not line.anchored])
        self._path = _join_regexes([line.regex for line in lines if line.regex and line.anchored])

    def matches(self, inside: str, name: str) -> bool:
        """Return whether any line matches a path relative to the folder, or its name."""
        return (
            name in self._names
            or inside in self._paths
            or name.endswith(self._endings)
            or (self._name is not None and self._name.fullmatch(name) is not None)
            or (self._path is not None and self._path.fullmatch(inside) is not None)
        )


class Patterns(Struct, frozen=True, dict=True):
    """The lines of one file that lies in the folder `base` ("" for the top, else without a slash at its end)."""

    base: str
    lines: tuple[Pattern, ...]

    def decides(self, path: str, name: str, *, is_folder: bool) -> bool | None:
        """Return whether the last matching line excludes (True) or includes (False) `path`; None: no line matches."""
        inside = path[len(self.base) + 1 :] if self.base else path
        for run in self._for_folders if is_folder else self._for_files:
            if run.matches(inside, name):
                return not run.negated
        return None

    @cached_property
    def _for_files(self) -> list[_Run]:
        return _group_runs([line for line in self.lines if not line.folders_only])

    @cached_property
    def _for_folders(self) -> list[_Run]:
        return _group_runs(self.lines)


def parse(text: bytes, base: str) -> Patterns:
    """Parse a .gitignore. A line that git would not understand is skipped."""
    return Patterns(base, _parse_lines(text.decode("utf-8", "surrogateescape").split("\n")))


def parse_attributes(text: bytes, base: str, words: Iterable[str]) -> Patterns:
    """Read a .gitattributes: only the lines that set one of the attributes `words`."""
    attributes = tuple(words)
    rows = (line.split() or [""] for line in text.decode("utf-8", "surrogateescape").splitlines())
    names = (row[0] for row in rows if any(word.partition("=")[0] in attributes for word in row[1:]))
    return Patterns(base, _parse_lines(names))


def _parse_lines(texts: Iterable[str]) -> tuple[Pattern, ...]:
    patterns: list[Pattern] = []
    room = _MAX_WILD_CHARS
    for text in texts:
        pattern = _parse_line(text, room)
        if pattern is not None:
            patterns.append(pattern)
            room -= len(text) if pattern.regex else 0
    return tuple(patterns)


def is_ignored(chain: Iterable[Patterns], path: str, name: str, *, is_folder: bool) -> bool:
    """Return whether a path is excluded. `chain`: the nearest file first; the caller checks the parent folders."""
    for patterns in chain:
        if (decided := patterns.decides(path, name, is_folder=is_folder)) is not None:
            return decided
    return False


def list_user_excludes(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the user's own file of patterns that git ignores everywhere."""
    home = environment.get("HOME", "")
    if not home:
        return ()
    folder = Path(environment.get("XDG_CONFIG_HOME") or f"{home}/.config") / "git"
    path = folder / "ignore"
    for config in (folder / "config", Path(home, ".gitconfig")):
        text = read_small(config, 64 * 1024).decode("utf-8", "surrogateescape")
        for line in re.findall(r"(?im)^[ \t]*excludesfile[ \t]*=([^\n]+)$", text):
            value = line.strip().strip('"')
            path = Path(home + value[1:] if value.startswith("~/") else value)
    return (path,)


def _group_runs(lines: Sequence[Pattern]) -> list[_Run]:
    """Group consecutive lines that all exclude or all include. The last run comes first."""
    return [_Run(negated, list(group)) for negated, group in groupby(lines, key=lambda line: line.negated)][::-1]


def _join_regexes(regexes: list[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(f"(?:{regex})" for regex in regexes), re.DOTALL) if regexes else None


def _parse_line(line: str, room: int) -> Pattern | None:
    line = line.removesuffix("\r")
    # Blanks at the end don't count, except one after a backslash.
    stripped_line = line.rstrip(" ")
    line = line[: len(stripped_line) + stripped_line.endswith("\\")]
    if not line or line.startswith("#"):
        return None
    negated = line.startswith("!")
    line = line[negated:]
    folders_only = line.endswith("/")
    line = line[:-1] if folders_only else line
    anchored = "/" in line  # a slash anywhere but at the end
    text = line.removeprefix("/")
    if text and not _MAGIC.search(text):
        return Pattern(anchored, plain=text, negated=negated, folders_only=folders_only)
    if not anchored and _ENDING.fullmatch(text):
        return Pattern(anchored, ending=text[1:], negated=negated, folders_only=folders_only)
    if len(line) > room:
        return None
    try:
        regex = _translate(text)
        re.compile(regex)
    except (ValueError, re.error):
        return None
    return Pattern(anchored, regex=regex, negated=negated, folders_only=folders_only)


def _translate(glob: str) -> str:
    """Return the regular expression of a pattern. Raises ValueError for one that can match nothing."""
    if not glob or (len(glob) - len(glob.rstrip("\\"))) % 2:
        raise ValueError(glob)
    if "/" not in glob:
        return make_regex(_PLAIN_STARS.sub("*", glob))
    # git compares what comes before the first wildcard by itself, and takes the rest as a pattern of its own
    at = next((at for at, character in enumerate(glob) if character in "*?[\\"), len(glob))
    head = glob[: glob.rfind("/", 0, at) + 1] if not glob.startswith("**", at) else glob[:at]
    return re.escape(head) + make_regex(_PLAIN_STARS.sub("*", glob[len(head) :]))
