"""Describes what was moved away from the git directories that commands made."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from codeloop.kit.small_files import read_start_or_empty

_PATHS_SHOWN = 5
_IGNORE_BYTES = 64 * 1024
# Lines of a `.gitignore` by which git does not show that file itself.
_SELF_PATTERNS = frozenset(
    ("*", "**", "/*", "/**", ".*", "/.*", ".gitignore", "/.gitignore", "**/.gitignore", ".git*")
)
_TOO_MANY_FOLDERS = (
    "There are more folders than are looked through for git at a time: look for `.git` in {} and others before git runs"
    " there. More are looked through after the next command."
)


def describe_moves(
    moves: Mapping[Path, Path | None], unsearched: str, roots: Iterable[Path]
) -> str:
    """Describe the files that were moved away, and the folder that was not searched,
    for model and user.
    """
    new_paths = {path: new_path for path, new_path in moves.items() if new_path is not None}
    warning = unsearched and _TOO_MANY_FOLDERS.format(_shorten(Path(unsearched), roots))
    if not new_paths:
        return warning
    paths_shown = ", ".join(_shorten(path, roots) for path in list(new_paths)[:_PATHS_SHOWN])
    paths_shown += " ..." if len(new_paths) > _PATHS_SHOWN else ""
    folder = next(iter(new_paths.values())).parent
    note = f"Set aside, since git would run or follow it outside the sandbox: {paths_shown}. It is kept in {folder}."
    return f"{note} {warning}".rstrip()


def describe_self_ignoring(files: Iterable[str], roots: Iterable[Path]) -> str:
    """Describe the `.gitignore` files that hide themselves with what they name,
    but for those of caches; "".
    """
    paths = [Path(each) for each in sorted(files)]
    hiding = [
        _shorten(path, roots)
        for path in paths
        if not _is_cache(path.parent.name) and _ignores_itself(path)
    ]
    if not hiding:
        return ""
    shown = ", ".join(hiding[:_PATHS_SHOWN]) + (" ..." if len(hiding) > _PATHS_SHOWN else "")
    return f"Hidden from git status with what it names: {shown} (`git status --ignored` shows it)."


def _is_cache(name: str) -> bool:
    return name.startswith((".", "__")) and "cache" in name


def _ignores_itself(file: Path) -> bool:
    lines = read_start_or_empty(file, _IGNORE_BYTES).decode("utf-8", "replace").splitlines()
    return (
        not _SELF_PATTERNS.isdisjoint(line.strip() for line in lines) and "!.gitignore" not in lines
    )


def _shorten(path: Path, roots: Iterable[Path]) -> str:
    """Return a path relative to the project; as it is when it lies elsewhere."""
    root = next((root for root in roots if path.is_relative_to(root)), None)
    return str(path.relative_to(root) if root is not None else path)
