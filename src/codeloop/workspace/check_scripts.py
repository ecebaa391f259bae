"""What a project's scripts and recipes run: whether that only checks, and with which programs.
Nothing is run. Pure.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from codeloop.kit.text.patterns import compile_once
from codeloop.shell.check_commands import find_checks
from codeloop.shell.check_options import CheckKind
from codeloop.shell.check_scope import CheckCommand
from codeloop.shell.line_steps import split_line
from codeloop.shell.program_row import NOT_KNOWN
from codeloop.shell.program_table import find_row

# Words of lines that change files, make releases or never end.
_EFFECTS = (
    r"(?x)(?:^|[\s'\"(@-])(?:"
    r"-{1,2}(?:fix(?:-only)?|write|apply|in-place|auto-?correct(?:-all)?|update-?snapshots?)\b"
    r"|(?:--)?watch(?:All)?\b(?!=false)|nodemon\b|\S+[:_-](?:fix|write|watch)\b"
    r"|(?:gofmt|goimports|gofumpt|shfmt|prettier|clang-format)\s(?:\S+\s){0,5}?-[wi]\b"
    r"|rubocop\s(?:\S+\s){0,5}?-[aA]\b"
    r"|(?:npm|pnpm|yarn|cargo|poetry|uv|hatch|flit|mvn|\S*gradlew?|gem|hex)\s(?:publish|push|deploy)\b"
    r"|(?:pre-commit|prek|lefthook)\srun\b"
    r"|twine\supload|docker\spush|goreleaser|semantic-release|git\s(?:push|commit|tag)\b"
    r")"
)
_QUOTES = r"[\"',()\[\]\s]+"
# Formatters, which change files unless an option says that they only look.
_FORMATTER = (
    r"(?:^|[\s@(])(?:black|isort|ormolu|rustfmt|(?:cargo|deno|zig|terraform|go) fmt"
    r"|(?:ruff|mix|dart|dotnet) format)(?=\s|$)"
)
_LOOKING = r"--?(?:check\S*|diff|dry-run|verify-no-changes|set-exit-if-changed|mode)\b|\s-[cdl]\b"
# Words of commands that install something or take it from elsewhere.
_OTHER_WORDS = frozenset(
    ("sudo", "install", "add", "upgrade", "update", "sync", "download", "fetch")
)
# The names of recipes that a recipe runs first.
_CHANGING_RECIPES = r"[:\s](?:fmt|format|fix|watch|publish|release|deploy)(?=\s|$)"
# A word that can be shown to a model: it neither ends a line nor says anything.
_PLAIN_WORD = r"(?a)[\w./:=@%+,*#~^-]{1,60}"
_MAX_WORDS = 12
_MAX_CHARS = 90
# `$(PYTHON) -m pytest`, `${PREFIX}mypy`.
_VARIABLE = r"(?a)\$(?:\(\w+\)|\{[^{}]*\}|\w+)"


class WrittenCommand(NamedTuple):
    """A check as a script or an instruction has it, in words that are safe to show.

    `program`: what runs it, as the table of programs knows it: `cargo test`, `make lint`.
    `is_part`: whether it checks only what it picks by a name, or of the tests those of a path.
    """

    text: str
    kind: CheckKind
    program: str
    targets: tuple[str, ...]
    is_part: bool


def only_checks(script: Sequence[str]) -> bool:
    """Return whether the lines of a recipe or script change no file, release nothing and end.

    A line that begins with a colon has the names of what a recipe runs first.
    """
    for raw_line in script:
        # `session.run("black", ".")`
        line = re.sub(_QUOTES, " ", raw_line)
        if compile_once(_EFFECTS).search(line) or (
            line.startswith(":") and re.search(_CHANGING_RECIPES, line)
        ):
            return False
        if compile_once(_FORMATTER).search(line) and not compile_once(_LOOKING).search(line):
            return False
    return True


def list_script_checks(script: Sequence[str]) -> list[CheckCommand]:
    """Return the checks that the lines of a script run with known programs, without tasks."""
    lines = (re.sub(_VARIABLE, "", line.lstrip(" \t@+-")) for line in script)
    checks = (check for line in lines for check in find_checks(line) if not check.is_task)
    return [check for check in checks if find_row(check.program.partition(" ")[0]) != NOT_KNOWN]


def list_written_commands(lines: Sequence[str]) -> Iterator[WrittenCommand]:
    """Yield the checks that lines run in the folder where they begin.

    Lines with variables, and those behind a `cd`, are passed over: what they do is not certain.
    """
    for raw_line in lines:
        line = raw_line.lstrip(" \t@+-")
        if not only_checks([" " + line]):
            continue
        for words, _ in split_line(line):
            if words[:1] in (["cd"], ["pushd"]):
                return
            command = _read_words(words)
            if command is not None:
                yield command


def _read_words(words: Sequence[str]) -> WrittenCommand | None:
    text = shlex.join(words)
    if (
        not words
        or not _OTHER_WORDS.isdisjoint(words)
        or len(words) > _MAX_WORDS
        or len(text) > _MAX_CHARS
        or not all(re.fullmatch(_PLAIN_WORD, word) for word in words)
    ):
        return None
    checks = find_checks(text)
    if len(checks) != 1 or checks[0].folder:
        return None
    check = checks[0]
    is_script = check.is_task and "/" in words[0]
    is_part = (
        bool(check.filters)
        or (check.kind == "test" and bool(check.targets))
        or (is_script and len(words) > 1)
        # A variant of a build matrix.
        or (check.language == "jvm" and any(word.startswith("-D") for word in words))
    )
    return WrittenCommand(text, check.kind, check.program, check.targets, is_part)
