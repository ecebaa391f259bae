"""The paths that simple commands name, for the question about directories outside the workspace."""

import re
from collections.abc import Iterable, Sequence
from posixpath import join

from codeloop.permission.shell.command import Simple
from codeloop.permission.shell.words import Word

_FILES = """
. cat cd chgrp chmod chown cp dd diff du file find head install less ln ls mkdir mkfifo mktemp more mv patch pushd
readlink realpath rm rmdir rsync shred source stat tac tail tar tee touch tree truncate unlink unzip wc zip
"""
_PATTERNS = "ag awk egrep fgrep gawk grep jq perl rg sed tr yq"
_NO_FILES = "[ : alias echo export expr kill let printf read seq set sleep test true type unset"
FILE_COMMANDS = frozenset(_FILES.split())
PATTERN_FIRST = frozenset(_PATTERNS.split())
NO_PATHS = frozenset(_NO_FILES.split())
PATH_OPTIONS = frozenset({"-C", "--directory", "--git-dir", "--work-tree", "--output", "-t", "--target-directory"})
HARMLESS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty", "/dev/zero", "/dev/urandom"})
MOST_PLACES = 8


def named_paths(commands: Iterable[Simple]) -> tuple[str, ...]:
    """Return the paths in the order of the line, `cd` in it followed; absolute, beginning with `~`, or relative."""
    places: list[str] = [""]
    paths: dict[str, None] = {}
    for command in commands:
        found = [*_of_redirects(command), *_of_words(command.words)]
        for path in found:
            for place in places:
                paths[_joined(place, path)] = None
        target = _directory(command.words)
        if target is not None:
            moved = [_joined(place, target) for place in places]
            places = moved if command.is_plain_step else list(dict.fromkeys([*places, *moved]))[:MOST_PLACES]
    return tuple(paths)


def _joined(place: str, path: str) -> str:
    """Put a path behind the place it is seen from. `..` stays: what it means depends on links before it."""
    whole = path if path.startswith(("/", "~")) or not place else join(place, path)
    return whole.rstrip("/") or "/"


def _directory(words: Sequence[Word]) -> str | None:
    if words[0].value not in {"cd", "pushd"}:
        return None
    target = next((word for word in words[1:] if not re.match(r"-\w|--$|-$", word.value)), None)
    return (target.path or None) if target else "~"


def _of_redirects(command: Simple) -> list[str]:
    return [
        redirect.target.path
        for redirect in command.redirects
        if redirect.is_file and not redirect.operator.startswith("<<") and _is_path(redirect.target.path)
    ]


def _is_path(text: str) -> bool:
    return bool(text) and text not in HARMLESS and "\n" not in text and "://" not in text


def _of_words(words: Sequence[Word]) -> list[str]:
    name = words[0].value
    rest = words[1:]
    if name in NO_PATHS:
        return []
    if name in PATTERN_FIRST:
        first = next((i for i, word in enumerate(rest) if not word.value.startswith("-")), len(rest))
        rest = [*rest[:first], *rest[first + 1 :]]
    if name == "find":
        end = next((i for i, word in enumerate(rest) if re.match(r"[-(!]", word.value)), len(rest))
        rest = rest[:end]
    is_about_files = name in FILE_COMMANDS
    found: list[str] = []
    is_operand_only = False
    takes_path = False
    for word in rest:
        path = word.path
        if word.value == "--" and not is_operand_only:
            is_operand_only = True
        elif path.startswith("-") and not is_operand_only:
            takes_path = path in PATH_OPTIONS
            found += _in_option(path)
        elif takes_path or is_about_files or _looks_like_path(path):
            takes_path = False
            found.append(path)
    return [path for path in found if _is_path(path)]


def _in_option(option: str) -> list[str]:
    """`--output=/x` and `-I/x` name a path; `-x` does not."""
    value = option.split("=", 1)[1] if "=" in option else option[2:]
    return [value] if _looks_like_path(value) else []


def _looks_like_path(text: str) -> bool:
    if text in {"..", "~"} or text.startswith(("~/", "../", "./")):
        return True
    return "/" in text and not re.search(r"\s", text)
