"""Describes what a model would look up first about a project: branch, changes, top-level files,
check commands.

A few files are read, with bounds; nothing is run.
File names are untrusted: they are cut and escaped.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from codeloop.kit.git import find_git_folder
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.limits import FACTS_BYTES
from codeloop.workspace.project_checks import describe_project_checks, list_folder

_MAX_NAMES = 40
# The characters of a file's or branch's name, and of the sentence on missing packages.
_MAX_NAME_CHARS = 40
_MAX_MISSING_CHARS = 300
_MAX_SHOWN_CHANGES = 3
# Names outside of ASCII have up to four bytes a character; the checks must have room, too.
_MAX_GIT_BYTES = FACTS_BYTES.value * 3 // 4
_PACKAGE_LISTS = frozenset(("package.json", "pyproject.toml"))
_UNLISTED_NAMES = frozenset(("node_modules", "__pycache__", "venv", "CVS"))


def describe_project(root: Path, directory: Path, environment: Mapping[str, str]) -> str:
    """Return the facts as lines, at most FACTS_BYTES bytes.
    `root`: the top of the repository's work tree, if any.
    """
    entries = list_folder(directory)
    checks = describe_project_checks(directory, root, entries, environment.get("PATH"))
    if not checks and root != directory:
        checks = describe_project_checks(root, root, list_folder(root), environment.get("PATH"))
    git_line = (
        _describe_git(root, environment)
        if find_git_folder(root) is not None
        else "Git repository: no"
    )
    git_line = _cut_line(git_line, _MAX_GIT_BYTES)
    missing = ""
    if root != directory or any(
        name in _PACKAGE_LISTS or "requirements" in name for name in entries
    ):
        from codeloop.workspace.missing_modules import describe_missing_test_packages

        missing = describe_missing_test_packages(directory, root, environment)
    last_lines = [f"Its own checks: {checks}"] if checks else []
    if missing:
        last_lines.append(one_line(missing, _MAX_MISSING_CHARS))
    last_lines = _cut_lines(last_lines, FACTS_BYTES.value - _count_bytes([git_line]))
    names_line = _list_top_names(entries, FACTS_BYTES.value - _count_bytes([git_line, *last_lines]))
    return "\n".join([git_line, *([names_line] if names_line else []), *last_lines])


def _count_bytes(lines: Iterable[str]) -> int:
    """Return the bytes of lines with their line ends."""
    return sum(len(line.encode()) + 1 for line in lines)


def _cut_lines(lines: list[str], size: int) -> list[str]:
    """Return at most two lines cut to `size` bytes in all;
    the room that one does not need is the other's.
    """
    if not lines or _count_bytes(lines) <= size:
        return lines
    *others, last = lines
    last = _cut_line(last, max(size // (1 + len(others)), size - _count_bytes(others)))
    return [*(_cut_line(line, size - _count_bytes([last])) for line in others), last]


def _cut_line(line: str, size: int) -> str:
    """Return a line of at most `size` bytes with its line end;
    one that is cut ends with an ellipsis.
    """
    if _count_bytes([line]) <= size:
        return line
    # The ellipsis takes three bytes, the line end one.
    return line.encode()[: max(size - 4, 0)].decode(errors="ignore") + "…"


def _list_top_names(entries: Mapping[str, bool], size: int) -> str:
    """Return the names at the top in one line of at most `size` bytes, folders first;
    "" if none fits.
    """
    shown = sorted(
        (not is_folder, name)
        for name, is_folder in entries.items()
        if not name.startswith(".")
        and name not in _UNLISTED_NAMES
        and not name.endswith((".egg-info", ".pyc"))
    )
    line, ending = "Files here: ", " and {} more"
    for count, (is_file, name) in enumerate(shown):
        text = (", " if count else "") + one_line(name, _MAX_NAME_CHARS) + ("" if is_file else "/")
        # There must always be room for the ending.
        if count == _MAX_NAMES or _count_bytes([line + text + ending.format(len(shown))]) > size:
            return line + ending.format(len(shown) - count) if count else ""
        line += text
    return line if shown else ""


def _describe_git(root: Path, environment: Mapping[str, str]) -> str:
    # Imported late: not every project is a repository.
    from codeloop.workspace.git.head import Head
    from codeloop.workspace.git.tree_state import read_tree_state

    branch = Head(root).branch
    head = (
        f"Git: branch {one_line(branch, _MAX_NAME_CHARS)}"
        if branch
        else "Git: no branch is checked out"
    )
    state = read_tree_state(root, environment)
    if state is None:
        return head
    changes = {"staged": state.staged, "unstaged": state.unstaged, "untracked": state.untracked}
    if not any(paths or paths is None for paths in changes.values()):
        return f"{head}, clean"
    # If one kind of change is not known, it is said of the others that there are none.
    is_any_unknown = None in changes.values()
    # One kind of change alone has room for one path more.
    count = (
        _MAX_SHOWN_CHANGES
        if sum(bool(paths) for paths in changes.values()) == 1
        else _MAX_SHOWN_CHANGES - 1
    )
    texts = [
        f"{word}: {_format_paths(paths, count)}"
        for word, paths in changes.items()
        if paths or is_any_unknown
    ]
    return "; ".join((head, *texts))


def _format_paths(paths: list[str] | None, count: int) -> str:
    """Return the first `count` paths, and the number of the others. `paths` None: not known."""
    if not paths:
        return "not known" if paths is None else "none"
    rest = f" and {len(paths) - count} more" if len(paths) > count else ""
    return ", ".join(one_line(path, _MAX_NAME_CHARS) for path in paths[:count]) + rest
