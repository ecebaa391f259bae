"""Parses git configuration files, and knows the settings that can never make git run
a program or follow a path.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.small_files import read_start

_MAX_CONFIG_BYTES = 256 * 1024

# `[core]`, `[remote "origin"]`
_SECTION_HEAD = r'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?\]'
# `name = value`, or `name` alone, which means true
_SETTING_LINE = r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*))?"
_HARMLESS_NAMES = (
    r"core\.(abbrev|autocrlf|bare|bigfilethreshold|checkstat|commitgraph|compression|eol|filemode|ignorecase"
    r"|logallrefupdates|longpaths|multipackindex|precomposeunicode|preloadindex|quotepath"
    r"|repositoryformatversion|safecrlf|sharedrepository|sparsecheckout|sparsecheckoutcone|symlinks|trustctime"
    r"|untrackedcache|whitespace)"
    r"|remote\..*\.(fetch|push|tagopt|prune|prunetags|mirror|promisor|partialclonefilter"
    r"|skipdefaultupdate|skipfetchall)"
    r"|branch\..*\.(merge|rebase|description)"
    r"|submodule\..*\.(active|branch|ignore|shallow|fetchrecursesubmodules)|submodule\.active"
    r"|extensions\.(compatobjectformat|objectformat|partialclone|preciousobjects|refstorage|relativeworktrees"
    r"|worktreeconfig)"
    r"|(user|author|committer)\.(name|email)|init\.defaultbranch|pull\.(ff|rebase)|push\.(autosetupremote|default)"
    r"|fetch\.(parallel|prune|prunetags)|merge\.(ff|conflictstyle|renames)|rebase\.(autosquash|autostash|updaterefs)"
    r"|rerere\.(autoupdate|enabled)|(advice|color|index|feature|pack)\..*"
    r"|gc\.(?!recentobjectshook).*|commit\.verbose|tag\.sort"
    r"|log\.(abbrevcommit|date|decorate)|status\.(short|branch|showuntrackedfiles)|lfs\.repositoryformatversion"
    r"|diff\.(algorithm|colormoved|context|renames|mnemonicprefix|noprefix)"
)
# A character of a value, or an escaped one: `\n`, `\"`.
_CHARACTER = r"\\.|."
_ESCAPED_CHARACTERS = {"n": "\n", "t": "\t", "b": "\b"}
# Settings that are harmless with some values only, in groups in the order of the values.
# A URL `x::y` makes git run the program `git-remote-x`.
_VALUED_NAMES = (
    r"(remote\..*\.(?:url|pushurl)|submodule\..*\.url|branch\..*\.(?:remote|pushremote))"
    r"|(submodule\..*\.update)|(core\.fsmonitor)|(core\.protect(?:hfs|ntfs))|(core\.hookspath)"
)
_HARMLESS_VALUES = (
    *(r"(?!-|[\w+.-]+::).*", r"checkout|rebase|merge|none"),
    *(r"(?i)false|no|off|0", r"(?i)true|yes|on|1", r"/dev/null"),
)


class GitSetting(NamedTuple):
    """One setting. `line`: its number, from 0; `name`: `section.subsection.key`,
    "" when the line can't be parsed.
    """

    line: int
    name: str
    value: str

    @property
    def is_harmless(self) -> bool:
        """Whether it can neither name a program nor point git to files elsewhere."""
        return _is_harmless(self.name, self.value)


@lru_cache(maxsize=1_024)
def _is_harmless(name: str, value: str) -> bool:
    if re.fullmatch(_HARMLESS_NAMES, name):
        return True
    valued = re.fullmatch(_VALUED_NAMES, name)
    return (
        valued is not None
        and valued.lastindex is not None
        and re.fullmatch(_HARMLESS_VALUES[valued.lastindex - 1], value) is not None
    )


def read_file_settings(file: Path) -> tuple[GitSetting, ...]:
    """Return the settings of a configuration file; none when it can't be read.
    What it includes is not read.
    """
    try:
        info = file.stat()
    except OSError:
        return ()
    return _read_cached_settings(file, info.st_mtime_ns, info.st_size, info.st_ino)


# The stamp of a file is only a part of the cache's key: a changed file is read again.
@lru_cache(maxsize=256)
def _read_cached_settings(file: Path, *_stamp: int) -> tuple[GitSetting, ...]:
    try:
        return tuple(
            read_settings(read_start(file, _MAX_CONFIG_BYTES).decode("utf-8", "surrogateescape"))
        )
    except OSError:
        return ()


def read_settings(text: str) -> Iterator[GitSetting]:
    """Yield the settings of a file, even those that can't be parsed,
    such as a value on several lines.
    """
    section, subsection = "", ""
    for number, line in enumerate(text.split("\n")):
        rest = line.strip()
        # git allows a setting on the line of its section.
        if match := re.match(_SECTION_HEAD, rest):
            section, subsection = match[1].lower(), match[2] or ""
            rest = rest[match.end() :].strip()
        if not rest or rest[0] in "#;":
            continue
        setting = re.fullmatch(_SETTING_LINE, rest)
        # A value on several lines is left to the caller,
        # which treats it as one that may do anything.
        if setting is None or rest.endswith("\\"):
            yield GitSetting(number, "", _cut_at_nul(rest))
            continue
        name = ".".join(filter(None, (section, subsection, setting[1].lower())))
        # A name alone means true.
        value = "true" if setting[2] is None else _parse_value(setting[2])
        yield GitSetting(number, _cut_at_nul(name), _cut_at_nul(value))


def _cut_at_nul(text: str) -> str:
    """Return a text up to its first NUL, at which git ends it, too; no path can hold one."""
    return text.partition("\0")[0]


def _parse_value(text: str) -> str:
    """Return a value as git reads it: without quotes and comments; quoted blanks stay."""
    characters: list[str] = []
    is_quoted = False
    for match in re.finditer(_CHARACTER, text):
        character: str = match[0]
        if character == '"':
            is_quoted = not is_quoted
        elif character in "#;" and not is_quoted:
            break
        else:
            is_escaped = len(character) > 1
            characters.append(
                _ESCAPED_CHARACTERS.get(character[-1], character[-1]) if is_escaped else character
            )
    return "".join(characters).strip()
