"""`CheckCommand`: one check of a line, and whether it checks all that another one does. Pure.

Targets are compared as what they stand for: paths, dotted names, tests of a file, patterns,
whole packages.
"""

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from msgspec import Struct

from codeloop.shell.check_options import (
    CANONICAL_NAMES,
    FILTER_OPTIONS,
    NAME_FILTERS,
    NARROWING_FLAGS,
    TASK_PROGRAMS,
    VALUE_OPTIONS,
    WHOLE_PROJECT_TARGETS,
    CheckKind,
)
from codeloop.shell.options import parse_options
from codeloop.shell.program_row import NOT_KNOWN, ProgramRow
from codeloop.shell.program_table import find_row

# The language of a file of tests that is run itself.
_LANGUAGES = {
    ".py": "python",
    ".rb": "ruby",
    ".sh": "shell",
    ".php": "php",
    **dict.fromkeys((".js", ".mjs", ".cjs", ".ts"), "js"),
}
# In these languages a target is a part of the names of files or tests.
_MATCHES_PARTS = frozenset(("js", "rust"))
# `tests.test_a.Case.test_b`, as unittest names what is `tests/test_a.py::Case::test_b` for pytest.
_DOTTED_NAME = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
# `spec/a_spec.rb:12`
_LINE_NUMBER = r"(\.\w+):(\d+)(?::\d+)?$"
_PATTERN_CHARACTERS = r"[*?{]"
# A pattern that only says how the files of tests are named, as unittest and node have it anyway.
_USUAL_PATTERN = r"['\"]?(?:test_?\*|\*_?test)(?:\.py)?['\"]?"
# Between the names of which a filter picks each: `-k 'a or b'`, `-run 'A|B'`.
_ALTERNATIVES = r"\s+or\s+|\|"


class CheckCommand(Struct, frozen=True):
    """One check of a line: its program with the subcommand,
    and the paths and filters that narrow it.

    Without paths and filters it checks everything. `is_task`: a task of the project's own (`make
    test`), whatever that runs.
    """

    program: str
    kind: CheckKind
    targets: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    is_task: bool = False
    runs_all: bool = False
    """Whether it also runs the project's checks of other kinds: `tox`, `mvn package`."""
    folder: str = ""
    """Where it runs: relative to the session's directory, "" for that itself;
    absolute if it is not below it.
    """
    language: str = ""
    """Of the tests that it runs; "": any, or it runs none."""

    def covers(self, other: "CheckCommand") -> bool:
        """Return whether what the other one checks is checked by this one, too."""
        if not self._may_be_the_same(other) or not all(
            _filter_covers(each, other) for each in self.filters
        ):
            return False
        scopes = [*_list_scopes(self)]
        return all(
            any(_is_below(each, own, by_parts=self.language in _MATCHES_PARTS) for own in scopes)
            for each in _list_scopes(other)
        )

    def _may_be_the_same(self, other: "CheckCommand") -> bool:
        """Return whether the two check in the same way: by one program,
        or one runs whatever the project says.
        """
        # A task that lints may look at the format, too.
        is_lint_task = self.is_task and {self.kind, other.kind} == {"lint", "format"}
        if self.kind not in {other.kind, "all"} and not (self.runs_all or is_lint_task):
            # Whoever tests or lints compiled code builds it first.
            is_built_first = self.kind in {"test", "lint"} and other.kind == "build"
            return (
                is_built_first and self.program.partition(" ")[0] == other.program.partition(" ")[0]
            )
        if self.program == other.program or self.is_task or other.is_task:
            return True
        are_tests = {self.kind, other.kind} <= {"test", "all"}
        return are_tests and (
            self.language == other.language or not (self.language and other.language)
        )


def make_check(program: str, kind: CheckKind, words: Sequence[str]) -> CheckCommand:
    """Return the check of a program with the targets and filters among its words."""
    row = find_program_row(program.partition(" ")[0])
    targets: list[str] = []
    filters: list[str] = []
    folder = ""
    narrowing_options = parse_options(row.narrows)
    filter_options = (FILTER_OPTIONS | narrowing_options.keys()) - {*row.ignores.split()}
    attached_value_options = {
        option for option, each in narrowing_options.items() if each.is_attached
    }
    names: list[str] = []
    option = ""
    # What follows `::` is for the tests themselves.
    for word in itertools.takewhile(lambda word: word != "::", _split_values(words, row)):
        has_attached_value = len(word) > 2 and word[:2] in attached_value_options
        if option in row.locates.split():
            targets.append(_clean_target(word))
        elif option in row.enters.split():
            folder = os.path.normpath(PurePath(folder, word))
        elif option in row.picks.split():
            targets.append(f"**/{_clean_target(word).rpartition('/')[2]}")
        elif option in filter_options:
            if not (option in {"-p", "--pattern"} and re.fullmatch(_USUAL_PATTERN, word)):
                filters.append(f"{option} {word}")
        elif has_attached_value:
            filters.append(f"{word[:2]} {word[2:]}")
        elif word.startswith("-"):
            if word.partition("=")[0] in NARROWING_FLAGS:
                filters.append(word)
        elif not (option in VALUE_OPTIONS or option in row.ignores.split() or word.isdigit()) and (
            targets or names or word not in row.modes.split()
        ):
            names.append(_clean_target(word))
        is_option = word.startswith("-") or word in row.picks.split()
        option = word if is_option and not has_attached_value else ""
    name = CANONICAL_NAMES.get(program, program)
    # Within the part of the project that an option picks, names narrow further.
    (filters if targets and row.picks else targets).extend(names)
    return CheckCommand(
        program=name,
        kind=kind,
        targets=() if any(map(_is_whole, targets)) else tuple(targets),
        filters=tuple(filters),
        is_task=name in TASK_PROGRAMS,
        runs_all=name in {"tox", "nox"} and not (targets or filters),
        folder="" if folder == "." else folder,
        language=row.language,
    )


def _split_values(words: Sequence[str], row: ProgramRow) -> Iterator[str]:
    """Yield the words, an option with an attached value (`--filter=web`) as two
    where it is one that narrows.
    """
    known = FILTER_OPTIONS | parse_options(row.narrows).keys()
    known |= {*row.locates.split(), *row.enters.split(), *row.picks.split(), *row.ignores.split()}
    for word in words:
        option, equals, value = word.partition("=")
        if equals and option.startswith("-") and option in known:
            yield option
            yield value
        else:
            yield word


def make_file_check(path: str) -> CheckCommand:
    """Return the check of a file of tests that is run itself."""
    name = path.removeprefix("./")
    return CheckCommand(
        name, "test", targets=(name,), language=_LANGUAGES.get(PurePath(name).suffix, "")
    )


def find_program_row(name: str) -> ProgramRow:
    """Return the row of a program; `python3.11` and `clang-tidy-18` have
    those without the version.
    """
    row = find_row(name)
    return row if row != NOT_KNOWN else find_row(strip_version(name))


def strip_version(name: str) -> str:
    """Return a program's name without the version at its end."""
    return re.sub(r"-?[\d.]+$", "", name)


def _clean_target(word: str) -> str:
    return word.removeprefix("./").rstrip("/") or "."


def _is_whole(target: str) -> bool:
    """Return whether a target stands for all of a project;
    so does a pattern for all files of a folder of tests.
    """
    folder, slash, rest = target.partition("/")
    if target.endswith((".sln", ".slnx")):
        return True
    is_pattern = (
        bool(slash)
        and rest.startswith("**")
        and (folder in WHOLE_PROJECT_TARGETS or folder == "**")
    )
    return is_pattern or target in WHOLE_PROJECT_TARGETS


def _list_scopes(check: CheckCommand) -> Iterator[str]:
    """Yield what a check checks, as paths from the session's directory; "": all of it."""
    # A folder that is not below the session's is above it.
    folder = "" if check.folder.startswith("/") else check.folder
    if not check.targets:
        yield folder
    for target in check.targets:
        path = _to_path(target, check.language)
        is_apart = path.startswith(("/", "**/"))
        yield (
            path
            if is_apart or not folder
            else os.path.normpath(f"{folder}/{path}") + "/." * path.endswith("/.")
        )


def _to_path(target: str, language: str) -> str:
    """Return a target as a path: its parts, down to a test within a file, between slashes."""
    if language == "python":
        if re.fullmatch(_DOTTED_NAME, target) and not target.endswith(".py"):
            return target.replace(".", "/")
        return re.sub(r"\.py(?=::|$)", "", target).replace("::", "/")
    if language == "go":
        # `./pkg/...` has all below it, `./pkg` only itself.
        # A package may also be named from the module on.
        path = target.removesuffix("/...") if target.endswith("/...") else f"{target}/."
        return (
            f"**/{path.removesuffix('/.').rpartition('/')[2]}"
            if "." in path.partition("/")[0][1:]
            else path
        )
    if language == "bazel":
        return target.removeprefix("//").removesuffix("/...").replace(":", "/")
    if language == "jvm":
        # `:core:test`
        return "/".join(part for part in target.split(":") if part)
    return re.sub(_LINE_NUMBER, r"\1/\2", target).replace("::", "/").replace("[", "/[")


def _is_below(target: str, other: str, *, by_parts: bool) -> bool:
    """Return whether a target is the other or a part of it: a file of a folder, a test of a file,
    a case of a test.
    """
    if not other or target == other or target.startswith((f"{other}/", f"{other}[")):
        return True
    if target.startswith("**/") and f"/{other.removesuffix('/.')}".endswith(target[2:]):
        return True
    if other.startswith("**/") and f"/{other[3:]}/" in f"/{target.removeprefix('**/')}/":
        return True
    if re.search(_PATTERN_CHARACTERS, other) and not other.startswith("**/"):
        pattern = (
            re.escape(other)
            .replace(r"\*\*/", "(?:.*/)?")
            .replace(r"\*", "[^/]*")
            .replace(r"\?", "[^/]")
        )
        pattern = re.sub(r"\\{.*?\\}", ".*", pattern)
        return re.fullmatch(rf"{pattern}(?:/.*)?", target) is not None
    return by_parts and other in target


def _filter_covers(own_filter: str, other: CheckCommand) -> bool:
    """Return whether a filter of one check lets all through that another one checks."""
    if own_filter in other.filters:
        return True
    option, _, value = own_filter.partition(" ")
    value = value.strip("'\"()^$").lower()
    if option not in NAME_FILTERS or re.search(r"\bnot\b|!", value):
        return False
    names = [part.strip(" '\"()^$") for part in re.split(_ALTERNATIVES, value)]
    texts = [each for each in other.filters if each.startswith(f"{option} ")] or other.targets
    return bool(texts) and all(
        any(name and name in text.lower() for name in names) for text in texts
    )
