"""The work trees in which commands run: their repositories, which are watched, and the policies
that protect these.
"""

import asyncio
import os
from pathlib import Path

from codeloop.schema.config import SandboxConfig
from codeloop.workspace.git.planted.early_cleaning import EarlyCleaning
from codeloop.workspace.git.planted.quarantine import locate_quarantine
from codeloop.workspace.git.planted.recovery import RunningMark, locate_marks, take_recovered
from codeloop.workspace.git.planted.repositories import ProjectRepositories
from codeloop.workspace.sandbox.policy import PolicyInput, PolicyMaker, SandboxGrants, SandboxPolicy
from codeloop.workspace.sandbox.process_launcher import ProcessLauncher
from codeloop.workspace.sandbox.sandbox import Sandbox


class ScannedWorkTrees:
    """The work trees of one project's shells, as `scan` found them.
    Call `end_cleaning` before their launcher is closed, and `close` afterwards.
    """

    def __init__(self, launcher: ProcessLauncher) -> None:
        self.recovered: list[str] = []
        """What codeloop left when it was killed, to be told with the next command."""
        self._launcher = launcher
        self._policy_makers: dict[tuple[Path, Path], PolicyMaker] = {}
        self._repositories: dict[Path, ProjectRepositories] = {}
        self._early_cleaning: dict[ProjectRepositories, EarlyCleaning] = {}

    async def scan(self, policy_input: PolicyInput, config: SandboxConfig) -> None:
        """Scan a work tree before a command, in a thread: for repositories,
        and the first time also for secrets.

        Policies that are made later protect them.
        """
        policy_maker = self._find_policy_maker(policy_input, config)
        if not policy_maker.is_prepared:
            await asyncio.to_thread(policy_maker.prepare)
        root, directory = (
            Path(os.path.realpath(path)) for path in (policy_input.root, policy_input.directory)
        )
        if root not in self._repositories:
            roots = (root,) if directory.is_relative_to(root) else (root, directory)
            project_repositories = ProjectRepositories(
                roots, locate_quarantine(policy_input.scratch), policy_input.environment
            )
            marks = locate_marks(policy_input.scratch)
            self._launcher.marks = self._launcher.marks or marks
            self.recovered += await asyncio.to_thread(take_recovered, marks)
            # As around a command that does nothing: this records what there is.
            await asyncio.to_thread(project_repositories.begin_command)
            await asyncio.to_thread(project_repositories.end_command)
            if self._repositories.setdefault(root, project_repositories) is project_repositories:
                mark = RunningMark(marks, project_repositories, roots, policy_input.environment)
                self._early_cleaning[project_repositories] = EarlyCleaning(
                    project_repositories, mark
                )
        elif not self._repositories[root].try_record_state():
            await asyncio.to_thread(self._repositories[root].record_state)

    def make_policy(
        self, policy_input: PolicyInput, config: SandboxConfig, grants: SandboxGrants
    ) -> SandboxPolicy:
        """Return the sandbox policy of a work tree's commands. Reads the disk."""
        repositories = self._repositories.get(Path(os.path.realpath(policy_input.root)))
        paths_in_repositories = (
            repositories.list_protected_paths() if repositories is not None else ()
        )
        nested = repositories.list_nested_folders() if repositories is not None else ()
        return self._find_policy_maker(policy_input, config).make_policy(
            grants, paths_in_repositories, nested
        )

    def _find_policy_maker(self, policy_input: PolicyInput, config: SandboxConfig) -> PolicyMaker:
        key = (policy_input.root, policy_input.directory)
        policy_maker = self._policy_makers.get(key)
        if policy_maker is None or policy_maker.config != config:
            policy_maker = self._policy_makers[key] = PolicyMaker(policy_input, config)
        return policy_maker

    async def begin_command(self, sandbox: Sandbox) -> ProjectRepositories | None:
        """Record the repositories before a command in a sandbox, and return them;
        None: they were not scanned.
        """
        found = (
            self._repositories[root]
            for root in sandbox.policy.writable
            if root in self._repositories
        )
        project_repositories = next(found, None)
        if project_repositories is not None:
            project_repositories.cover({each.real: each.private for each in sandbox.git.folders})
            if not project_repositories.try_begin_command():
                await asyncio.to_thread(project_repositories.begin_command)
            self._early_cleaning[project_repositories].start()
        return project_repositories

    def end_cleaning(self) -> None:
        """End the cleaning while commands run."""
        for early_cleaning in self._early_cleaning.values():
            early_cleaning.close()

    def close(self) -> None:
        """Stop watching the repositories."""
        for each in self._repositories.values():
            each.close()
