"""The permissions that a shell line needs: for the folders and files that it touches, then for its commands."""

from collections.abc import Iterable
from pathlib import Path

from codeloop.kit.guarded_paths import is_confirmed, is_protected, is_secret
from codeloop.kit.wildcard import ANY, escape_names
from codeloop.permission.shell.analyse import Analysis, make_need
from codeloop.schema.permission import Need, Trait
from codeloop.schema.wire import JSON, replace
from codeloop.store.permission_records import WORKDIR
from codeloop.tool.builtin.shell.touched_files import TouchedFiles
from codeloop.tool.call_session import Judge
from codeloop.tool.file_access import edit_needs, folder_of, permission_name
from codeloop.workspace.sandbox.policy import SandboxGrants
from codeloop.workspace.workspace import Workspace

_PLAIN = frozenset(
    (
        *("basename", "cat", "cd", "chmod", "cmp", "cut", "diff", "dirname", "du", "echo", "exit", "false", "file"),
        *("grep", "head", "ls", "mkdir", "nl", "printf", "pwd", "rm", "rmdir", "sleep", "sort", "stat", "tail", "tee"),
        *("test", "[", "touch", "tr", "true", "uniq", "wc"),
    )
)
"""Programs that do no more than their arguments say, and create no link."""
_EVADES = "A rule denies paths that it could reach by a link or by what it runs, and no sandbox keeps it from that."
_UNSEEN = "What it unpacks or copies may be files that decide what runs later, which can't be known beforehand."


class LineNeeds:
    """The needs of one line. `directory`: where it runs; `traits`: the certain traits of every need."""

    def __init__(
        self, command: str, analysis: Analysis, files: TouchedFiles, directory: Path, traits: tuple[Trait, ...] = ()
    ) -> None:
        self.command = command
        self.analysis = analysis
        self.files = files
        self.directory = directory
        self.traits = traits

    @property
    def is_plain(self) -> bool:
        """Whether all its commands do no more than their arguments say, and none creates a link."""
        return all(command.partition(" ")[0] in _PLAIN for command in self.analysis.commands)

    def all(self, workspace: Workspace, judge: Judge, *, is_asked: bool = False) -> list[Need]:
        """Return the needs in the order of a question: outside folders, guarded files, the command.

        `is_asked`: ask about the command even if the rules allow it.
        """
        files = [*self._edits(workspace), *self._reads(workspace, judge)]
        guarded = [need for need in files if any(map(_is_guarded, need.patterns))]
        plain = [need for need in files if need not in guarded]
        run = self._run(workspace)
        run = replace(run, hooked="ask", metadata={**run.metadata, "reason": _EVADES}) if is_asked else run
        return [*self._outside(workspace), *guarded, run, *plain, *self._anywhere()]

    def grants(self, workspace: Workspace) -> SandboxGrants:
        """Return the paths that a sandbox opens for the line once all its needs are granted."""
        named = (*self.files.writes, *self.files.fills)
        writable = [
            path for path in named if not workspace.contains(path) or _is_kept(permission_name(workspace, path))
        ]
        readable = [path for path in self.files.reads if is_secret(permission_name(workspace, path))]
        return SandboxGrants(tuple(writable), tuple(readable))

    def _outside(self, workspace: Workspace) -> Iterable[Need]:
        """Yield the permission for folders outside: those written to, then those only read."""
        changed = {folder_of(path) for path in (*self.files.writes, *self.files.fills) if not workspace.contains(path)}
        named = dict.fromkeys(folder_of(path) for path in self.files.named if not workspace.contains(path))
        for folders, traits in (
            ([folder for folder in named if folder in changed], ()),
            ([folder for folder in named if folder not in changed], self.traits),
        ):
            if folders:
                patterns = tuple(str(folder / "*") for folder in folders)
                shown: JSON = {"command": self.command, "directories": [*map(str, folders)], "patterns": [*patterns]}
                always = patterns if escape_names([*map(str, folders)]) else ()
                yield Need(
                    permission="external_directory", patterns=patterns, always=always, metadata=shown, traits=traits
                )

    def _anywhere(self) -> Iterable[Need]:
        """Yield the permission for paths that are only known when the line runs."""
        if self.files.is_uncertain:
            shown: JSON = {"command": self.command, "directories": [], "patterns": ["*"]}
            yield Need(
                permission="external_directory", patterns=("*",), metadata=shown, possible=(ANY,), traits=self.traits
            )

    def _edits(self, workspace: Workspace) -> Iterable[Need]:
        possible = [ANY] if self.files.may_write else _make_patterns_below(workspace, self.files.fills)
        shown: JSON = {"command": self.command}
        yield from edit_needs(workspace, self.files.writes, shown, tuple(possible))
        if self.files.unseen and "sandboxed" not in self.traits:  # a sandbox keeps these as they are
            unseen = edit_needs(workspace, self.files.unseen, {**shown, "reason": _UNSEEN})
            yield from (replace(need, writes=None) for need in unseen)

    def _reads(self, workspace: Workspace, judge: Judge) -> Iterable[Need]:
        """Yield the permission for the files that are read; of a folder, for those that a rule does not allow."""
        names = [permission_name(workspace, path) for path in self.files.reads]
        below = judge("read", [permission_name(workspace, path) for path in self.files.below])
        is_hidden = "sandboxed" in self.traits  # guarded files can't be read there
        names += [name for name, action in below.items() if action == "deny" or not is_hidden]
        names += judge("read", [permission_name(workspace, path) for path in self.files.objects])
        patterns = tuple(dict.fromkeys(names))
        possible = (ANY,) if self.files.may_read else ()
        if patterns or possible:
            yield Need(
                permission="read",
                patterns=patterns,
                always=escape_names(patterns),
                metadata={"command": self.command},
                possible=possible,
            )

    def _run(self, workspace: Workspace) -> Need:
        need = make_need(self.command, self.analysis)
        is_home = self.directory == workspace.directory
        metadata = need.metadata if is_home else {**need.metadata, WORKDIR: str(self.directory)}
        return replace(need, metadata=metadata, traits=(*need.traits, *self.traits))


def _is_guarded(name: str) -> bool:
    return is_secret(name) or is_protected(name) or is_confirmed(name)


def _is_kept(name: str) -> bool:
    """Return whether a sandbox keeps a file of the project from being written."""
    return is_secret(name) or is_protected(name)


def _make_patterns_below(workspace: Workspace, folders: Iterable[Path]) -> list[str]:
    """Return patterns for everything below folders, in the form that rules are compared with."""
    names = [permission_name(workspace, folder) for folder in folders]
    return [ANY if name == "." else f"{name}/{ANY}" for name in names]
