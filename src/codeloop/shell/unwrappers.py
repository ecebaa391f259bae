"""Finds the commands that particular programs run (`xargs`, `sh -c`, `find -exec`),
as far as the line shows them.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from codeloop.kit.wildcard import ANY_TEXT, ANY_WORDS, MARKS
from codeloop.shell.leading_options import find_operand
from codeloop.shell.program_row import NOT_KNOWN, ProgramRow
from codeloop.shell.word import Word, make_word
from codeloop.shell.wrapped_commands import (
    NO_COMMANDS,
    UNKNOWN_COMMANDS,
    WrappedCommands,
    make_script,
)

# Any number of further words.
_MORE_WORDS = Word(ANY_WORDS, "")
STDIN_PATH = r"-|/dev/stdin|/dev/fd/.*|/proc/.*/fd/.*"
"""A pattern of files that are the standard input, or another open file."""
_SHELL_FLAGS = frozenset(
    {"--login", "--noprofile", "--norc", "--posix", "--restricted", "--verbose", "--noediting"}
)

# Settings for `git -c` that can't make git run a program.
# An alias that begins with `!` could, so no value has one.
_SAFE_GIT_SETTING = (
    r"(user|color|advice|init|column|log|status|push|pull|branch|fetch|merge|rebase|safe|commit\.gpgsign|tag\.gpgsign"
    r"|core\.(quotepath|autocrlf|eol|abbrev|filemode|longpaths|ignorecase)|diff\.(renames|algorithm|context))"
    r"(\.[\w.-]+)?(=[^!]*)?"
)


def unwrap_eval(words: Sequence[Word], _: ProgramRow) -> WrappedCommands:
    """Return the script that `eval` runs."""
    rest = words[1:]
    return make_script(rest[1:] if rest and rest[0].value == "--" else rest)


def unwrap_trap(words: Sequence[Word], _: ProgramRow) -> WrappedCommands:
    """Return the script that `trap` sets."""
    rest = [word for word in words[1:] if word.value != "--"]
    if rest and rest[0].is_known and (rest[0].value.startswith("-") or len(rest) == 1):
        # It lists traps, or resets one.
        return NO_COMMANDS
    return make_script(rest[:1])


def unwrap_alias(words: Sequence[Word], _: ProgramRow) -> WrappedCommands:
    """Return the scripts that aliases stand for."""
    if not all(word.is_known for word in words):
        return UNKNOWN_COMMANDS
    return WrappedCommands(
        scripts=tuple(word.value.split("=", 1)[1] for word in words[1:] if "=" in word.value)
    )


def unwrap_source(words: Sequence[Word], _: ProgramRow) -> WrappedCommands:
    """Judge `source FILE`: a file that is named counts as a program that is run;
    standard input could be anything.
    """
    rest = [word for word in words[1:] if word.value != "--"]
    return NO_COMMANDS if rest and _names_file(rest[0]) else UNKNOWN_COMMANDS


def _names_file(word: Word) -> bool:
    return word.is_known and not re.fullmatch(STDIN_PATH, word.value, re.DOTALL)


def unwrap_shell(words: Sequence[Word], _: ProgramRow) -> WrappedCommands:
    """Read `sh -c script` and `sh file`. Without either,
    the shell reads its standard input: see `reads_stdin`.
    """
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
        return make_script(words[index : index + 1])
    # A script file counts as that of `source` does.
    return NO_COMMANDS if index < len(words) and _names_file(words[index]) else UNKNOWN_COMMANDS


def unwrap_find(words: Sequence[Word], _: ProgramRow) -> WrappedCommands:
    """Return the commands of `-exec` and its like; `-delete` counts as `rm`."""
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
            while end < len(words) and not _ends_find_action(
                words[end - 1].value, words[end].value
            ):
                end += 1
            commands.append(tuple(_fill_placeholder(word, "{}") for word in words[index:end]))
            index = end + 1
    return WrappedCommands(tuple(command for command in commands if command))


def _ends_find_action(before: str, value: str) -> bool:
    """Return whether a command of `find` ends here: at `;`, or at `+` behind `{}`."""
    return value == ";" or (value == "+" and before == "{}")


def _fill_placeholder(word: Word, placeholder: str) -> Word:
    """Return the word with a mark in place of a placeholder: the program fills
    it in with unknown text.
    """
    return (
        Word(word.value.replace(placeholder, ANY_TEXT), word.source)
        if placeholder in word.value
        else word
    )


_FD_EXEC_OPTIONS = ("--exec", "--exec-batch")
# `{}`, `{/}`, `{//}`, `{.}` and `{/.}`: the path of a file, its name, its folder,
# and these without the suffix.
_FD_PLACEHOLDER = r"\{(?:/|//|\.|/\.)?\}"


def unwrap_fd(words: Sequence[Word], _: ProgramRow) -> WrappedCommands:
    """`-x` and `-X` run what follows, up to `;`, for each file found,
    appended where there is no `{}`.
    """
    for index, word in enumerate(words[1:], 1):
        option, __, value = word.value.partition("=")
        # `-x CMD` or `-X CMD`, also joined and behind other letters: `-HxCMD`.
        short_option = re.match(r"-[A-Za-z0-9.]*?[xX](.*)", word.value, re.DOTALL)
        if option in _FD_EXEC_OPTIONS or short_option:
            value = short_option[1] if short_option else value
            end = next(
                (end for end in range(index, len(words)) if words[end].value == ";"), len(words)
            )
            command = [*([make_word(value)] if value else []), *words[index + 1 : end]]
            filled_command = [
                Word(re.sub(_FD_PLACEHOLDER, ANY_TEXT, each.value), each.source) for each in command
            ]
            if filled_command == command:
                filled_command.append(Word(ANY_TEXT, "{}"))
            return WrappedCommands((tuple(filled_command),))
    return UNKNOWN_COMMANDS if any(word.value[:1] in MARKS for word in words[1:]) else NO_COMMANDS


# The command `e` of sed (`1e rm x`), or the flag `e` of `s` (`s/a/b/e`).
_SED_EXECUTION = (
    r"(?s)(?:^|[;{}\n]|[0-9$/!])\s*e(?:\s|$)|s([^\w\s\\])(?:\\."
    r"|(?!\1)[^\\])*\1(?:\\.|(?!\1)[^\\])*\1[gpiImM0-9]*e"
)
# `system("rm x")` of awk, whose string is group 1, and the pipes `print | "rm x"`,
# `"rm x" | getline` and `|&`.
_AWK_EXECUTION = (
    r'(?s)\bsystem\s*\(\s*("(?:[^"\\]|\\.)*"\s*\))?|\|&|\|\s*getline|\bprintf?\b[^;}\n|]*\|(?!\|)'
)


# A longer script for `awk` or `sed` counts as unknown: the patterns backtrack,
# so they would hold up the event loop.
_MAX_SCRIPT_CHARS = 2_000


def unwrap_sed(words: Sequence[Word], _: ProgramRow) -> WrappedCommands:
    """Judge a script of `sed`: unknown if it may run a program by `e`."""
    texts = [word.value for word in words[1:]]
    may_run = any(
        len(text) > _MAX_SCRIPT_CHARS or re.search(_SED_EXECUTION, text) for text in texts
    )
    return UNKNOWN_COMMANDS if may_run else NO_COMMANDS


def unwrap_awk(words: Sequence[Word], _: ProgramRow) -> WrappedCommands:
    """Find the commands that an awk program runs: those given as one string; others are unknown."""
    commands: list[str] = []
    for word in words[1:]:
        if len(word.value) > _MAX_SCRIPT_CHARS:
            return UNKNOWN_COMMANDS
        for call in re.finditer(_AWK_EXECUTION, word.value):
            if call[1] is None:
                return UNKNOWN_COMMANDS
            commands.append(re.sub(r"\\(.)", r"\1", call[1].rpartition('"')[0][1:]))
    return WrappedCommands(scripts=tuple(commands))


def unwrap_xargs(words: Sequence[Word], program: ProgramRow) -> WrappedCommands:
    """Return the command that `xargs` runs, with unknown words where its input goes."""
    start = find_operand(words, program.known_options)
    if start is None:
        return UNKNOWN_COMMANDS
    rest = words[start:]
    if not rest:
        # Without a command xargs runs `echo`.
        return WrappedCommands(((make_word("echo"), _MORE_WORDS),))
    options = words[1:start]
    # `-I NAME`, `-INAME` and `--replace=NAME` put each line of the input in the place of NAME.
    placeholders = [
        value.value for option, value in pairwise(options) if option.value in {"-I", "-J"}
    ]
    placeholders += [option.value[2:] for option in options if re.match(r"-[IJ].", option.value)]
    placeholders += [
        option.value.partition("=")[2] or "{}"
        for option in options
        if option.value.startswith("--replace")
    ]
    for placeholder in placeholders:
        rest = [_fill_placeholder(word, placeholder) for word in rest]
    return WrappedCommands((tuple(rest) if placeholders else (*rest, _MORE_WORDS),))


def unwrap_parallel(words: Sequence[Word], _: ProgramRow) -> WrappedCommands:
    """`parallel rm ::: a b` runs `rm a` and `rm b`;
    without `:::` the commands come from standard input.
    """
    rest = [word.value for word in words[1:]]
    scripts = (" ".join(rest[: rest.index(":::")]),) if ":::" in rest else ()
    return WrappedCommands(scripts=scripts, is_unknown=True)


def unwrap_watch(words: Sequence[Word], program: ProgramRow) -> WrappedCommands:
    """Return the script that `watch` repeats."""
    start = find_operand(words, program.known_options)
    return UNKNOWN_COMMANDS if start is None else make_script(words[start:])


def unwrap_script_option(words: Sequence[Word], _: ProgramRow) -> WrappedCommands:
    """`su -c script`, `script -c script`: without the option they start a shell."""
    for index, word in enumerate(words[1:], 1):
        if word.value in {"-c", "--command"}:
            return make_script(words[index + 1 : index + 2])
    return UNKNOWN_COMMANDS


def unwrap_git(words: Sequence[Word], program: ProgramRow) -> WrappedCommands:
    """Find the command of `git bisect run` or `git submodule foreach`;
    unknown if an option or setting runs one.
    """
    index = 1
    while index < len(words) and words[index].value.startswith("-"):
        value = words[index].value
        if value.startswith(("--config-env", "--exec-path=")) or not words[index].is_known:
            return UNKNOWN_COMMANDS
        if value == "-c":
            setting = "".join(word.value for word in words[index + 1 : index + 2])
            if not re.fullmatch(_SAFE_GIT_SETTING, setting, re.IGNORECASE) or MARKS.intersection(
                setting
            ):
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
            return make_script(
                [word for word in rest[2:] if word.value not in {"--recursive", "-q", "--quiet"}]
            )
        case _:
            return UNKNOWN_COMMANDS if _has_git_exec_option(rest, program) else NO_COMMANDS


def _has_git_exec_option(words: Sequence[Word], program: ProgramRow) -> bool:
    """Return whether a subcommand of git, the first of the words,
    is given what makes it run a program.
    """
    if not words:
        return False
    row = program.subcommands.get(words[0].value, NOT_KNOWN)
    # The names of settings, such as `core.sshCommand`, are the same in any case.
    is_config = words[0].value == "config"
    return has_exec_option(
        [make_word(word.value.lower()) for word in words] if is_config else words, row
    )


def unwrap_as_unknown(_: Sequence[Word], __: ProgramRow) -> WrappedCommands:
    """Return that anything may run."""
    return UNKNOWN_COMMANDS


def unwrap_shopt(words: Sequence[Word], _: ProgramRow) -> WrappedCommands:
    """Judge `shopt` and `enable`: an option changes how the shell reads the words after it."""
    return UNKNOWN_COMMANDS if len(words) > 1 else NO_COMMANDS


def unwrap_tar(words: Sequence[Word], program: ProgramRow) -> WrappedCommands:
    """Judge `tar xIf PROGRAM a.tar`: letters without a dash,
    where `I` names a filter and `F` a script.
    """
    has_letters = len(words) > 1 and re.fullmatch(r"[A-Za-z]*[IF][A-Za-z]*", words[1].value)
    return UNKNOWN_COMMANDS if has_letters or has_exec_option(words, program) else NO_COMMANDS


COMMAND_UNWRAPPERS = frozenset({unwrap_script_option, unwrap_shell, unwrap_xargs})
"""Those of programs that run one command, and end as it ends."""
SCRIPT_UNWRAPPERS = frozenset({unwrap_awk, unwrap_fd, unwrap_sed, unwrap_tar})
"""Those of programs that usually run nothing,
but may do so by a script or an option in their words.
"""


def has_exec_option(words: Sequence[Word], program: ProgramRow) -> bool:
    """Return whether a command is given an option by which it runs another program."""
    flags = program.runs_by.split()
    return any(flags == ["*"] or _is_one_of(word.value, flags) for word in words[1:])


def _is_one_of(option: str, flags: Sequence[str]) -> bool:
    """Return whether an option is one of the flags: a long one may be shortened,
    a short one combined with others.
    """
    name = option.partition("=")[0]
    for flag in flags:
        if option.startswith(flag) or (
            name.startswith("--") and len(name) > 2 and flag.startswith(name)
        ):
            return True
        if len(flag) == 2 and re.match(rf"-[A-Za-z0-9]*{re.escape(flag[1])}", option):
            return True
    return False
