"""Finds the checks in command lines (tests, linters, type checkers, builds), and how much each of them checks. Pure."""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import PurePath

from msgspec import Struct, structs

from codeloop.agent.checks.check_programs import (
    ATTACHED_VALUE_OPTIONS,
    CANONICAL_NAMES,
    CHECK_PROGRAMS,
    FILTER_OPTIONS,
    INFORMATION_OPTIONS,
    NARROWING_FLAGS,
    PROGRAM_FILTER_OPTIONS,
    RUNNER_SUBCOMMANDS,
    TASK_PROGRAMS,
    TASK_RUNNER_WORDS,
    VALUE_OPTIONS,
    WHOLE_PROJECT_TARGETS,
    WRAPPER_PROGRAMS,
    CheckKind,
)

# Characters of a line that are looked at.
_MAX_LINE_CHARS = 20_000
_TOP_EXPRESSION = "$(git rev-parse --show-toplevel)"
# How deep lines inside of lines (`bash -c "..."`) are followed.
_MAX_NESTING = 3
_HERE_DOCUMENT = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)\1([^\n]*)(?=\n)(?:.*?\n[ \t]*\2[ \t]*(?=\n|\Z)|.*)", re.DOTALL)
_TOKEN = re.compile(
    r"\d*(?:>>?|<)(?:&[\d-]+|[ \t]*[^\s;|&<>()]+)|&>>?[ \t]*[^\s;|&<>()]+"  # redirections
    r"|(?P<end>\|\||&&|[|;&\n()`])"
    r"|(?P<word>(?:\"(?:[^\"\\]|\\.)*\"|'[^']*'|\\.|[^\s\"'\\;|&()<>`])+)",
    re.DOTALL,
)
_QUOTES = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|\\(.)", re.DOTALL)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_KEYWORDS = frozenset(
    ("!", "if", "then", "elif", "else", "do", "while", "until", "time", "{", "exec", "command", "eval")
)
_TASK_NAME = re.compile(
    r"(?:[\w./+-]+:)??(?:(?P<test>tests?|specs?|unit|e2e|integration)|(?P<lint>lint|style)"
    r"|(?P<types>types?|typecheck|type-check|typing|mypy|pyright|tsc)|(?P<build>build|compile|package)"
    r"|(?P<all>checks?|verify|validate|ci|qa|preflight|presubmit))(?P<rest>(?:[:._/-][\w:./-]*)?)"
)
# Parts of names of tasks that only prepare something (`test-deps`) or never end (`test:watch`).
_OTHER_TASK_PART = re.compile(
    r"(?:^|[:._/-])(?:deps|install|setup|serve|server|watch|data|clean|images?|docs?|fixtures?|update|deploy|release"
    r"|publish|start|stop|dev|env|up|down)(?:$|[:._/-])"
)
_JVM_TASK = re.compile(
    r":?(?:[\w.-]+:)*(?:(?P<test>test\w*|\w*Test|integrationTest)|(?P<all>check|verify)|(?P<build>build|assemble|package|install|compile\w*))"
)
_INTERPRETERS = re.compile(
    r"python[\d.]*|pypy3?|node|nodejs|bun|deno|tsx|ts-node|ruby|perl|php|lua|luajit|julia|Rscript|bash|sh|zsh|dash"
)
_SCRIPT_NAME = re.compile(
    r"(?:run[_-]?|all[_-]?)?(?:(?:unit|integration|e2e|smoke)[_-]?)?(?:(?P<test>tests?|specs?)|(?P<lint>lint)"
    r"|(?P<all>checks?|verify|ci))(?:[_-][\w-]+)?(?:\.(?:sh|bash|zsh|py|js|mjs|cjs|ts|rb|pl|php|lua|jl|R))?"
)
_TEST_FILE = re.compile(r"(?:test_[\w-]+|[\w-]+[_.-](?:test|spec)|runtests|run|all|index|main)\.\w+|[\w-]+\.t")
_TEST_FOLDERS = frozenset(("test", "tests", "spec", "specs", "__tests__", "t"))
# Matches code that runs tests: `python -c "import pytest; pytest.main()"`.
_CODE_RUN = re.compile(r"\b(?P<runner>pytest|unittest)\.main\((?P<arguments>[^)]*)")
_QUOTED_TEXT = re.compile(r"['\"]([^'\"]+)['\"]")
_FUNCTION_DEFINITION = re.compile(
    r"(?:^|[;\n&|({])[ \t]*(?:function[ \t]+([\w.-]+)|([\w.-]+)[ \t]*\(\))|\balias[ \t]+([\w.-]+)="
)
_MODULE_RUNNERS = frozenset(("python", "pypy", "pypy3", "coverage"))


class CheckCommand(Struct, frozen=True):
    """One check of a line: its program with the subcommand, and the paths and filters that narrow it (none: all).

    `is_task`: a task of the project's own (`make test`), whatever that runs.
    """

    program: str
    kind: CheckKind
    targets: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    is_task: bool = False
    folder: str = ""
    """Where it runs, relative to the session's directory (""); absolute where it is not below it."""

    def covers(self, other: "CheckCommand") -> bool:
        """Return whether what the other one checks is checked by this one, too."""
        if self.folder != other.folder and (self.folder or self.is_task):
            return False
        if self.program != other.program:
            is_related = (self.is_task or other.is_task) and self.folder == other.folder
            return is_related and self.kind in {other.kind, "all"} and not (self.targets or self.filters)
        if self.filters and self.filters != other.filters:
            return False
        return not self.targets or (
            self.folder == other.folder
            and bool(other.targets)
            and all(any(_is_below(each, mine) for mine in self.targets) for each in other.targets)
        )


def is_check(line: str) -> bool:
    """Return whether a command tests, lints, type-checks or builds, and does not only look at such a file."""
    return bool(find_checks(line))


def find_checks(line: str, folder: str = "", root: str = "") -> list[CheckCommand]:
    """Return the checks that a command line runs, in order.

    `folder`: where the line begins, as in `CheckCommand`; `root`: the session's directory, "" if it is not known.
    """
    return [*_find_checks(line.replace(_TOP_EXPRESSION, root or "."), _MAX_NESTING, folder, root)]


def _find_checks(line: str, depth: int, folder: str, root: str) -> Iterator[CheckCommand]:
    outer: list[str] = []
    for words, end in split_line(line):
        if words[:1] in (["cd"], ["pushd"]):
            folder = join_folder(folder, words[1] if len(words) > 1 else "~", root)
        for check in _read_command(words, depth):
            yield structs.replace(check, folder=join_folder(folder, check.folder, root))
        if end == "(":
            outer.append(folder)
        elif end == ")" and outer:
            folder = outer.pop()


def join_folder(folder: str, target: str, root: str) -> str:
    """Return the folder, as in `CheckCommand`, that `cd target` leads to from another one."""
    path = os.path.normpath(str(PurePath(root, folder, target)))
    if root and (path == root or path.startswith(f"{root}/")):
        path = path[len(root) :].lstrip("/")
    return "" if path == "." else path


def is_outside(folder: str, root: str) -> bool:
    """Return whether a folder has nothing to do with the session's directory: it is neither below nor above it."""
    return bool(root) and folder.startswith("/") and not root.startswith(f"{folder.rstrip('/')}/")


def find_functions(line: str) -> set[str]:
    """Return the names of the shell functions and aliases that a line defines."""
    text = _QUOTES.sub("", _HERE_DOCUMENT.sub(r"\3", line[:_MAX_LINE_CHARS]))
    return {name for match in _FUNCTION_DEFINITION.finditer(text) for name in match.groups() if name}


def runs_check(words: Sequence[str]) -> bool:
    """Return whether a simple command is a check."""
    return any(True for _ in _read_command(words, _MAX_NESTING))


def inverts_check(line: str) -> bool:
    """Return whether a line inverts the exit code of a check (`! pytest`)."""
    return any("!" in takewhile(_KEYWORDS.__contains__, words) and runs_check(words) for words, _ in split_line(line))


def hides_exit_code(line: str) -> bool:
    """Return whether a line may exit with 0 although a check in it failed."""
    pieces = [(words, end) for words, end in split_line(line) if words or end in {"&", "`", "("}]
    for number, (words, _) in enumerate(pieces):
        if not runs_check(words):
            continue
        before, _ = pieces[number - 1] if number else ([], "")
        if before[-1:] == ["$"] or any(_hides_inside(word) for word in words):
            return True
        for later, (_, end) in enumerate(pieces[number:], number + 1):
            if end in {"&", "`"}:
                return True
            follows = next((each for each, _ in pieces[later:] if each), list[str]())
            if not follows:
                break
            if end == "||" and follows[0] in {"exit", "return", "false"} and follows[-1] != "0":
                continue
            if end in {"||", ";", "\n"} or (end == "|" and "pipefail" not in line):
                return True
    return False


def _hides_inside(word: str) -> bool:
    """Return whether a word is a line, or code, that runs a check and drops its exit code."""
    return (_CODE_RUN.search(word) is not None and "xit(" not in word) or (" " in word and hides_exit_code(word))


def split_commands(line: str) -> Iterator[list[str]]:
    """Yield the words of each simple command of a line."""
    return (words for words, _ in split_line(line))


def split_line(line: str) -> Iterator[tuple[list[str], str]]:
    """Yield the words of each simple command of a line, with the operator after it ("" at the line's end)."""
    text = _HERE_DOCUMENT.sub(r"\3", line[:_MAX_LINE_CHARS].replace("\\\n", " "))
    words: list[str] = []
    for token in _TOKEN.finditer(text):
        if token["end"] is not None:
            yield words, token["end"]
            words = []
        elif token["word"] is not None:
            words.append(_QUOTES.sub(lambda quote: quote[1] or quote[2] or quote[3] or "", token["word"]))
    yield words, ""


def _read_command(words: Sequence[str], depth: int) -> Iterator[CheckCommand]:
    """Yield the check of a simple command; several, where it runs lines of its own."""
    start = next(
        (n for n, word in enumerate(words) if word not in _KEYWORDS and not _ASSIGNMENT.match(word)), len(words)
    )
    options = [word.partition("=")[2] for word in words[:start] if word.startswith("PYTEST_ADDOPTS=")]
    words = words[start:]
    if options:
        narrow = _make_check("pytest", "test", [word for option in options for word in option.split()]).filters
        for check in _read_command(words, depth):
            yield structs.replace(check, filters=(*check.filters, *narrow))
        return
    if not words or any(word in INFORMATION_OPTIONS for word in words[1:]):
        return
    name = words[0].rpartition("/")[2].removesuffix(".exe")
    if (check := _read_program(name, words) or _read_task(name, words[1:])) is not None:
        yield check
        return
    rest = _list_inner_words(name, words)
    for start in range(len(rest)):
        if " " in rest[start] and depth:
            yield from _find_checks(rest[start], depth - 1, "", "")
        elif inner := [*_read_command(rest[start:], 0)]:
            # Its targets come from standard input, so it may check any part.
            more = ("xargs",) if name == "xargs" else ()
            yield from (structs.replace(check, filters=(*check.filters, *more)) for check in inner)
            return


def _list_inner_words(name: str, words: Sequence[str]) -> Sequence[str]:
    """Return the words among which a wrapper's command begins; empty: the program is no wrapper."""
    plain = re.sub(r"[\d.]+$", "", name)
    if name in WRAPPER_PROGRAMS:
        return words[1:]
    if plain in _MODULE_RUNNERS and "-m" in words:
        return words[words.index("-m") + 1 :]
    within = RUNNER_SUBCOMMANDS.get(name, ())
    start = next((number for number, word in enumerate(words, 1) if word in within), len(words))
    return words[start:]


def _read_program(name: str, words: Sequence[str]) -> CheckCommand | None:
    """Return the check of a program that is known, or of a script with a check's name."""
    plain = re.sub(r"-?[\d.]+$", "", name)
    for first, kind in CHECK_PROGRAMS.get(name, CHECK_PROGRAMS.get(plain, {})).items():
        wanted = first.split()
        # `cargo +nightly test`: the toolchain stands before the subcommand.
        rest = [word for word in words[1:] if not word.startswith("+")]
        if wanted and not (_has_subcommand(rest, wanted[0]) and all(word in rest for word in wanted)):
            continue
        return _make_check(f"{plain} {first}".strip(), kind, rest[rest.index(wanted[-1]) + 1 :] if wanted else rest)
    if plain in {"mvn", "mvnw", "gradle", "gradlew"}:
        return _read_jvm(plain.removesuffix("w"), words[1:])
    if plain == "rake" and len(words) == 1:
        return CheckCommand("rake", "all", is_task=True)
    if _INTERPRETERS.fullmatch(name):
        if "-c" in words and (match := _CODE_RUN.search(" ".join(words[words.index("-c") + 1 :]))):
            arguments = tuple(_QUOTED_TEXT.findall(match["arguments"]))
            return _make_check(match["runner"], "test", arguments)
        script = next((word for word in words[1:] if not word.startswith("-") and word != "run"), "")
        # `python manage.py test`: the script is the program that has the row.
        if script.rpartition("/")[2] in CHECK_PROGRAMS:
            return _read_program(script.rpartition("/")[2], words[words.index(script) :])
        return _read_script(script, is_run_by_name=False)
    return _read_script(words[0], is_run_by_name=True)


def _has_subcommand(words: Sequence[str], wanted: str) -> bool:
    """Return whether a program's first plain word, after options and their values, is the wanted one."""
    if wanted.startswith("-"):
        return wanted in words
    previous = ""
    for word in words:
        if word == wanted:
            return True
        if not word.startswith("-") and word != "workspace" and not previous:
            return False
        previous = word if word.startswith("-") or word == "workspace" else ""
    return False


def _read_jvm(name: str, words: Sequence[str]) -> CheckCommand | None:
    """Return the check of Maven or Gradle; a task of one module, or tests that an option picks, is narrow."""
    matches = [match for word in words if not word.startswith("-") and (match := _JVM_TASK.fullmatch(word))]
    if not matches:
        return None
    kinds = {match.lastgroup for match in matches}
    kind: CheckKind = "test" if "test" in kinds else "all" if "all" in kinds else "build"
    modules = tuple(match[0] for match in matches if ":" in match[0].lstrip(":"))
    filters = tuple(word for word in words if word.startswith(("-Dtest", "--tests", "-pl")))
    return CheckCommand(f"{name} {kind}", kind, modules, filters)


def _read_script(path: str, *, is_run_by_name: bool) -> CheckCommand | None:
    """Return the check of a script: one with a check's name, or one of a folder of tests."""
    folder, _, name = path.removeprefix("./").rpartition("/")
    if (is_run_by_name and "/" not in path) or _OTHER_TASK_PART.search(name):
        return None
    match = _SCRIPT_NAME.fullmatch(name)
    if match is not None:
        kind: CheckKind = "test" if match["test"] else "lint" if match["lint"] else "all"
        return CheckCommand(path.removeprefix("./"), kind, is_task=True)
    is_test = _TEST_FILE.fullmatch(name) is not None and (
        _TEST_FOLDERS & set(folder.split("/")) or name.startswith("test_") or re.search(r"[_.-](?:test|spec)\.", name)
    )
    return CheckCommand(path.removeprefix("./"), "test") if is_test else None


def _read_task(name: str, words: Sequence[str]) -> CheckCommand | None:
    """Return the check that a runner's task is, by the task's name."""
    before = TASK_RUNNER_WORDS.get(name)
    if before is None:
        return None
    rest = [word for word in words if not word.startswith(("-", "+")) and not _ASSIGNMENT.match(word)]
    if before:
        at = next((n for n, word in enumerate(rest) if word in before), -1 if "" in before else None)
        rest = rest[at + 1 : at + 2] if at is not None else []
    for task in rest:
        match = _TASK_NAME.fullmatch(task)
        if match is None or _OTHER_TASK_PART.search(task):
            continue
        kind: CheckKind = next(kind for kind in ("test", "lint", "types", "build", "all") if match[kind])
        family = "npm" if name in {"pnpm", "yarn", "bun"} else name
        narrow = tuple(filter(None, (match["rest"].lstrip(":._/-"),)))
        return CheckCommand(f"{family} {kind}", kind, narrow, is_task=True)
    return None


def _make_check(program: str, kind: CheckKind, words: Sequence[str]) -> CheckCommand:
    """Return the check of a program with the targets and filters among its words."""
    targets: list[str] = []
    filters: list[str] = []
    previous = ""
    own, attached = PROGRAM_FILTER_OPTIONS.get(program, frozenset()), ATTACHED_VALUE_OPTIONS.get(program, frozenset())
    for word in words:
        option = word.partition("=")[0]
        if previous in FILTER_OPTIONS or previous in own:
            filters.append(f"{previous} {word}")
        elif word.startswith("-"):
            is_filter = option in NARROWING_FLAGS or ("=" in word and (option in FILTER_OPTIONS or option in own))
            filters += [word] if is_filter or (len(word) > 2 and word[:2] in attached) else []
        elif previous not in VALUE_OPTIONS and not word.isdigit():
            targets.append(word.removeprefix("./").rstrip("/") or ".")
        previous = word if word.startswith("-") and word[:2] not in attached - {word} else ""
    is_all = any(word in WHOLE_PROJECT_TARGETS for word in targets)
    name = CANONICAL_NAMES.get(program, program)
    return CheckCommand(name, kind, () if is_all else tuple(targets), tuple(filters), name in TASK_PROGRAMS)


def _is_below(target: str, other: str) -> bool:
    return target == other or target.startswith((f"{other}/", f"{other}::", f"{other}["))
