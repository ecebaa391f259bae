"""Collects facts about this machine, such as programs and repositories,
for the proof that a line changes nothing.

The proof itself is in the room `shell`, which does not read the disk.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from codeloop.shell.grammar import is_harmless_assignment
from codeloop.shell.proof import GitFacts, MachineFacts, ProgramFacts
from codeloop.workspace.git.discovery import find_repository
from codeloop.workspace.process.running_command import find_shell
from codeloop.workspace.process.search_path import SearchPath, find_loading_variable
from codeloop.workspace.process.shells import ShellContext
from codeloop.workspace.workspace import Workspace


def gather_facts(
    line: str,
    directory: Path,
    context: ShellContext,
    workspace: Workspace,
    *,
    outside: bool = False,
) -> MachineFacts:
    """Return the facts for a line that runs in a directory,
    with the present state of its session's shell.

    `outside`: the line runs without a sandbox.
    """
    environment = workspace.environment
    roots = tuple(
        dict.fromkeys(os.path.realpath(root) for root in (workspace.root, workspace.scratch))
    )
    path = SearchPath(environment, roots)

    def look_up_program(name: str) -> ProgramFacts:
        location = path.find(name)
        return ProgramFacts(location.path, location.doubt, location.is_shadowable)

    def look_up_repository(folder: str) -> GitFacts:
        known_repository = find_repository(folder, workspace.root, environment)
        return GitFacts(
            known_repository.foreign_reason,
            known_repository.program_reason,
            known_repository.is_below_top,
        )

    return MachineFacts(
        directories=tuple(dict.fromkeys((str(directory), os.path.realpath(directory)))),
        home=environment.get("HOME", ""),
        doubt=_find_doubt(
            line,
            context,
            workspace.shells.list_changed_variables(context, is_unsandboxed=outside),
            roots,
        ),
        find_program=look_up_program,
        find_repository=look_up_repository,
    )


def _find_doubt(
    line: str, context: ShellContext, changed: Mapping[str, str], roots: tuple[str, ...]
) -> str:
    """Return why nothing can be proved about a line in this shell; "": something can."""
    environment = context.environment
    if Path(find_shell(environment)[0]).name != "bash":
        return "there is no bash here, and what another shell makes of it is not known"
    for name, value in changed.items():
        if not is_harmless_assignment(name, value):
            what = name or "the environment"
            return f"{what} was changed by an earlier command (reset: true forgets it)"
    if not environment.get("HOME", "").startswith("/"):
        return "HOME is not set to a folder"
    if name := find_loading_variable(environment, roots):
        return f"{name} has programs load code from the project"
    if not line.isascii() and not _is_utf8(environment):
        return "it has characters outside of ASCII, and the locale is not UTF-8"
    return ""


def _is_utf8(environment: Mapping[str, str]) -> bool:
    """Return whether the shell splits text outside ASCII as the analysis does: it reads UTF-8,
    or plain bytes.
    """
    # The first of these that is set counts.
    locale = (
        environment.get("LC_ALL") or environment.get("LC_CTYPE") or environment.get("LANG") or "C"
    )
    return locale in {"C", "POSIX"} or locale.lower().endswith((".utf-8", ".utf8"))
