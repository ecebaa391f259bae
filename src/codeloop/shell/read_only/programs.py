"""Commands that certainly change nothing, each with the options that are known to be harmless.

`check_sed_runs_nothing` alone is about commands that may change files, and run no program. The rows hold for the GNU,
BSD and busybox programs of a name: an option that does harm in one of them is left out.
"""

import re
from collections.abc import Callable, Sequence

from codeloop.shell.read_only.read_only_row import (
    Harmful,
    ParsedWords,
    ReadOnlyRow,
    check_words,
    make_row,
    parse_words,
)
from codeloop.shell.word import Word

READ_ONLY_BUILTINS = frozenset(
    [":", "[", "cd", "echo", "exit", "false", "printf", "pwd", "test", "times", "true", "type"]
)
"""Shell builtins that, once proved to evaluate nothing, change nothing that outlives the line."""
FOLLOWED_WRAPPERS = frozenset(["command", "env", "nice", "stdbuf", "timeout", "xargs", "sh", "bash", "dash"])
"""Programs that only start another command, which is judged separately."""


_CHECKSUM_FLAGS = (
    "-b -c -t -z --binary --check --tag --text --zero --ignore-missing --quiet --status --strict -w --warn"
)
_GREP_FLAGS = """-a -b -c -E -F -G -H -h -I -i -L -l -n -o -P -q -R -r -s -T -U -v -w -x -y -Z -z --text --byte-offset
        --count --extended-regexp --fixed-strings --basic-regexp --perl-regexp --with-filename --no-filename
        --ignore-case --no-ignore-case --files-without-match --files-with-matches --line-number --only-matching
        --quiet --silent --recursive --dereference-recursive --no-messages --initial-tab --invert-match
        --word-regexp --line-regexp --null --null-data --color --colour --line-buffered --binary-files --include
        --exclude --exclude-dir --exclude-from"""
_GREP_WITH_VALUE = "-A -B -C -D -d -e -f -m --after-context --before-context --context --max-count --regexp --file"

# By program, or by program and subcommand (`pip list`).
_PROGRAM_ROWS: dict[str, ReadOnlyRow] = {
    "arch": make_row(),
    "b2sum": make_row(_CHECKSUM_FLAGS, "-l --length", allows_unknown_words=True),
    "base64": make_row("-d -D -i --decode --ignore-garbage", "-w --wrap"),
    "basename": make_row("-a -z --multiple --zero", "-s --suffix", allows_unknown_words=True),
    "cal": make_row("-1 -3 -j -m -s -y"),
    "cat": make_row(
        "-A -b -E -e -n -s -T -t -u -v --show-all --number-nonblank --show-ends --number --squeeze-blank",
        allows_unknown_words=True,
    ),
    "cksum": make_row("--tag --untagged --check -c", "-a --algorithm", allows_unknown_words=True),
    "cmp": make_row("-b -l -s --print-bytes --verbose --quiet --silent", "-n --bytes -i", allows_unknown_words=True),
    "column": make_row(
        "-t -x -n -e -L -J --table --fillrows --json", "-s -c -o -N -R -H --separator --output-separator"
    ),
    "comm": make_row(
        "-1 -2 -3 -i -z --check-order --nocheck-order --total --output-delimiter", allows_unknown_words=True
    ),
    "cut": make_row(
        "-n -s -w -z --complement --only-delimited --zero-terminated",
        "-b -c -d -f --bytes --characters --delimiter --fields --output-delimiter",
        allows_unknown_words=True,
    ),
    "date": make_row("-u -R -I --utc --universal --rfc-email --rfc-3339 --iso-8601", "-d --date -r", r"\+(?s:.*)"),
    "df": make_row(
        "-a -h -H -i -k -l -m -P -T --all --human-readable --si --inodes --local --portability --print-type --total",
        "-t -x -B --type --exclude-type --block-size",
        allows_unknown_words=True,
    ),
    "diff": make_row(
        """-a -B -b -d -E -e -i -N -n -p -q -r -s -T -t -u -w -y -Z --text --ignore-blank-lines
        --ignore-space-change --minimal --ignore-tab-expansion --ignore-case --new-file --brief --recursive
        --report-identical-files --expand-tabs --unified --context --ignore-all-space --side-by-side
        --ignore-trailing-space --color --strip-trailing-cr --suppress-common-lines --left-column
        --no-dereference --show-c-function --normal""",
        "-C -I -L -U -W -X -x --ignore-matching-lines --label --width --exclude --exclude-from",
    ),
    "dirname": make_row("-z --zero", allows_unknown_words=True),
    "du": make_row(
        """-0 -a -b -c -D -H -h -k -L -l -m -P -S -s -x --all --apparent-size --bytes --total --human-readable
        --summarize --one-file-system --time --inodes --si --separate-dirs --null""",
        "-B -d -t --block-size --max-depth --threshold --exclude",
        allows_unknown_words=True,
    ),
    "egrep": make_row(_GREP_FLAGS, _GREP_WITH_VALUE, allows_unknown_words=True),
    "expand": make_row("-i --initial", "-t --tabs", allows_unknown_words=True),
    "expr": make_row(allows_unknown_words=True),
    "fd": make_row(
        """-0 -a -F -g -H -I -i -L -p -s -u -1 -q --absolute-path --fixed-strings --glob --hidden --no-ignore
        --ignore-case --follow --full-path --case-sensitive --unrestricted --no-ignore-vcs --print0 --prune
        --quiet --regex""",
        """--and -c -d -E -e -j -S -t --color --max-depth --min-depth --exact-depth --exclude --extension --threads
        --size --type --max-results --changed-within --changed-before""",
    ),
    "fgrep": make_row(_GREP_FLAGS, _GREP_WITH_VALUE, allows_unknown_words=True),
    "file": make_row(
        "-b -h -i -I -k -L -N -0 --brief --mime --mime-type --mime-encoding --dereference --no-dereference"
    ),
    "fold": make_row("-b -s --bytes --spaces", "-w --width", allows_unknown_words=True),
    "free": make_row(
        "-b -k -m -g -h -t -w --bytes --kibi --mebi --gibi --human --total --wide", allows_unknown_words=True
    ),
    "grep": make_row(_GREP_FLAGS, _GREP_WITH_VALUE, allows_unknown_words=True),
    "groups": make_row(allows_unknown_words=True),
    "head": make_row(
        "-q -v -z --quiet --silent --verbose --zero-terminated", "-c -n --bytes --lines", allows_unknown_words=True
    ),
    "hostname": make_row("-d -f -i -I -s", max_operands=0),
    "id": make_row("-G -g -n -r -u -z --group --groups --name --real --user --zero", allows_unknown_words=True),
    "jq": make_row(
        """-a -C -c -e -j -M -n -R -r -S -s --ascii-output --color-output --compact-output --exit-status
        --join-output --monochrome-output --null-input --raw-input --raw-output --sort-keys --slurp --tab --args
        --jsonargs --stream""",
        "--arg --argjson --indent",
    ),
    "ls": make_row(
        """-1 -A -a -B -C -c -d -F -f -G -g -H -h -i -k -L -l -m -N -n -o -p -Q -q -R -r -S -s -t -U -u -v -X -x -Z
        --all --almost-all --author --escape --ignore-backups --color --directory --classify --file-type
        --format --full-time --no-group --group-directories-first --human-readable --si --dereference --inode
        --numeric-uid-gid --literal --quote-name --recursive --reverse --size --sort --time --time-style --hide
        --indicator-style""",
        "-I -w --ignore --block-size --width --quoting-style",
        allows_unknown_words=True,
    ),
    "lscpu": make_row("-a -b -c -e -J -p -x --all --json --extended --parse"),
    "md5sum": make_row(_CHECKSUM_FLAGS, allows_unknown_words=True),
    "nl": make_row(
        "-p", "-b -d -f -h -i -l -n -s -v -w --body-numbering --number-format --number-width", allows_unknown_words=True
    ),
    "node": make_row("--version -v", max_operands=0, needs_option=True),
    "nproc": make_row("--all --ignore", allows_unknown_words=True),
    "od": make_row("-a -b -c -d -f -i -l -o -s -v -x", "-A -j -N -S -t -w", allows_unknown_words=True),
    "paste": make_row("-s -z --serial --zero-terminated", "-d --delimiters", allows_unknown_words=True),
    "pip": make_row("--version -V", max_operands=0),
    "pip list": make_row("-l --local --user --not-required --editable -e --format --exclude-editable", "--exclude"),
    "pip show": make_row("-f --files -v --verbose"),
    "ps": make_row(
        "-A -a -e -f -F -H -j -l -N -T -w -x -aux -auxw -auxww --forest --no-headers --headers --sort",
        "-C -G -g -O -o -p -t -U -u --pid --ppid --user --format",
        r"[aflujwx]+|[0-9]+",
        separates_values=True,
    ),
    "python": make_row("--version -V -VV", max_operands=0, needs_option=True),
    "readlink": make_row(
        "-e -f -m -n -q -s -v -z --canonicalize --canonicalize-existing --no-newline", allows_unknown_words=True
    ),
    "realpath": make_row(
        "-e -L -m -P -q -s -z --canonicalize-existing --canonicalize-missing --logical --no-symlinks --strip",
        "--relative-to --relative-base",
        allows_unknown_words=True,
    ),
    "rev": make_row(allows_unknown_words=True),
    "rg": make_row(
        """-0 -a -c -F -H -I -i -L -l -N -n -o -P -p -q -S -s -U -u -v -w -x --text --count --count-matches
        --column --crlf --files --files-with-matches --files-without-match --fixed-strings --follow --heading
        --no-heading --hidden --ignore-case --invert-match --json --line-number --no-line-number --line-regexp
        --multiline --multiline-dotall --no-config --no-ignore --no-ignore-vcs --no-messages --null
        --only-matching --passthru --pcre2 --pretty --quiet --smart-case --case-sensitive --stats --trim
        --type-list --unrestricted --vimgrep --with-filename --no-filename --word-regexp --version --debug
        --no-mmap --one-file-system""",
        """-A -B -C -d -E -e -f -g -j -M -m -r -T -t --after-context --before-context --context --max-depth
        --encoding --regexp --file --glob --iglob --threads --max-columns --max-count --replace --type
        --type-not --sort --sortr --color --colors --max-filesize --context-separator""",
    ),
    "ruby": make_row("--version -v", max_operands=0, needs_option=True),
    "seq": make_row("-w --equal-width", "-f -s --format --separator", allows_unknown_words=True),
    "sleep": make_row(operand_pattern=r"[0-9.]+[smh]?", max_operands=1),
    "sort": make_row(
        """-b -C -c -d -f -g -h -i -M -m -n -R -r -s -u -V -z --ignore-leading-blanks --check --dictionary-order
        --ignore-case --general-numeric-sort --human-numeric-sort --ignore-nonprinting --month-sort --merge
        --numeric-sort --random-sort --reverse --sort --stable --unique --version-sort --zero-terminated""",
        "-k -S -t --key --buffer-size --field-separator --parallel",
    ),
    "stat": make_row(
        "-L -f -l -n -q -r -s -x -t --dereference --file-system --terse",
        "-c -F --format --printf",
        allows_unknown_words=True,
    ),
    "strings": make_row("-a -f -w --all --print-file-name", "-e -n -t --bytes --radix --encoding"),
    "sum": make_row("-r -s", allows_unknown_words=True),
    "tac": make_row("-b -r --before --regex", "-s --separator", allows_unknown_words=True),
    "tail": make_row(
        "-F -f -q -r -v -z --follow --quiet --retry --silent --verbose --zero-terminated",
        "-b -c -n -s --bytes --lines --pid --sleep-interval",
        allows_unknown_words=True,
    ),
    "tr": make_row("-C -c -d -s -t --complement --delete --squeeze-repeats --truncate-set1", allows_unknown_words=True),
    "tree": make_row(
        """-A -a -C -c -D -d -F -f -g -h -i -J -N -n -p -q -r -S -s -t -U -u -v -X --du --prune --dirsfirst
        --filesfirst --noreport --gitignore --inodes --device --si""",
        "-I -L -P --filelimit --sort --timefmt --charset",
        separates_values=True,
    ),
    "tty": make_row("-s"),
    "unexpand": make_row("-a --all --first-only", "-t --tabs", allows_unknown_words=True),
    "uname": make_row("-a -i -m -n -o -p -r -s -v --all --kernel-name --kernel-release --machine --operating-system"),
    "uniq": make_row(
        "-c -D -d -i -u -z --count --repeated --ignore-case --unique --zero-terminated --all-repeated --group",
        "-f -s -w --skip-fields --skip-chars --check-chars",
        max_operands=1,
    ),
    "uptime": make_row("-p -s --pretty --since"),
    "wc": make_row("-c -L -l -m -w --bytes --chars --lines --max-line-length --words", allows_unknown_words=True),
    "which": make_row("-a -s", allows_unknown_words=True),
    "whoami": make_row(),
    "xxd": make_row("-a -b -E -e -i -p -u", "-c -g -l -o -s", max_operands=1, separates_values=True),
}
# A program of the first name has the row of the second.
_SAME_ROW = {
    "sha1sum": "md5sum", "sha224sum": "md5sum", "sha256sum": "md5sum", "sha384sum": "md5sum", "sha512sum": "md5sum",
    "fdfind": "fd", "python3": "python", "pip3": "pip", "pip3 list": "pip list",
    "pip3 show": "pip show",
}  # fmt: skip
READ_ONLY_ROWS = _PROGRAM_ROWS | {name: _PROGRAM_ROWS[other] for name, other in _SAME_ROW.items()}
PROGRAMS_WITH_SUBCOMMANDS = frozenset(name.partition(" ")[0] for name in READ_ONLY_ROWS if " " in name)

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

    A bracket expression has to close before the delimiter, without an escaped `]`: implementations differ in what ends
    it, and what is the text of a replacement to one of them is a file to write or a command to run to another.
    """
    # A class such as `[:alpha:]` has colons of its own.
    character_class = "" if delimiter == ":" else r"\[:[a-z]++:\]|"
    bracket = rf"\[\^?+\]?+(?:{character_class}[^][{delimiter}\\\n]|\\[^]{delimiter}\n])*+\]"
    return rf"(?:[^[{delimiter}\\\n]|\\[^\n]|{bracket})*+"


# Addresses and commands of sed. A script counts only if all of it matches: `e` runs programs, `w` writes files.
_SED_ADDRESS = rf"(?:[0-9]+(?:~[0-9]+)?|\$|/{_make_sed_pattern('/')}/)"
_SED_COMMAND = (
    rf"\s*(?:{_SED_ADDRESS}(?:,(?:{_SED_ADDRESS}|\+[0-9]+))?)?\s*!?\s*"
    rf"(?:[pdq=]|s/{_make_sed_pattern('/')}/(?:[^/\\\n]|\\[^\n])*/[gpiI0-9]*)\s*"
)
_READING_SED_SCRIPT = re.compile(rf"{_SED_COMMAND}(?:;{_SED_COMMAND})*;?\s*")
_SED_FLAGS = "-E -n -r -s -u -z --quiet --silent --regexp-extended --separate --null-data"
_SED_ROW = make_row(_SED_FLAGS, "-e --expression")
# Within a proof `sed -i` may edit files: it only has to be certain that it runs no program.
_EDITING_SED_ROW = make_row(f"{_SED_FLAGS} -i --in-place", "-e --expression")
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
_EDITING_SED_SCRIPT = re.compile(
    rf"[;\s]*+{_EDITING_SED_COMMAND}(?:[ \t]*+[;\n][;\s]*+{_EDITING_SED_COMMAND})*+[;\s]*+"
)


def check_find(words: Sequence[Word]) -> None:
    """Check the predicates of `find`; the command of `-exec` is judged separately. Raises Harmful."""
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


def check_sed(words: Sequence[Word]) -> None:
    """Check that `sed` scripts only print, delete and replace. Raises Harmful."""
    _check_sed_scripts(parse_words(words, _SED_ROW), _READING_SED_SCRIPT)


def check_sed_runs_nothing(words: Sequence[Word]) -> None:
    """Check that `sed` scripts have no `e` (run a program) and no `w`. Raises Harmful."""
    _check_sed_scripts(parse_words(words, _EDITING_SED_ROW), _EDITING_SED_SCRIPT)


def _check_sed_scripts(parsed: ParsedWords, harmless: re.Pattern[str]) -> None:
    scripts = [value for option, value in parsed.values if option in {"-e", "--expression"}]
    if not scripts:
        scripts = [parsed.operands[0].value] if parsed.operands else []
    if not scripts or not all(map(harmless.fullmatch, scripts)):
        raise Harmful("its script may write or execute")


# Words of a `jq` program that read more than its input: environment variables and other files.
_JQ_OUTSIDE_READS = re.compile(r"(?<![.\w])(?:env|ENV|import|include|modulemeta|get_search_list)\b")


def check_jq(words: Sequence[Word]) -> None:
    """Check `jq` against its row, and that its program reads nothing else. Raises Harmful."""
    parsed = check_words(words, READ_ONLY_ROWS["jq"])
    # `--arg NAME VALUE`: NAME is the option's value in the row, so VALUE counts as an operand before the program.
    count = sum(option in {"--arg", "--argjson"} for option in parsed.options)
    for operand in parsed.operands[: 1 + count]:
        if not operand.is_known or _JQ_OUTSIDE_READS.search(operand.value):
            raise Harmful("its program may read variables or other files")


def check_ps(words: Sequence[Word]) -> None:
    """Check `ps` against its row, and that it prints no environment, which may hold keys. Raises Harmful."""
    if any("env" in value.lower() for _, value in check_words(words, READ_ONLY_ROWS["ps"]).values):
        raise Harmful("it may show environments")


ARGUMENT_CHECKS: dict[str, Callable[[Sequence[Word]], None]] = {
    "find": check_find,
    "jq": check_jq,
    "ps": check_ps,
    "sed": check_sed,
}
"""By program that no row alone describes: the check of its arguments, which raises Harmful."""
