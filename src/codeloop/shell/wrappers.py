"""Unwraps commands that run other commands (`sudo`, `xargs`, `sh -c`): finds these, as far as the line shows them."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from msgspec import Struct

from codeloop.kit.wildcard import ANY_TEXT, ANY_WORDS, MARKS
from codeloop.shell.builtins import may_evaluate
from codeloop.shell.leading_options import LeadingOptions, find_operand
from codeloop.shell.runners import has_exec_option, has_git_exec_option, may_run_script
from codeloop.shell.word import Word, make_word

# Any number of further words.
_MORE_WORDS = Word(ANY_WORDS, "")
STDIN_PATH = re.compile(r"-|/dev/stdin|/dev/fd/.*|/proc/.*/fd/.*", re.DOTALL)


class WrappedCommands(Struct, frozen=True):
    """The commands (lists of words) and scripts that a wrapper runs. `is_unknown`: it may run others as well."""

    commands: tuple[tuple[Word, ...], ...] = ()
    scripts: tuple[str, ...] = ()
    is_unknown: bool = False


NO_COMMANDS = WrappedCommands()
UNKNOWN_COMMANDS = WrappedCommands(is_unknown=True)


WRAPPERS = {
    "builtin": LeadingOptions(),
    "busybox": LeadingOptions(),
    "chroot": LeadingOptions("--userspec --groups", "--skip-chdir", operand_count=1),
    "chrt": LeadingOptions("-T -P -D", "-a -b -f -i -m -o -r", operand_count=1),
    "command": LeadingOptions(flags="-p", exit_options="-v -V"),
    "coproc": LeadingOptions(takes_assignments=True),
    "doas": LeadingOptions("-u -C", "-n", exit_options="-L"),
    "env": LeadingOptions(
        "-u --unset -C --chdir", "-i -0 -v - --ignore-environment --null --debug", takes_assignments=True
    ),
    "exec": LeadingOptions("-a", "-c -l"),
    "fakeroot": LeadingOptions("-l -s -i -b", "-u"),
    "flock": LeadingOptions(
        "-w -E --timeout --conflict-exit-code", "-s -x -e -n -o -F --shared --exclusive", operand_count=1
    ),
    "ionice": LeadingOptions("-c -n --class --classdata", "-t --ignore"),
    "linux32": LeadingOptions(),
    "linux64": LeadingOptions(),
    "ltrace": LeadingOptions("-e -o -p -s -u -l -n", "-f -c -C -i -r -S -t -tt -T"),
    "nice": LeadingOptions("-n --adjustment", "-#"),
    "noglob": LeadingOptions(),
    "nohup": LeadingOptions(),
    "prlimit": LeadingOptions("-p"),
    "setsid": LeadingOptions(flags="-c -f -w --ctty --fork --wait"),
    "stdbuf": LeadingOptions("-i -o -e --input --output --error"),
    "strace": LeadingOptions("-e -o -p -s -u -a -b -E -I -O -P -S -X", "-f -c -C -d -i -q -r -t -T -v -x -y -k"),
    "sudo": LeadingOptions(
        "-u -g -h -p -C -T -D -R -r -t -U --user --group",
        "-A -b -E -H -n -P -S -k",
        takes_assignments=True,
        exit_options="-v -l -K -e",
    ),
    "systemd-run": LeadingOptions(
        "-p -u --unit --property", "--user --scope --wait --pty -P -t -q --quiet --collect -G"
    ),
    "taskset": LeadingOptions(flags="-a -c", operand_count=1, exit_options="-p"),
    "time": LeadingOptions(
        "-f -o --format --output", "-p -v -a --portability --verbose --append", takes_assignments=True
    ),
    "timeout": LeadingOptions(
        "-s -k --signal --kill-after", "-v -f -p --foreground --preserve-status --verbose", operand_count=1
    ),
    "toybox": LeadingOptions(),
    "unbuffer": LeadingOptions(flags="-p"),
    "xvfb-run": LeadingOptions("-n -s -e -f -p -w", "-a -l --auto-servernum"),
}
"""By program that runs the words after its own arguments as a command: these arguments."""

# Wrappers that start a shell when no command is given.
_SHELL_WRAPPERS = frozenset({"chroot", "fakeroot", "linux32", "linux64"})
SHELLS = frozenset({"ash", "bash", "dash", "fish", "ksh", "mksh", "rbash", "sh", "yash", "zsh"})
_SHELL_FLAGS = frozenset({"--login", "--noprofile", "--norc", "--posix", "--restricted", "--verbose", "--noediting"})

# Settings for `git -c` that can't make git run a program. An alias that begins with `!` could, so no value has one.
_SAFE_GIT_SETTING = (
    r"(user|color|advice|init|column|log|status|push|pull|branch|fetch|merge|rebase|safe|commit\.gpgsign|tag\.gpgsign"
    r"|core\.(quotepath|autocrlf|eol|abbrev|filemode|longpaths|ignorecase)|diff\.(renames|algorithm|context))"
    r"(\.[\w.-]+)?(=[^!]*)?"
)


def unwrap(words: Sequence[Word]) -> WrappedCommands:
    """Find the commands that a command runs. Its name has to be known."""
    name = words[0].value
    if name in WRAPPERS:
        return _unwrap_row(words, WRAPPERS[name])
    if name in UNWRAPPERS or name in SCRIPT_UNWRAPPERS:
        return (UNWRAPPERS.get(name) or SCRIPT_UNWRAPPERS[name])(words)
    return UNKNOWN_COMMANDS if has_exec_option(words) or may_run_script(words) or may_evaluate(words) else NO_COMMANDS


def _unwrap_row(words: Sequence[Word], row: LeadingOptions) -> WrappedCommands:
    if len(words) > 1 and words[1].is_known and words[1].value in row.exit_options.split():
        return NO_COMMANDS
    start = find_operand(words, row)
    if start is None:
        return UNKNOWN_COMMANDS
    rest = list(words[start:])
    if not all(word.is_known for word in rest[: row.operand_count]):
        return UNKNOWN_COMMANDS
    rest = rest[row.operand_count :]
    while row.takes_assignments and rest and "=" in rest[0].value:
        rest = rest[1:]
    # `flock FILE -c SCRIPT` runs a script, not a command.
    if row.operand_count and rest and rest[0].value == "-c":
        return _make_script(rest[1:2])
    if not rest and words[0].value in _SHELL_WRAPPERS:
        return UNKNOWN_COMMANDS
    return WrappedCommands((tuple(rest),)) if rest else NO_COMMANDS


def _make_script(words: Sequence[Word]) -> WrappedCommands:
    """Return a script made of the words, joined by blanks; unknown if a word is."""
    if not all(word.is_known for word in words):
        return UNKNOWN_COMMANDS
    return WrappedCommands(scripts=(" ".join(word.value for word in words),)) if words else NO_COMMANDS


def _unwrap_eval(words: Sequence[Word]) -> WrappedCommands:
    rest = words[1:]
    return _make_script(rest[1:] if rest and rest[0].value == "--" else rest)


def _unwrap_trap(words: Sequence[Word]) -> WrappedCommands:
    rest = [word for word in words[1:] if word.value != "--"]
    if rest and rest[0].is_known and (rest[0].value.startswith("-") or len(rest) == 1):
        # It lists traps, or resets one.
        return NO_COMMANDS
    return _make_script(rest[:1])


def _unwrap_alias(words: Sequence[Word]) -> WrappedCommands:
    if not all(word.is_known for word in words):
        return UNKNOWN_COMMANDS
    return WrappedCommands(scripts=tuple(word.value.split("=", 1)[1] for word in words[1:] if "=" in word.value))


def _unwrap_source(words: Sequence[Word]) -> WrappedCommands:
    """Judge `source FILE`: a file that is named counts as a program that is run; standard input could be anything."""
    rest = [word for word in words[1:] if word.value != "--"]
    if rest and rest[0].is_known and not STDIN_PATH.fullmatch(rest[0].value):
        return NO_COMMANDS
    return UNKNOWN_COMMANDS


def _unwrap_shell(words: Sequence[Word]) -> WrappedCommands:
    """Read `sh -c script` and `sh file`. Without either, the shell reads its standard input: see `reads_stdin`."""
    is_script = False
    index = 1
    while index < len(words):
        word = words[index]
        if not word.is_known:
            return UNKNOWN_COMMANDS
        if word.value in {"-", "--"}:
            index += 1
            break
        if word.value[:1] not in {"-", "+"}:
            break
        if word.value.startswith("--"):
            if word.value not in _SHELL_FLAGS:
                return UNKNOWN_COMMANDS
        elif "O" in word.value:
            # `-O NAME` sets an option of the shell, which may change how it reads the script.
            return UNKNOWN_COMMANDS
        else:
            is_script = is_script or ("c" in word.value and word.value.startswith("-"))
            # `-o NAME` takes the next word.
            index += "o" in word.value
        index += 1
    if is_script:
        return _make_script(words[index : index + 1])
    # A script file counts as that of `source` does, which has one word before it.
    return NO_COMMANDS if index < len(words) and _unwrap_source(words[index - 1 :]) == NO_COMMANDS else UNKNOWN_COMMANDS


def reads_stdin(words: Sequence[Word]) -> bool:
    """Return whether a shell without a script of its own reads one from standard input."""
    if words[0].value in {".", "source"}:
        return len(words) == 2 and STDIN_PATH.fullmatch(words[1].value) is not None
    options = [word.value for word in words[1:]]
    return words[0].value in SHELLS and all(re.fullmatch(r"-[a-z]*|/dev/stdin", o) and "c" not in o for o in options)


def _unwrap_find(words: Sequence[Word]) -> WrappedCommands:
    commands: list[tuple[Word, ...]] = []
    index = 1
    while index < len(words):
        value = words[index].value
        if value == ANY_WORDS:
            return WrappedCommands(tuple(commands), is_unknown=True)
        index += 1
        if value == "-delete":
            commands.append((make_word("rm"), Word(ANY_TEXT, "{}")))
        elif value in {"-exec", "-execdir", "-ok", "-okdir"}:
            end = index
            while end < len(words) and not _ends_find_action(words[end - 1].value, words[end].value):
                end += 1
            commands.append(tuple(_fill_placeholder(word, "{}") for word in words[index:end]))
            index = end + 1
    return WrappedCommands(tuple(command for command in commands if command))


def _ends_find_action(before: str, value: str) -> bool:
    """Return whether a command of `find` ends here: at `;`, or at `+` behind `{}`."""
    return value == ";" or (value == "+" and before == "{}")


def _fill_placeholder(word: Word, placeholder: str) -> Word:
    """Return the word with a mark in place of a placeholder: the program fills it in with unknown text."""
    return Word(word.value.replace(placeholder, ANY_TEXT), word.source) if placeholder in word.value else word


_FD_EXEC_OPTIONS = ("--exec", "--exec-batch")
# `{}`, `{/}`, `{//}`, `{.}` and `{/.}`: the path of a file, its name, its folder, and these without the suffix.
_FD_PLACEHOLDER = re.compile(r"\{(?:/|//|\.|/\.)?\}")


def _unwrap_fd(words: Sequence[Word]) -> WrappedCommands:
    """`-x` and `-X` run what follows, up to `;`, for each file found, appended where there is no `{}`."""
    for index, word in enumerate(words[1:], 1):
        option, _, value = word.value.partition("=")
        # `-x CMD` or `-X CMD`, also joined and behind other letters: `-HxCMD`.
        short_option = re.match(r"-[A-Za-z0-9.]*?[xX](.*)", word.value, re.DOTALL)
        if option in _FD_EXEC_OPTIONS or short_option:
            value = short_option[1] if short_option else value
            end = next((end for end in range(index, len(words)) if words[end].value == ";"), len(words))
            command = [*([make_word(value)] if value else []), *words[index + 1 : end]]
            filled_command = [Word(_FD_PLACEHOLDER.sub(ANY_TEXT, each.value), each.source) for each in command]
            if filled_command == command:
                filled_command.append(Word(ANY_TEXT, "{}"))
            return WrappedCommands((tuple(filled_command),))
    return UNKNOWN_COMMANDS if any(word.value[:1] in MARKS for word in words[1:]) else NO_COMMANDS


# The command `e` of sed (`1e rm x`), or the flag `e` of `s` (`s/a/b/e`).
_SED_EXECUTION = re.compile(
    r"(?:^|[;{}\n]|[0-9$/!])\s*e(?:\s|$)|s([^\w\s\\])(?:\\.|(?!\1)[^\\])*\1(?:\\.|(?!\1)[^\\])*\1[gpiImM0-9]*e",
    re.DOTALL,
)
# `system("rm x")` of awk, whose string is group 1, and the pipes `print | "rm x"`, `"rm x" | getline` and `|&`.
_AWK_EXECUTION = re.compile(
    r'\bsystem\s*\(\s*("(?:[^"\\]|\\.)*"\s*\))?|\|&|\|\s*getline|\bprintf?\b[^;}\n|]*\|(?!\|)', re.DOTALL
)


# A longer script for `awk` or `sed` counts as unknown: the patterns backtrack, so they would hold up the event loop.
_MAX_SCRIPT_CHARS = 2_000


def _unwrap_sed(words: Sequence[Word]) -> WrappedCommands:
    """Judge a script of `sed`: unknown if it may run a program by `e`."""
    texts = [word.value for word in words[1:]]
    may_run = any(len(text) > _MAX_SCRIPT_CHARS or _SED_EXECUTION.search(text) for text in texts)
    return UNKNOWN_COMMANDS if may_run else NO_COMMANDS


def _unwrap_awk(words: Sequence[Word]) -> WrappedCommands:
    """Find the commands that an awk program runs: those given as one string; others are unknown."""
    commands: list[str] = []
    for word in words[1:]:
        if len(word.value) > _MAX_SCRIPT_CHARS:
            return UNKNOWN_COMMANDS
        for call in _AWK_EXECUTION.finditer(word.value):
            if call[1] is None:
                return UNKNOWN_COMMANDS
            commands.append(re.sub(r"\\(.)", r"\1", call[1].rpartition('"')[0][1:]))
    return WrappedCommands(scripts=tuple(commands))


_XARGS_OPTIONS = LeadingOptions(
    "-I -n -P -L -d -E -s -a -J -R -S --max-args --max-procs --delimiter --arg-file --max-chars",
    "-0 -r -t -p -x -o --null --no-run-if-empty --verbose --interactive --exit --open-tty --max-lines --replace --eof",
)


def _unwrap_xargs(words: Sequence[Word]) -> WrappedCommands:
    start = find_operand(words, _XARGS_OPTIONS)
    if start is None:
        return UNKNOWN_COMMANDS
    rest = words[start:]
    if not rest:
        # Without a command xargs runs `echo`.
        return WrappedCommands(((make_word("echo"), _MORE_WORDS),))
    options = words[1:start]
    # `-I NAME`, `-INAME` and `--replace=NAME` put each line of the input in the place of NAME.
    placeholders = [value.value for option, value in pairwise(options) if option.value in {"-I", "-J"}]
    placeholders += [option.value[2:] for option in options if re.match(r"-[IJ].", option.value)]
    placeholders += [
        option.value.partition("=")[2] or "{}" for option in options if option.value.startswith("--replace")
    ]
    for placeholder in placeholders:
        rest = [_fill_placeholder(word, placeholder) for word in rest]
    return WrappedCommands((tuple(rest) if placeholders else (*rest, _MORE_WORDS),))


def _unwrap_parallel(words: Sequence[Word]) -> WrappedCommands:
    """`parallel rm ::: a b` runs `rm a` and `rm b`; without `:::` the commands come from standard input."""
    rest = [word.value for word in words[1:]]
    scripts = (" ".join(rest[: rest.index(":::")]),) if ":::" in rest else ()
    return WrappedCommands(scripts=scripts, is_unknown=True)


def _unwrap_watch(words: Sequence[Word]) -> WrappedCommands:
    start = find_operand(
        words, LeadingOptions("-n --interval", "-d -t -b -e -g -c -x -p --no-title --differences --color --exec")
    )
    return UNKNOWN_COMMANDS if start is None else _make_script(words[start:])


def _unwrap_script_option(words: Sequence[Word]) -> WrappedCommands:
    """`su -c script`, `script -c script`: without the option they start a shell."""
    for index, word in enumerate(words[1:], 1):
        if word.value in {"-c", "--command"}:
            return _make_script(words[index + 1 : index + 2])
    return UNKNOWN_COMMANDS


def _unwrap_git(words: Sequence[Word]) -> WrappedCommands:
    index = 1
    while index < len(words) and words[index].value.startswith("-"):
        value = words[index].value
        if value.startswith(("--config-env", "--exec-path=")) or not words[index].is_known:
            return UNKNOWN_COMMANDS
        if value == "-c":
            setting = "".join(word.value for word in words[index + 1 : index + 2])
            if not re.fullmatch(_SAFE_GIT_SETTING, setting, re.IGNORECASE) or MARKS.intersection(setting):
                return UNKNOWN_COMMANDS
        index += 2 if value in {"-c", "-C", "--git-dir", "--work-tree", "--namespace"} else 1
    rest = words[index:]
    if any("ext::" in word.value for word in rest):
        # A URL of the transport `ext::` is a command.
        return UNKNOWN_COMMANDS
    match [word.value for word in rest[:2]]:
        case ["bisect", "run"]:
            return WrappedCommands((tuple(rest[2:]),))
        case ["submodule", "foreach"]:
            return _make_script([word for word in rest[2:] if word.value not in {"--recursive", "-q", "--quiet"}])
        case _:
            return UNKNOWN_COMMANDS if has_git_exec_option([word.value for word in rest]) else NO_COMMANDS


def _unwrap_as_unknown(_: Sequence[Word]) -> WrappedCommands:
    return UNKNOWN_COMMANDS


def _unwrap_shopt(words: Sequence[Word]) -> WrappedCommands:
    """Judge `shopt` and `enable`: an option changes how the shell reads the words after it."""
    return UNKNOWN_COMMANDS if len(words) > 1 else NO_COMMANDS


UNWRAPPERS: dict[str, Callable[[Sequence[Word]], WrappedCommands]] = {
    ".": _unwrap_source,
    "alias": _unwrap_alias,
    "enable": _unwrap_shopt,
    "entr": _unwrap_as_unknown,
    "eval": _unwrap_eval,
    "find": _unwrap_find,
    "git": _unwrap_git,
    "nsenter": _unwrap_as_unknown,
    "parallel": _unwrap_parallel,
    "runuser": _unwrap_script_option,
    "script": _unwrap_script_option,
    "shopt": _unwrap_shopt,
    "source": _unwrap_source,
    "su": _unwrap_script_option,
    "trap": _unwrap_trap,
    "watch": _unwrap_watch,
    "xargs": _unwrap_xargs,
    **dict.fromkeys(SHELLS, _unwrap_shell),
}
"""By any other program that runs commands: a function that finds them in its words."""
# Programs that usually run nothing, but may do so by a script or an option in their words.
SCRIPT_UNWRAPPERS: dict[str, Callable[[Sequence[Word]], WrappedCommands]] = {
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _unwrap_awk),
    **dict.fromkeys(("fd", "fdfind"), _unwrap_fd),
    **dict.fromkeys(("gsed", "sed"), _unwrap_sed),
}
