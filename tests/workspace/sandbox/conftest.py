"""A project, a home beside it with secrets,
and commands in each kind of sandbox that works here.
"""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.workspace.process.shells import CommandResult, ShellCommand, ShellContext, Shells
from codeloop.workspace.sandbox.policy import PolicyInput, SandboxGrants
from codeloop.workspace.sandbox.sandbox import Backend, SandboxUnavailable
from codeloop.workspace.sandbox.sandboxes import BACKENDS, Sandboxes
from tests.support.sandbox_support import list_sandbox_params

SECRET = "the-secret-of-this-test"


class Attacked(NamedTuple):
    """A project, a home beside it, and commands in a sandbox of one kind."""

    root: Path
    home: Path
    shells: Shells
    context: ShellContext
    place: PolicyInput
    backend: Backend

    async def run(self, text: str, grants: SandboxGrants | None = None) -> CommandResult:
        wanted = SandboxConfig(network="off")
        policy = self.shells.make_policy(self.place, wanted, grants or SandboxGrants())
        return await self.shells.run(
            self.context, ShellCommand(text, 120, None, policy), lambda _: None
        )


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new repository's folder, to be copied: git itself takes three processes for it."""
    folder = tmp_path_factory.mktemp("repository")
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    for words in (
        ["init", "-q"],
        ["config", "user.email", "a@example.com"],
        ["config", "user.name", "A"],
    ):
        subprocess.run(["git", *words], cwd=folder, check=True, env=environment)
    return folder / ".git"


@pytest.fixture(params=list_sandbox_params(*BACKENDS))
async def it(
    request: pytest.FixtureRequest, tmp_path: Path, repository: Path
) -> AsyncIterator[Attacked]:
    root, home = tmp_path / "work", tmp_path / "home"
    own = home / ".local/share/codeloop"
    for folder in (root, home / ".ssh", own / "tool-output", tmp_path / "elsewhere"):
        folder.mkdir(parents=True)
    (home / ".ssh/id_ed25519").write_text(SECRET)
    (own / "auth.json").write_text(SECRET)
    (home / ".bashrc").write_text("kept")
    environment = {
        "PATH": os.defpath + ":/usr/local/bin:/usr/sbin",
        "HOME": str(home),
        "LANG": "C.UTF-8",
    }
    shutil.copytree(repository, root / ".git")
    shells = Shells()
    shells.sandboxes = Sandboxes(shells.launcher, (request.param,))
    place = PolicyInput(root, root, own / "tool-output", environment, (own,))
    made = Attacked(
        root,
        home,
        shells,
        ShellContext("ses_1", root, environment, own / "tool-output"),
        place,
        request.param,
    )
    try:
        await made.run("true")
    except SandboxUnavailable as error:
        await shells.close()
        pytest.skip(str(error))
    yield made
    await shells.close()
