"""Parser of git configuration files; knows the settings that can never make git run a program or follow a path."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_SECTION = re.compile(r'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?\]')
_SETTING = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*))?")
_PLAIN = re.compile(
    r"core\.(abbrev|autocrlf|bare|bigfilethreshold|checkstat|commitgraph|compression|eol|filemode|ignorecase"
    r"|logallrefupdates|longpaths|multipackindex|precomposeunicode|preloadindex|quotepath"
    r"|repositoryformatversion|safecrlf|sharedrepository|sparsecheckout|sparsecheckoutcone|symlinks|trustctime"
    r"|untrackedcache|whitespace)"
    r"|remote\..*\.(fetch|push|tagopt|prune|prunetags|mirror|promisor|partialclonefilter|skipdefaultupdate|skipfetchall)"
    r"|branch\..*\.(merge|rebase|description)"
    r"|submodule\..*\.(active|branch|ignore|shallow|fetchrecursesubmodules)|submodule\.active"
    r"|extensions\.(compatobjectformat|objectformat|partialclone|preciousobjects|refstorage|relativeworktrees"
    r"|worktreeconfig)"
    r"|(user|author|committer)\.(name|email)|init\.defaultbranch|pull\.(ff|rebase)|push\.(autosetupremote|default)"
    r"|fetch\.(parallel|prune|prunetags)|merge\.(ff|conflictstyle|renames)|rebase\.(autosquash|autostash|updaterefs)"
    r"|rerere\.(autoupdate|enabled)|(advice|color|index|feature|pack)\..*|gc\.(?!recentobjectshook).*|commit\.verbose|tag\.sort"
    r"|log\.(abbrevcommit|date|decorate)|status\.(short|branch|showuntrackedfiles)|lfs\.repositoryformatversion"
    r"|diff\.(algorithm|colormoved|context|renames|mnemonicprefix|noprefix)"
)
_CHARACTERS = re.compile(r"\\.|.")
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}
_BY_VALUE = {
    re.compile(r"remote\..*\.(url|pushurl)|submodule\..*\.url|branch\..*\.(remote|pushremote)"): re.compile(
        r"(?!-|\w+::).*"
    ),
    re.compile(r"submodule\..*\.update"): re.compile(r"checkout|rebase|merge|none"),
    re.compile(r"core\.fsmonitor"): re.compile(r"false|no|off|0", re.IGNORECASE),
    re.compile(r"core\.protect(hfs|ntfs)"): re.compile(r"true|yes|on|1", re.IGNORECASE),
    re.compile(r"core\.hookspath"): re.compile(r"/dev/null"),
}


class GitSetting(NamedTuple):
    """One setting. `line`: its number, from 0; `name`: `section.subsection.key`, "" when it can't be parsed."""

    line: int
    name: str
    value: str

    @property
    def is_plain(self) -> bool:
        """Whether it can neither name a program nor point git to files elsewhere."""
        if _PLAIN.fullmatch(self.name):
            return True
        return any(name.fullmatch(self.name) and value.fullmatch(self.value) for name, value in _BY_VALUE.items())


def read_settings(text: str) -> Iterator[GitSetting]:
    """Yield the settings of a file, also those that can't be parsed, such as a value on several lines."""
    section, part = "", ""
    for number, line in enumerate(text.split("\n")):
        text_left = line.strip()
        if match := _SECTION.match(text_left):
            section, part = match[1].lower(), match[2] or ""
            text_left = text_left[match.end() :].strip()
        if not text_left or text_left[0] in "#;":
            continue
        setting = _SETTING.fullmatch(text_left)
        # A value on several lines is left to the caller, which treats it as one that may do anything.
        if setting is None or text_left.endswith("\\"):
            yield GitSetting(number, "", text_left)
            continue
        name = ".".join(filter(None, (section, part, setting[1].lower())))
        yield GitSetting(number, name, _read_value(setting[2] or ""))


def _read_value(text: str) -> str:
    """Return a value as git reads it: without quotes and comments; quoted blanks stay."""
    values: list[str] = []
    is_quoted = False
    for match in _CHARACTERS.finditer(text):
        part: str = match[0]
        if part == '"':
            is_quoted = not is_quoted
        elif part in "#;" and not is_quoted:
            break
        else:
            values.append(_ESCAPES.get(part[-1], part[-1]) if len(part) > 1 else part)
    return "".join(values).strip()
