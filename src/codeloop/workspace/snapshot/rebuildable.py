"""Folders whose content is made by a program, such as `node_modules`: snapshots
leave most of them out.
"""

from codeloop.kit.paths import join_relative
from codeloop.workspace.git.ignore_patterns import is_ignored
from codeloop.workspace.snapshot.stat_cache import StatCache

# Folders of rebuildable content: snapshots leave them out where git ignores them.
_REBUILDABLE_NAMES = frozenset((
    ".angular", ".bundle", ".cache", ".dart_tool", ".docusaurus", ".eggs", ".gradle", ".hypothesis", ".mypy_cache",
    ".next", ".nox", ".npm", ".nuxt", ".output", ".parcel-cache", ".pnpm-store", ".pytest_cache", ".ruff_cache",
    ".stack-work", ".svelte-kit", ".terraform", ".tox", ".turbo", ".venv", ".vite", ".zig-cache", "Carthage",
    "DerivedData", "Pods", "__pycache__", "_build", "bower_components", "build", "cmake-build-debug",
    "cmake-build-release", "coverage", "dist", "dist-newstyle", "elm-stuff", "htmlcov", "jspm_packages",
    "node_modules", "target", "vendor", "venv", "zig-cache", "zig-out",
))  # fmt: skip
# Folders of generated content: left out, except tracked files, even if no `.gitignore` names them.
GENERATED_NAMES = _REBUILDABLE_NAMES - {
    "Carthage",
    "Pods",
    "_build",
    "build",
    "coverage",
    "dist",
    "target",
    "vendor",
}


def is_omitted_build(path: str, cache: StatCache) -> bool:
    """Return whether snapshots leave a path out: it is, or is below,
    a rebuildable folder that git ignores.

    A generated one is left out in any case, and so is one below a folder that was not scanned yet,
    whose rules are not known.
    """
    if not is_rebuildable(path):
        return False
    if not GENERATED_NAMES.isdisjoint(path.split("/")):
        return True
    parent = ""
    for name in path.split("/"):
        subpath, folder = join_relative(parent, name), cache.folders.get(parent)
        if (
            folder is None
            or folder.is_ignored
            or is_ignored(folder.ignore_rules, subpath, name, is_folder=True)
        ):
            return True
        parent = subpath
    return False


def is_rebuildable(path: str) -> bool:
    """Return whether a relative path is a rebuildable folder, or below one."""
    return not _REBUILDABLE_NAMES.isdisjoint(path.split("/"))
