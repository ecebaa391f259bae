"""Finds the files that scripts read and write: those that sed, awk, editors and sqlite3 are given.

It returns uses: pairs of a role, whose letters are explained in `options.py`, and a path.
"""

import re
from collections.abc import Callable, Sequence

from codeloop.shell.arguments import Arguments
from codeloop.shell.options import Use
from codeloop.shell.word_paths import ANYWHERE

# A file that a sed script reads or writes: one of `rRwW`, and the path. Before it stands the start
# of a command, the end of an address (`/text/I`, `\|text|`) or a whole `s` command; any character
# but a backslash may be a delimiter. DELIMITERS stands for those of `_SED_DELIMITERS` that the
# script uses: `/name: w/p` writes no file.
_SED_FILE = (
    r"(?:^|[;{}\n\d$/!,DELIMITERS][IM]*"
    r"|\\([^\s\\])(?:\\.|(?!\1)[^\\])*\1[IM]*"
    r"|\bs([^\s\\])(?:\\.|(?!\2)[^\\])*\2(?:\\.|(?!\2)[^\\])*\2[gpiIemM\d]*"
    r")\s*([rRwW])\s*([^\s;}][^\n]*)"
)
_SED_DELIMITERS = "|#@%:"
# A longer script counts as one that may read and write any file.
_MAX_SCRIPT_CHARS = 2_000
# Without one of these, the first operand of awk is its script.
_AWK_SCRIPT_OPTIONS = frozenset({"-e", "--source", "-f", "--file", "-E", "--exec"})
# A part of an awk statement; a string may have any character.
_AWK_EXPRESSION = r'(?:"(?:\\.|[^"\\\n])*"|[^;}\n"])*?'
# A regular expression with a quote, which begins no string. A slash behind an operand divides.
_AWK_QUOTING_PATTERN = r"(?:(?<=[(,~!&|?])|(?<=print))\s*+/(?:\\.|[^/\\\n])*+/"
# The file that an awk script prints into: `print x > FILE`, a string or an expression.
_AWK_OUTPUT = rf"print(?:f)?\b{_AWK_EXPRESSION}>{{1,2}}\s*(\"[^\"]*\"|[^;}}\n]+)"
# The file that an awk script reads: `getline x < FILE`.
_AWK_INPUT = rf"getline\b{_AWK_EXPRESSION}<\s*(\"[^\"]*\"|[^;}}\n)]+)"


def _read_scripts(
    arguments: Arguments, options: Sequence[str], read_script: Callable[[str], list[Use]]
) -> list[Use]:
    """Return the uses of the scripts that options give, or of the first operand,
    as `read_script` finds them.
    """
    scripts = [value for option, value in arguments.option_values if option in options]
    scripts = scripts or arguments.operands[:1]
    anything: list[Use] = [("b", ANYWHERE)]
    return [
        use
        for script in scripts
        for use in (anything if len(script) > _MAX_SCRIPT_CHARS else read_script(script))
    ]


def find_sed_files(arguments: Arguments) -> list[Use]:
    """Return the files that scripts of `sed` read and write, and the backups of edited ones."""
    return _read_scripts(arguments, ("-e", "--expression"), _read_sed_script) + list_backups(
        arguments
    )


def _read_sed_script(script: str) -> list[Use]:
    delimiters = "".join(
        each for each in _SED_DELIMITERS if f"s{each}" in script or f"\\{each}" in script
    )
    files = re.findall(_SED_FILE.replace("DELIMITERS", delimiters), script)
    uses: list[Use] = [("r" if letter in "rR" else "w", path) for *_, letter, path in files]
    return [*uses, ("w", ANYWHERE)] if ANYWHERE in script else uses


def list_backups(arguments: Arguments) -> list[Use]:
    """Return the backup files that `-i.bak` writes."""
    endings = [
        value
        for option, value in arguments.option_values
        if option in {"-i", "--in-place"} and value
    ]
    return [("w", text + ending) for ending in endings for text in arguments.operands]


def find_awk_files(arguments: Arguments) -> list[Use]:
    """Return the files that scripts of `awk` read and write, and those that it edits in place."""
    uses = _read_scripts(arguments, ("-e", "--source"), _read_awk_script)
    if any(
        option in {"-i", "--include"} and value == "inplace"
        for option, value in arguments.option_values
    ):
        has_script = not any(option in _AWK_SCRIPT_OPTIONS for option, _ in arguments.option_values)
        uses += [("b", text) for text in arguments.operands[has_script:]]
    return uses


def _read_awk_script(script: str) -> list[Use]:
    uses: list[Use] = [
        (role, target[1:-1] if target[0] == '"' else ANYWHERE)
        for role, pattern in (("w", _AWK_OUTPUT), ("r", _AWK_INPUT))
        # Both ways: what looks like a regular expression may stand in a string.
        for text in dict.fromkeys((script, re.sub(_AWK_QUOTING_PATTERN, "", script)))
        for target in re.findall(pattern, text)
    ]
    return [*uses, ("b", ANYWHERE)] if ANYWHERE in script else uses


# A file that a command of vi writes: `w! FILE`, `1,2w FILE`, `saveas FILE`.
_EDITOR_FILE = r"(?:^|[|:\d$%'\s])(?:w|wq|x|up|update|write|sav|saveas)!?\s+(?:>>\s*)?([^\s|]+)"


def find_editor_files(arguments: Arguments) -> list[Use]:
    """Return the files that an editor may write by the commands that it is given,
    by options or as `+CMD`: any.
    """
    commands = [word[1:] for word in arguments.operands if re.fullmatch(r"\+(?!\d*$).+", word)]
    commands += [value for option, value in arguments.option_values if option in {"-c", "--cmd"}]
    uses: list[Use] = [
        ("w", path) for command in commands for path in re.findall(_EDITOR_FILE, command)
    ]
    return [*uses, ("b", ANYWHERE)] if commands or "script" in arguments.changes else []


def find_line_editor_files(_: Arguments) -> list[Use]:
    """Return that `ed` and `ex`, which always read commands, may write any file."""
    return [("b", ANYWHERE)]


# Commands of sqlite3 and SQL that open files, and those that run programs.
_SQLITE_FILE = (
    r"(?im)^\s*\.(?:output|once|save|backup|clone|log|open|import|read|restore)\b[ \t]+(?:-\w+[ \t]+)*"
    r"['\"]?([^'\"\s;]+)"
)
_SQL_FILE = (
    r"""(?i)\b(?:into|attach(?:\s+database)?|writefile\s*\(|readfile\s*\()\s*['"]([^'"]+)['"]"""
)
_SQLITE_PROGRAM = r"(?im)^\s*\.(?:shell|system|load)\b|\bedit\s*\(|\bload_extension\s*\("


def find_sqlite_files(arguments: Arguments) -> list[Use]:
    """Return the files that commands and SQL for `sqlite3` read and write."""
    scripts = [
        *arguments.operands[1:],
        *(value for option, value in arguments.option_values if option == "-cmd"),
    ]
    uses: list[Use] = []
    for script in scripts:
        if re.search(_SQLITE_PROGRAM, script) or ANYWHERE in script:
            uses.append(("b", ANYWHERE))
        uses += [
            ("b", path)
            for pattern in (_SQLITE_FILE, _SQL_FILE)
            for path in re.findall(pattern, script)
        ]
    return uses
