"""What the model is told of what the sandbox kept a command from, by what common tools print then."""

from pathlib import Path

import pytest

from codeloop.workspace.sandbox.blocked import ASK_OUTSIDE, blocked
from codeloop.workspace.sandbox.policy import SandboxPolicy

NO_GIT = "fatal: could not read Username for 'https://github.com': terminal prompts disabled"
NO_SSH = "git@github.com: Permission denied (publickey).\nfatal: Could not read from remote repository."
NO_DOCKER = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"


@pytest.fixture
def policy(tmp_path: Path) -> SandboxPolicy:
    """A project, in a home."""
    (tmp_path / "work/.git").mkdir(parents=True)
    (tmp_path / "work/sub").mkdir()
    (tmp_path / "work/.git/config").touch()
    (tmp_path / ".npmrc").touch()
    work = tmp_path / "work"
    return SandboxPolicy((work,), (work / ".git/config",), (), (tmp_path / ".ssh",), (), "hosts", ())


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ("bash: line 1: ~/.npmrc: Read-only file system", "write to ~/.npmrc, outside the project"),
        (
            "error: could not write config file .git/config: Device or resource busy",
            "write to ~/work/.git/config, which",
        ),
        ("cat: ~/.ssh/id_rsa: Permission denied", "read of ~/.ssh/id_rsa, which is hidden"),
        ("error: gpg failed to sign the data\nfatal: failed to write commit object", "signing with your keys"),
        (NO_SSH, "your SSH keys and their agent"),
        (NO_GIT, "your passwords for git"),
        (NO_DOCKER, "the service that runs containers"),
        ("ssh: Could not resolve hostname github.com: Name or service not known", "a direct connection"),
        ("cp: cannot create 'file': No space left on device", ""),
        ("rm: cannot remove 'mnt': Device or resource busy", ""),
    ],
)
@pytest.mark.parametrize("folder", ["work", "work/sub"])
def test_what_tools_print_is_told_as_what_was_blocked(
    tmp_path: Path, policy: SandboxPolicy, folder: str, printed: str, told: str
) -> None:
    notes = blocked(printed, policy, tmp_path / folder, tmp_path, [])
    assert len(notes) == bool(told), notes
    for note in notes:
        assert note.startswith(f"blocked: {told}")
        assert note.endswith(ASK_OUTSIDE)
