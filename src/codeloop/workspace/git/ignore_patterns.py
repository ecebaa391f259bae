"""The patterns of .gitignore and .gitattributes files, matched as git does."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path

from msgspec import Struct

from codeloop.kit.glob import expression
from codeloop.workspace.git.index import read_small

_PLAIN_STARS = re.compile(r"(?<![^/])\*\*+(?=[^/*])")  # to git, `**` beside other characters is `*`
_Test = Callable[[str], object]
_Run = tuple[bool, _Test | None, _Test | None]


class Pattern(Struct, frozen=True):
    """One line. `regex` is for the name alone, or (`anchored`) for the path relative to the file's folder."""

    regex: str
    anchored: bool
    negated: bool = False
    folders_only: bool = False


class Patterns(Struct, frozen=True, dict=True):
    """The lines of one file that lies in the folder `base` ("" for the top, else without a slash at its end)."""

    base: str
    lines: tuple[Pattern, ...]

    def decides(self, path: str, name: str, *, is_folder: bool) -> bool | None:
        """Return whether the last matching line excludes (True) or includes (False) `path`; None: no line matches."""
        inside = path[len(self.base) + 1 :] if self.base else path
        for negated, by_name, by_path in self._for_folders if is_folder else self._for_files:
            if (by_name is not None and by_name(name)) or (by_path is not None and by_path(inside)):
                return not negated
        return None

    @cached_property
    def _for_files(self) -> list[_Run]:
        return _runs([line for line in self.lines if not line.folders_only])

    @cached_property
    def _for_folders(self) -> list[_Run]:
        return _runs(self.lines)


def parse(text: bytes, base: str) -> Patterns:
    """Read a .gitignore. A line that git would not understand is skipped."""
    found = (_line(line) for line in text.decode("utf-8", "surrogateescape").split("\n"))
    return Patterns(base, tuple(line for line in found if line is not None))


def parse_attributes(text: bytes, base: str, words: Iterable[str]) -> Patterns:
    """Read a .gitattributes: only the lines that set one of the attributes `words`."""
    wanted = tuple(words)
    lines: list[Pattern] = []
    for line in text.decode("utf-8", "surrogateescape").splitlines():
        pattern, *rest = line.split() or [""]
        if any(word.partition("=")[0] in wanted for word in rest) and (found := _line(pattern)) is not None:
            lines.append(found)
    return Patterns(base, tuple(lines))


def is_ignored(chain: Iterable[Patterns], path: str, name: str, *, is_folder: bool) -> bool:
    """Return whether a path is excluded. `chain`: the nearest file first; whether a parent is, is for the caller."""
    for patterns in chain:
        if (decided := patterns.decides(path, name, is_folder=is_folder)) is not None:
            return decided
    return False


def user_excludes(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the user's own file of patterns that git ignores everywhere."""
    home = environment.get("HOME", "")
    if not home:
        return ()
    folder = Path(environment.get("XDG_CONFIG_HOME") or f"{home}/.config") / "git"
    named = folder / "ignore"
    for config in (folder / "config", Path(home, ".gitconfig")):
        text = read_small(config, 64 * 1024).decode("utf-8", "surrogateescape")
        for found in re.findall(r'(?im)^\s*excludesfile\s*=\s*"?([^"\n]+?)"?\s*$', text):
            named = Path(home + found[1:] if found.startswith("~/") else found)
    return (named,)


def _runs(lines: Sequence[Pattern]) -> list[_Run]:
    """Join neighbours of one sign: within such a run their order does not matter. The last run comes first."""
    runs: list[_Run] = []
    for negated, group in groupby(lines, key=lambda line: line.negated):
        members = list(group)
        by_name = [line.regex for line in members if not line.anchored]
        by_path = [line.regex for line in members if line.anchored]
        runs.insert(0, (negated, _joined(by_name), _joined(by_path)))
    return runs


def _joined(regexes: list[str]) -> _Test | None:
    return re.compile("|".join(f"(?:{regex})" for regex in regexes), re.DOTALL).fullmatch if regexes else None


def _line(line: str) -> Pattern | None:
    line = line.removesuffix("\r")
    while line.endswith(" ") and not line.endswith("\\ "):
        line = line[:-1]
    if not line or line.startswith("#"):
        return None
    negated = line.startswith("!")
    line = line[negated:]
    folders_only = line.endswith("/")
    line = line[:-1] if folders_only else line
    anchored = "/" in line
    try:
        regex = _translate(line.removeprefix("/"))
        re.compile(regex)
    except (ValueError, re.error):
        return None
    return Pattern(regex, anchored, negated, folders_only)


def _translate(glob: str) -> str:
    """Return the regular expression of a pattern. Raises ValueError for one that can match nothing."""
    if not glob or (len(glob) - len(glob.rstrip("\\"))) % 2:
        raise ValueError(glob)
    if "/" not in glob:
        return expression(_PLAIN_STARS.sub("*", glob))
    # git compares what comes before the first wildcard by itself, and takes the rest as a pattern of its own
    at = next((at for at, character in enumerate(glob) if character in "*?[\\"), len(glob))
    head = glob[: glob.rfind("/", 0, at) + 1] if not glob.startswith("**", at) else glob[:at]
    return re.escape(head) + expression(_PLAIN_STARS.sub("*", glob[len(head) :]))
