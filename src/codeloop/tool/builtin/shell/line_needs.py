"""`LineNeeds`: the permissions that a shell line needs,
for the files that it touches and for its commands.
"""

from collections.abc import Iterable
from pathlib import Path

from codeloop.kit.guarded_paths import is_opened, is_protected, is_secret, needs_confirmation
from codeloop.kit.paths import find_folder
from codeloop.kit.wildcard import ANY_TEXT, make_exact_wildcards
from codeloop.schema.permission import Need, Trait
from codeloop.schema.wire import JSON, replace
from codeloop.shell.analysis import Analysis, make_need
from codeloop.shell.program_row import NOT_KNOWN
from codeloop.shell.program_table import find_row
from codeloop.store.permission_records import WORKDIR_KEY
from codeloop.tool.builtin.shell.touched_files import TouchedFiles
from codeloop.tool.call_session import Judge
from codeloop.tool.files.file_access import list_outside_patterns, make_edit_needs
from codeloop.workspace.files.permission_name import make_permission_name
from codeloop.workspace.sandbox.policy import SandboxGrants
from codeloop.workspace.workspace import Workspace

_EVASION_REASON = (
    "A rule denies paths that it could reach by a link or by what it runs, and no "
    "sandbox keeps it from that."
)
_UNPACKED_REASON = (
    "What it unpacks or copies may be files that decide what runs later, which "
    "can't be known beforehand."
)


class LineNeeds:
    """The permissions that one line needs.

    `directory`: the one that the line runs in. `traits`: added to the permission for the command,
    and to those for reading outside the project.
    """

    def __init__(
        self,
        command: str,
        analysis: Analysis,
        files: TouchedFiles,
        directory: Path,
        traits: tuple[Trait, ...] = (),
    ) -> None:
        self.command = command
        self.analysis = analysis
        self.files = files
        self.directory = directory
        self.traits = traits

    @property
    def is_plain(self) -> bool:
        """Whether all commands of the line only touch the files that their arguments name,
        and none creates a link.
        """
        return all(
            find_row(command.partition(" ")[0]).is_plain for command in self.analysis.commands
        )

    @property
    def _only_looks(self) -> bool:
        """Whether no command of the line can change anything but the files that
        it names for writing.
        """
        is_known = not self.files.may_write and all(map(self._is_looking, self.analysis.commands))
        return self.analysis.is_read_only or is_known

    def _is_looking(self, command: str) -> bool:
        # `git -C d status` is also spelled `git status`.
        words = [
            text.split(" ")[:2] for text in (command, *self.analysis.spellings.get(command, ()))
        ]
        subcommands = [
            find_row(name).subcommands.get(rest[0], NOT_KNOWN) for name, *rest in words if rest
        ]
        return find_row(words[0][0]).is_plain or any(row.is_plain for row in subcommands)

    def list_needs(
        self, workspace: Workspace, judge: Judge, *, must_ask: bool = False
    ) -> list[Need]:
        """Return all needs, in the order in which a question shows them: the
        important ones come first.

        `must_ask`: ask about the command even if the rules allow it.
        """
        file_needs = [*self._list_edit_needs(workspace), *self._list_read_needs(workspace, judge)]
        guarded = [need for need in file_needs if any(map(_is_guarded, need.patterns))]
        plain = [need for need in file_needs if need not in guarded]
        command_need = self._make_command_need(workspace)
        if must_ask:
            metadata = {**command_need.metadata, "reason": _EVASION_REASON}
            command_need = replace(command_need, preset="ask", metadata=metadata)
        return [
            *self._list_other_tree_needs(workspace),
            *self._list_outside_needs(workspace),
            *guarded,
            command_need,
            *plain,
            *self._list_unknown_path_needs(),
        ]

    def make_grants(self, workspace: Workspace) -> SandboxGrants:
        """Return the paths that a sandbox opens for the line once all its needs are granted."""
        named = (*self.files.writes, *self.files.filled_folders)
        writable = [
            path
            for path in named
            if not workspace.contains(path)
            or _is_write_protected(make_permission_name(workspace, path))
        ]
        readable = [
            path for path in self.files.reads if is_secret(make_permission_name(workspace, path))
        ]
        return SandboxGrants(tuple(writable), tuple(readable))

    def _list_other_tree_needs(self, workspace: Workspace) -> Iterable[Need]:
        """Yield the permission to change the other work trees that the line works in:
        it is not to change them.

        It works in one that it enters (`cd`, `git -C`),
        and without a sandbox in one that a program is given.
        """
        if not workspace.other_trees.exist or self._only_looks:
            return
        is_kept = "sandboxed" in self.traits
        only_read = {*self.files.reads, *self.files.files_below} if is_kept else set[Path]()
        paths = [
            path for path in self.files.paths if path not in only_read or path == self.directory
        ]
        names = [str(path) for path in paths if workspace.other_trees.find_tree(path) is not None]
        if names:
            yield Need(permission="edit", patterns=tuple(names), metadata={"command": self.command})

    def _list_outside_needs(self, workspace: Workspace) -> Iterable[Need]:
        """Yield the permissions for folders outside the project: for those that are written to,
        then for others.
        """
        changed = {
            find_folder(path)
            for path in (*self.files.writes, *self.files.filled_folders)
            if not workspace.contains(path)
        }
        named = {
            path: find_folder(path) for path in self.files.paths if not workspace.contains(path)
        }
        for paths, traits in (
            ([path for path, folder in named.items() if folder in changed], ()),
            ([path for path, folder in named.items() if folder not in changed], self.traits),
        ):
            if paths:
                patterns, always = list_outside_patterns(paths)
                shown: JSON = {
                    "command": self.command,
                    "directories": [*dict.fromkeys(str(named[path]) for path in paths)],
                    "patterns": [*patterns],
                }
                yield Need(
                    permission="external_directory",
                    patterns=patterns,
                    always=always,
                    metadata=shown,
                    traits=traits,
                )

    def _list_unknown_path_needs(self) -> Iterable[Need]:
        """Yield the permission for any folder outside the project,
        if the line computes paths when it runs.
        """
        if self.files.is_uncertain:
            shown: JSON = {"command": self.command, "directories": [], "patterns": ["*"]}
            yield Need(
                permission="external_directory",
                patterns=("*",),
                metadata=shown,
                possible=(ANY_TEXT,),
                traits=self.traits,
            )

    def _list_edit_needs(self, workspace: Workspace) -> Iterable[Need]:
        """Yield the permissions for the files that the line changes, or may change."""
        possible = (
            [ANY_TEXT]
            if self.files.may_write
            else _make_patterns_below(workspace, self.files.filled_folders)
        )
        shown: JSON = {"command": self.command}
        yield from make_edit_needs(workspace, self.files.writes, shown, tuple(possible))
        # A sandbox does not let commands change these files.
        if self.files.unpacked and "sandboxed" not in self.traits:
            unpacked = make_edit_needs(
                workspace, self.files.unpacked, {**shown, "reason": _UNPACKED_REASON}
            )
            yield from (replace(need, writes=None) for need in unpacked)

    def _list_read_needs(self, workspace: Workspace, judge: Judge) -> Iterable[Need]:
        """Yield the permission for the files that are read;
        of a folder, for those that a rule does not allow.
        """
        names = [make_permission_name(workspace, path) for path in self.files.reads]
        below = judge(
            "read", [make_permission_name(workspace, path) for path in self.files.files_below]
        )
        # A sandbox hides guarded files, so only denied ones matter in it.
        is_hidden = "sandboxed" in self.traits
        names += [name for name, action in below.items() if action == "deny" or not is_hidden]
        names += judge(
            "read", [make_permission_name(workspace, path) for path in self.files.git_files]
        )
        patterns = tuple(dict.fromkeys(names))
        possible = (ANY_TEXT,) if self.files.may_read else ()
        if patterns or possible:
            yield Need(
                permission="read",
                patterns=patterns,
                always=make_exact_wildcards(patterns),
                metadata={"command": self.command},
                possible=possible,
            )

    def _make_command_need(self, workspace: Workspace) -> Need:
        """Return the permission for the command itself;
        a question shows the directory unless it is the project's.
        """
        need = make_need(self.command, self.analysis)
        is_usual = self.directory == workspace.directory
        metadata = (
            need.metadata if is_usual else {**need.metadata, WORKDIR_KEY: str(self.directory)}
        )
        return replace(need, metadata=metadata, traits=(*need.traits, *self.traits))


def _is_guarded(name: str) -> bool:
    """Return whether a file may hold keys, or decides what runs later."""
    return is_secret(name) or is_protected(name) or needs_confirmation(name)


def _is_write_protected(name: str) -> bool:
    """Return whether the sandbox does not let commands write this file of the project
    unless it is permitted.
    """
    return is_secret(name) or is_protected(name) or is_opened(name)


def _make_patterns_below(workspace: Workspace, folders: Iterable[Path]) -> list[str]:
    """Return patterns for everything below folders, in the form that rules are compared with."""
    names = [make_permission_name(workspace, folder) for folder in folders]
    return [ANY_TEXT if name == "." else f"{name}/{ANY_TEXT}" for name in names]
