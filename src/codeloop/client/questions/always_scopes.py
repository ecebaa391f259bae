"""What "always" can allow, from narrow to wide,
and which of it is so wide that users are asked twice.
"""

from collections.abc import Sequence
from pathlib import Path

from codeloop.kit.paths import expand_user_path
from codeloop.kit.text.patterns import compile_once
from codeloop.kit.wildcard import make_exact_wildcards
from codeloop.schema.permission import PermissionRequest

_NARROWED_PERMISSIONS = frozenset({"edit", "read"})
"""The permissions for files of the project, of which "always" begins with the
file that is asked about.
"""
_FIRST_WORD_ONLY = r"\A[^ *?]*( )?[*?]"
"""Matches a pattern of which at most the first word is fixed,
such as `git *`: it allows a whole program.
"""


def list_scopes(request: PermissionRequest) -> list[tuple[str, ...]]:
    """Return the choices for "always": of files those, their folders, and all that is offered;
    else only that.
    """
    offered = tuple(request.always)
    names = make_exact_wildcards(request.patterns)
    if request.permission == "external_directory" and offered and names:
        return [names, offered]
    if request.permission not in _NARROWED_PERMISSIONS or offered != ("*",) or not names:
        return [offered] if offered else []
    folders = tuple(
        dict.fromkeys(f"{folder}/*" for name in names if (folder := name.rpartition("/")[0]))
    )
    # A file of the top folder has no narrower folder than everything.
    is_foldered = len(folders) > 0 and all("/" in name for name in names)
    return [names, *([folders] if is_foldered else []), offered]


def is_broad(permission: str, always: Sequence[str]) -> bool:
    """Return whether patterns allow everything of a kind, all that a program can do,
    or a whole home.
    """
    if permission == "external_directory":
        return any(map(_holds_home, always))
    # Of a command, the first word is the program; patterns of other permissions have no such part.
    is_command = permission in {"bash", "sandbox"}
    return any(
        pattern == "*"
        or (is_command and compile_once(_FIRST_WORD_ONLY).search(pattern) is not None)
        for pattern in always
    )


def _holds_home(pattern: str) -> bool:
    """Return whether a pattern of folders outside the project allows the user's whole home,
    or more.
    """
    folder = Path(pattern.removesuffix("*").rstrip("/") or "/")
    return expand_user_path("~").is_relative_to(folder)
