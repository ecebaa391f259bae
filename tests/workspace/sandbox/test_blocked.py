"""What the model is told of what the sandbox kept a command from, by what common tools print then."""

import socket
from pathlib import Path

import pytest

from codeloop.schema.wire import replace
from codeloop.workspace.sandbox.blocked import ASK_OUTSIDE, blocked
from codeloop.workspace.sandbox.policy import SandboxPolicy

NO_GIT = "fatal: could not read Username for 'https://github.com': terminal prompts disabled"
NO_SSH = "git@github.com: Permission denied (publickey).\nfatal: Could not read from remote repository."
NO_DOCKER = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"


@pytest.fixture
def policy(tmp_path: Path) -> SandboxPolicy:
    """A project, in a home."""
    (tmp_path / "project/.git").mkdir(parents=True)
    (tmp_path / "project/sub").mkdir()
    (tmp_path / "project/.git/config").touch()
    (tmp_path / ".npmrc").touch()
    project = tmp_path / "project"
    return SandboxPolicy((project,), (project / ".git/config",), (), (tmp_path / ".ssh",), (), "hosts", ())


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ("bash: line 1: ~/.npmrc: Read-only file system", "write to ~/.npmrc, outside the project"),
        (
            "error: could not write config file .git/config: Device or resource busy",
            "write to ~/project/.git/config, which",
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
@pytest.mark.parametrize("folder", ["project", "project/sub"])
def test_what_tools_print_is_told_as_what_was_blocked(
    tmp_path: Path, policy: SandboxPolicy, folder: str, printed: str, told: str
) -> None:
    notes = blocked(printed, policy, tmp_path / folder, tmp_path, [])
    assert len(notes) == bool(told), notes
    for note in notes:
        assert note.startswith(f"blocked: {told}")
        assert note.endswith(ASK_OUTSIDE)


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="which ports are served can't be seen here")
@pytest.mark.parametrize(
    "printed",
    [
        "curl: (7) Failed to connect to localhost port {} after 0 ms: Couldn't connect to server",
        'connection to server at "localhost" (127.0.0.1), port {} failed: Connection refused',
        "Error: connect ECONNREFUSED 127.0.0.1:{}",
        "dial tcp [::1]:{}: connect: connection refused",
        "bash: /dev/tcp/127.0.0.1/{}: Connection refused",
        "Connecting to localhost (localhost)|127.0.0.1|:{}... failed: Connection refused.",
    ],
)
def test_a_service_of_this_machine_is_told_as_blocked_if_it_is_there(
    tmp_path: Path, policy: SandboxPolicy, printed: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        line = printed.format(port)
        for network in ("off", "hosts"):
            (note,) = blocked(line, replace(policy, network=network), tmp_path / "project", tmp_path, [])
            assert note == f"blocked: connection to localhost:{port}, a service outside the sandbox. {ASK_OUTSIDE}"
        for other in (replace(policy, network="on"), replace(policy, hosts=(f"localhost:{port}",))):
            assert blocked(line, other, tmp_path / "project", tmp_path, []) == []
    assert blocked(line, policy, tmp_path / "project", tmp_path, []) == [], "nothing is served there"
