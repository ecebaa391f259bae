"""Checks of commands that no row alone describes: whether they only read,
and whether `sed` runs no program.
"""

import re
from collections.abc import Sequence

from codeloop.shell.harmless_words import ANY_NUMBER, Harmful, ParsedWords, check_words, parse_words
from codeloop.shell.options import Option
from codeloop.shell.program_row import ProgramRow
from codeloop.shell.word import Word

_FIND_PREDICATE_NAMES = """
-H -L -P -a -and -o -or -not -true -false -print -print0 -ls -prune -quit -depth -d -daystart -follow
-mount -xdev -noleaf -empty -nouser -nogroup -readable -writable -executable -x -s
"""
_FIND_PREDICATES = frozenset(_FIND_PREDICATE_NAMES.split())
_FIND_VALUE_PREDICATE_NAMES = """
-maxdepth -mindepth -name -iname -path -ipath -wholename -regex -iregex -regextype -type -xtype -size
-newer -anewer -cnewer -newermt -newerct -newerat -mtime -mmin -atime -amin -ctime -cmin -perm -user
-group -uid -gid -links -inum -samefile -lname -ilname -printf -fstype -used
"""
_FIND_VALUE_PREDICATES = frozenset(_FIND_VALUE_PREDICATE_NAMES.split())


def _make_sed_pattern(delimiter: str) -> str:
    """Return the regular expression that matches a pattern of sed up to its delimiter.

    A bracket expression has to close before the delimiter, without an escaped `]`: implementations
    differ in what ends it, and what is the text of a replacement to one of them is a file to write
    or a command to run to another.
    """
    # A class such as `[:alpha:]` has colons of its own.
    character_class = "" if delimiter == ":" else r"\[:[a-z]++:\]|"
    bracket = rf"\[\^?+\]?+(?:{character_class}[^][{delimiter}\\\n]|\\[^]{delimiter}\n])*+\]"
    return rf"(?:[^[{delimiter}\\\n]|\\[^\n]|{bracket})*+"


# Addresses and commands of sed. A script counts only if all of it matches: `e` runs programs,
# `w` writes files.
_SED_ADDRESS = rf"(?:[0-9]+(?:~[0-9]+)?|\$|/{_make_sed_pattern('/')}/)"
_SED_COMMAND = (
    rf"\s*(?:{_SED_ADDRESS}(?:,(?:{_SED_ADDRESS}|\+[0-9]+))?)?\s*!?\s*"
    rf"(?:[pdq=]|s/{_make_sed_pattern('/')}/(?:[^/\\\n]|\\[^\n])*/[gpiI0-9]*)\s*"
)
_READING_SED_SCRIPT = rf"{_SED_COMMAND}(?:;{_SED_COMMAND})*;?\s*"
_SED_REPLACE = "|".join(
    rf"s{re.escape(delimiter)}{_make_sed_pattern(delimiter)}{re.escape(delimiter)}"
    rf"(?:[^{delimiter}\\\n]|\\[^\n])*{re.escape(delimiter)}[gpiImM0-9]*"
    for delimiter in "/|#,@!:%"
)
_EDITING_SED_COMMAND = (
    rf"(?:{_SED_ADDRESS}(?:,(?:{_SED_ADDRESS}|\+[0-9]+))?[ \t]*+)?(?:![ \t]*+)?"
    rf"(?:[pdqgGhHxnNDP=]|{_SED_REPLACE}|[aic]\\?[^\n]*+)"
)
# Scripts that edit their input, and neither run a program nor name a file.
_EDITING_SED_SCRIPT = (
    rf"[;\s]*+{_EDITING_SED_COMMAND}(?:[ \t]*+[;\n][;\s]*+{_EDITING_SED_COMMAND})*+[;\s]*+"
)


def check_find(words: Sequence[Word], _: ProgramRow) -> None:
    """Check the predicates of `find`; the command of `-exec` is judged separately.
    Raises Harmful.
    """
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        # A mark, which is not printable, stands for unknown text.
        if not word.is_known and not word.value[:1].isprintable():
            raise Harmful("a word may be an action of `find`")
        if word.value == "-exec":
            last = ""
            while rest and word.value != ";" and not (word.value == "+" and last == "{}"):
                last, word = word.value, rest.pop()
        elif word.value in _FIND_VALUE_PREDICATES:
            rest = rest[:-1]
        elif word.value.startswith("-") and word.value not in _FIND_PREDICATES:
            raise Harmful(f"{word.value} is not known to be harmless")


def check_sed(words: Sequence[Word], program: ProgramRow) -> None:
    """Check that `sed` scripts only print, delete and replace. Raises Harmful."""
    _check_sed_scripts(parse_words(words, program.known_options), _READING_SED_SCRIPT)


def check_sed_runs_nothing(words: Sequence[Word], program: ProgramRow) -> None:
    """Check that `sed` scripts have no `e` (run a program) and no `w`. Raises Harmful."""
    # Within a proof `sed -i` may edit files: it only has to be certain that it runs no program.
    known_options = {**program.known_options, "-i": Option(), "--in-place": Option()}
    _check_sed_scripts(parse_words(words, known_options), _EDITING_SED_SCRIPT)


def _check_sed_scripts(parsed: ParsedWords, harmless: str) -> None:
    scripts = [value for option, value in parsed.values if option in {"-e", "--expression"}]
    if not scripts:
        scripts = [parsed.operands[0].value] if parsed.operands else []
    if not scripts or not all(re.fullmatch(harmless, script) for script in scripts):
        raise Harmful("its script may write or execute")


# Words of a `jq` program that read more than its input: environment variables and other files.
_JQ_OUTSIDE_READS = r"(?<![.\w])(?:env|ENV|import|include|modulemeta|get_search_list)\b"


def check_jq(words: Sequence[Word], program: ProgramRow) -> None:
    """Check `jq` against its row, and that its program reads nothing else. Raises Harmful."""
    parsed = check_words(words, program)
    # `--arg NAME VALUE`: NAME is the option's value in the row,
    # so VALUE counts as an operand before the program.
    count = sum(option in {"--arg", "--argjson"} for option in parsed.options)
    for operand in parsed.operands[: 1 + count]:
        if not operand.is_known or re.search(_JQ_OUTSIDE_READS, operand.value):
            raise Harmful("its program may read variables or other files")


def check_ps(words: Sequence[Word], program: ProgramRow) -> None:
    """Check `ps` against its row, and that it prints no environment, which may hold keys.
    Raises Harmful.
    """
    if any("env" in value.lower() for _, value in check_words(words, program).values):
        raise Harmful("it may show environments")


# `git log --format=%G?` and `--show-signature` run gpg,
# or the program that the configuration names.
_SIGNATURE_FORMAT = r"%[-+ ]?G|signature"
# Patterns of a listing. An unquoted file pattern counts as ANY_NUMBER of operands,
# so it is above this.
_MAX_LISTING_PATTERNS = 100
_GET_OPTIONS = frozenset({"--get", "--get-all", "--get-regexp"})


def check_git(words: Sequence[Word], program: ProgramRow) -> None:
    """Check the words behind git's own options against the rows of its subcommands.
    Raises Harmful.
    """
    if not words:
        return
    name, count = words[0].value, 1
    two_words = " ".join(word.value for word in words[:2])
    if two_words in program.subcommands:
        name, count = two_words, 2
    row = program.subcommands.get(name)
    if row is None or row.reads is None:
        has_own_rows = any(key.startswith(f"{name} ") for key in program.subcommands)
        raise Harmful(f"`git {two_words if has_own_rows else name}` is not known to only read")
    if any(re.search(_SIGNATURE_FORMAT, word.value) for word in words[count:]):
        raise Harmful("it may run the program that checks signatures")
    parsed = check_words(words[count:], row)
    if _count_allowed_operands(name, parsed) < parsed.highest_operand_count:
        raise Harmful(f"`git {name}` with these words may change something")


def _count_allowed_operands(subcommand: str, parsed: ParsedWords) -> int:
    """Return the number of operands with which a subcommand still only reads: `git
    branch NAME` makes a branch.
    """
    options = set(parsed.options)
    match subcommand:
        case "branch":
            return _MAX_LISTING_PATTERNS if "--list" in options else 0
        case "tag":
            return _MAX_LISTING_PATTERNS if options & {"-l", "--list"} else 0
        case "config":
            if options & _GET_OPTIONS:
                return 2
            # `git config NAME` prints a value, `git config NAME VALUE` sets it.
            return 0 if options & {"-l", "--list"} else 1
        case _:
            return ANY_NUMBER
