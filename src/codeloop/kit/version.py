"""The version of this installation: the release with the commit that it was built from,
or that is checked out.

The build reads it here too (`pyproject.toml`), so this file imports nothing of ours; nor does it
load anything that `codeloop --version` would wait for.
"""

from io import FileIO

RELEASE = "0.1.0"
"""The number of the next release, for what has to be the same in each of its commits,
such as the HTTP contract.
"""
BUILT_FILE_NAME = "version.txt"
"""The file in the package's folder with the version, in wheels and source archives;
`scripts/build_hook.py` adds it.
"""
PACKAGE_FOLDER = __file__.rpartition("/kit/")[0]
_HEX_DIGITS = frozenset("0123456789abcdef")
# Of a commit's id, in the version.
_SHOWN_DIGITS = 9


def read_version() -> str:
    """Return the version of this installation.

    Examples: `0.1.0+g1a2b3c4d5` of a commit, `0.1.0` of the commit that is tagged `v0.1.0`,
    `0.1.0+unknown` of a copy of the sources without git. It is also a semantic version, whose order
    ignores what comes after `+`.
    """
    if built := _read_file(f"{PACKAGE_FOLDER}/{BUILT_FILE_NAME}"):
        return built.strip()
    git_folder = find_git_folder()
    commit = _read_commit(git_folder) if git_folder else ""
    if not commit:
        return f"{RELEASE}+unknown"
    if _read_reference(_find_shared_folder(git_folder), f"refs/tags/v{RELEASE}") == commit:
        return RELEASE
    return f"{RELEASE}+g{commit[:_SHOWN_DIGITS]}"


def find_git_folder() -> str:
    """Return the git folder of the checkout that the package is used from;
    "": it is not used from one.
    """
    root = PACKAGE_FOLDER.removesuffix("/src/codeloop")
    if root == PACKAGE_FOLDER:
        return ""
    try:
        # A work tree, or a submodule, has a file there.
        with FileIO(f"{root}/.git") as file:
            pointer = file.readall().decode(errors="replace")
    except IsADirectoryError:
        return f"{root}/.git"
    except OSError:
        return ""
    return _join(root, pointer.removeprefix("gitdir:").strip())


def _read_commit(git_folder: str) -> str:
    """Return the id of the commit that is checked out; "": it can't be told."""
    head = _read_file(f"{git_folder}/HEAD").strip()
    if not head.startswith("ref:"):
        return head if _is_commit(head) else ""
    return _read_reference(_find_shared_folder(git_folder), head.removeprefix("ref:").strip())


def _find_shared_folder(git_folder: str) -> str:
    """Return the folder with the branches and tags: a work tree's git folder names it."""
    return _join(git_folder, _read_file(f"{git_folder}/commondir").strip())


def _read_reference(folder: str, name: str) -> str:
    """Return the id of the commit that a branch or a tag names; "": none."""
    if _is_commit(loose := _read_file(f"{folder}/{name}").strip()):
        return loose
    lines = iter(_read_file(f"{folder}/packed-refs").splitlines())
    for line in lines:
        if line.endswith(f" {name}"):
            # The line after an annotated tag has its commit.
            following = next(lines, "")
            commit = following[1:] if following.startswith("^") else line.partition(" ")[0]
            return commit if _is_commit(commit) else ""
    return ""


def _is_commit(text: str) -> bool:
    return len(text) >= 40 and _HEX_DIGITS.issuperset(text)


def _join(folder: str, path: str) -> str:
    return path if path.startswith("/") else f"{folder}/{path}".rstrip("/")


def _read_file(path: str) -> str:
    """Return the text of a file; "": it can't be read."""
    try:
        with FileIO(path) as file:
            return file.readall().decode(errors="replace")
    except OSError:
        return ""


VERSION = read_version()
