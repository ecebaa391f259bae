"""What the model is told of what the sandbox kept a command from,
by what common tools print then.
"""

import os
import socket
from pathlib import Path

import pytest

from codeloop.schema.wire import replace
from codeloop.workspace.sandbox.network.proxy_variables import make_proxy_environment
from codeloop.workspace.sandbox.policy import SandboxPolicy
from codeloop.workspace.sandbox.refusals import (
    ASK_OUTSIDE,
    find_proxy_mention,
    find_refusals,
    find_refused_network,
)
from codeloop.workspace.sandbox.strayed_writes import find_strayed_writes
from tests.workspace.sandbox.conftest import Attacked

NO_GIT = "fatal: could not read Username for 'https://github.com': terminal prompts disabled"
NO_SSH = (
    "git@github.com: Permission denied (publickey).\nfatal: Could not read from remote repository."
)
NO_DOCKER = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"


@pytest.fixture
def policy(tmp_path: Path) -> SandboxPolicy:
    """A project, in a home."""
    (tmp_path / "project/.git").mkdir(parents=True)
    (tmp_path / "project/sub").mkdir()
    (tmp_path / "project/.git/config").touch()
    (tmp_path / ".npmrc").touch()
    project = tmp_path / "project"
    return SandboxPolicy(
        (project,), (project / ".git/config",), (), (tmp_path / ".ssh",), (), "hosts", ()
    )


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ("bash: line 1: ~/.npmrc: Read-only file system", "write to ~/.npmrc, outside the project"),
        (
            "error: could not write config file .git/config: Device or resource busy",
            "write to ~/project/.git/config, which",
        ),
        ("cat: ~/.ssh/id_rsa: Permission denied", "read of ~/.ssh/id_rsa, which is hidden"),
        (
            "error: gpg failed to sign the data\nfatal: failed to write commit object",
            "signing with your keys",
        ),
        (NO_SSH, "your SSH keys and their agent"),
        (NO_GIT, "your passwords for git"),
        (NO_DOCKER, "the service that runs containers"),
        (
            "ssh: Could not resolve hostname github.com: Name or service not known",
            "a direct connection",
        ),
        ("cp: cannot create 'file': No space left on device", ""),
        ("rm: cannot remove 'mnt': Device or resource busy", ""),
    ],
)
@pytest.mark.parametrize("folder", ["project", "project/sub"])
def test_what_tools_print_is_told_as_what_was_blocked(
    tmp_path: Path, policy: SandboxPolicy, folder: str, printed: str, told: str
) -> None:
    notes = find_refusals(printed, 1, policy, tmp_path / folder, tmp_path, [])
    assert len(notes) == bool(told), notes
    for note in notes:
        assert note.startswith(f"blocked: {told}")
        assert note.endswith(ASK_OUTSIDE)


@pytest.mark.parametrize(
    ("command", "printed", "is_told"),
    [
        (
            "pytest tests/test_rc.py",
            "FIXTURE = HERE / 'data/.netrc'\nE   KeyError: 'example.com'",
            True,
        ),
        ("python load.py data/.netrc", "nothing to load", True),
        ("pytest", "E   assert 1 == 2", False),
        ("pytest", "E   no file .netrc.bak, nor my.netrc", False),
        ("pytest", "bad credentials were given", False),
        ("cat tests/credentials", "nothing", True),
    ],
)
def test_a_failure_that_names_a_hidden_file_of_the_project_says_that_it_looks_empty(
    tmp_path: Path, policy: SandboxPolicy, command: str, printed: str, *, is_told: bool
) -> None:
    folder = tmp_path / "project/tests"
    policy = replace(policy, hidden=(folder / "data/.netrc", folder / "credentials"))
    notes = find_refusals(printed, 1, policy, tmp_path / "project", tmp_path, [], command)
    assert ["looks empty" in note for note in notes] == [True] * is_told
    assert not find_refusals(printed, 0, policy, tmp_path / "project", tmp_path, [], command)


@pytest.mark.skipif(
    not Path("/proc/net/tcp").exists(), reason="which ports are served can't be seen here"
)
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
            (note,) = find_refusals(
                line, 1, replace(policy, network=network), tmp_path / "project", tmp_path, []
            )
            assert (
                note
                == f"blocked: connection to localhost:{port}, a service outside the sandbox. {ASK_OUTSIDE}"
            )
        for other in (replace(policy, network="on"), replace(policy, hosts=(f"localhost:{port}",))):
            assert find_refusals(line, 1, other, tmp_path / "project", tmp_path, []) == []
    assert find_refusals(line, 1, policy, tmp_path / "project", tmp_path, []) == [], (
        "nothing is served there"
    )


def test_what_was_written_into_the_home_is_named_wherever_it_lies(tmp_path: Path) -> None:
    (tmp_path / "work/app").mkdir(parents=True)  # where the project is put
    (tmp_path / "old.txt").touch()
    since = max(
        path.stat().st_mtime_ns
        for path in (tmp_path / "old.txt", tmp_path / "work", tmp_path / "work/app")
    )
    (tmp_path / "go/pkg/mod/cache").mkdir(parents=True)
    (tmp_path / "go/pkg/mod/cache/lock").touch()
    assert find_strayed_writes(tmp_path, since) == []
    for name in ("work/notes.txt", "work/new/deep.txt", "top.txt", ".cache/tool", "work/.hidden"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
        os.utime(tmp_path / name, ns=(since + 1, since + 1))
    (note,) = find_strayed_writes(tmp_path, since)
    assert "write to ~/top.txt, ~/work/new/deep.txt, ~/work/notes.txt in the user's home" in note


FAILURES = Path(__file__).with_name("ordinary_failures")
"""What compilers, test runners and package managers print where nothing was refused,
a file a language.
"""


def failures() -> list[pytest.ParameterSet]:
    """Return each sample with its language and title."""
    found: list[pytest.ParameterSet] = []
    for file in sorted(FAILURES.glob("*.txt")):
        for sample in file.read_text().split("=== ")[1:]:
            title, _, printed = sample.partition("\n")
            found.append(pytest.param(printed, id=f"{file.stem}: {title}"))
    return found


def test_the_samples_are_of_ten_languages_and_more() -> None:
    assert len(list(FAILURES.glob("*.txt"))) >= 10
    assert len(failures()) >= 50


@pytest.mark.parametrize("printed", failures())
def test_an_ordinary_failure_is_not_called_blocked(
    tmp_path: Path, policy: SandboxPolicy, printed: str
) -> None:
    for network in ("off", "hosts"):
        assert not find_refusals(
            printed, 1, replace(policy, network=network), tmp_path / "project", tmp_path, []
        )


REFUSALS = [
    (
        "PermissionError: [Errno 13] Permission denied: '{home}/notes.txt'",
        "write to ~/notes.txt, outside",
    ),
    (
        "OSError: [Errno 30] Read-only file system: '{home}/notes.txt'",
        "write to ~/notes.txt, outside",
    ),
    ("Error: EACCES: permission denied, open '{home}/notes.txt'", "write to ~/notes.txt, outside"),
    ("Error: EROFS: read-only file system, mkdir '{home}/out'", "write to ~/out, outside"),
    ("panic: open {home}/notes.txt: read-only file system", "write to ~/notes.txt, outside"),
    (
        'Exception in thread "main" java.io.FileNotFoundException: {home}/notes.txt (Permission denied)',
        "write to ~/n",
    ),
    ("java.nio.file.AccessDeniedException: {home}/notes.txt", "write to ~/notes.txt, outside"),
    (
        "a.rb:1:in `initialize': Permission denied @ rb_sysopen - {home}/notes.txt (Errno::EACCES)",
        "write to ~/notes",
    ),
    (
        "PHP Warning:  fopen({home}/notes.txt): Failed to open stream: Permission denied in a.php",
        "write to ~/notes",
    ),
    (
        "System.UnauthorizedAccessException: Access to the path '{home}/notes.txt' is denied.",
        "write to ~/notes.txt",
    ),
    ('couldn\'t open "{home}/notes.txt": read-only file system', "write to ~/notes.txt, outside"),
    (
        "touch: cannot touch '{home}/notes.txt': Read-only file system",
        "write to ~/notes.txt, outside",
    ),
    (
        "requests.exceptions.ConnectionError: NameResolutionError: Failed to resolve 'example.com'",
        "a direct connection",
    ),
    ("socket.gaierror: [Errno -3] Temporary failure in name resolution", "a direct connection"),
    ("Error: getaddrinfo ENOTFOUND example.com", "a direct connection"),
    ("npm error code EAI_AGAIN", "a direct connection"),
    ("  code: 'ENOTFOUND',", "a direct connection"),
    ("dial tcp: lookup example.com: no such host", "a direct connection"),
    ("curl: (6) Could not resolve host: example.com", "a direct connection"),
    ("java.net.UnknownHostException: example.com", "a direct connection"),
    (
        "dns error: failed to lookup address information: Name or service not known",
        "a direct connection",
    ),
    (
        "W: Failed to fetch http://deb.debian.org/  Could not resolve 'deb.debian.org'",
        "a direct connection",
    ),
    ("OSError: [Errno 101] Network is unreachable", "a direct connection"),
    ("gpg: signing failed: No secret key", "signing with your keys"),
    ("Host key verification failed.", "your SSH keys"),
]
"""What programs of ten languages print where the sandbox refused, and what is said of it."""


@pytest.mark.parametrize(("printed", "said"), REFUSALS)
def test_a_refusal_is_called_blocked_unless_the_command_succeeded(
    tmp_path: Path, policy: SandboxPolicy, printed: str, said: str
) -> None:
    printed = printed.replace("{home}", str(tmp_path))
    (note,) = find_refusals(printed, 1, policy, tmp_path / "project", tmp_path, [])
    assert note.startswith(f"blocked: {said}")
    assert find_refusals(printed, 0, policy, tmp_path / "project", tmp_path, []) == []


def test_what_the_shell_can_not_run_is_not_blocked(tmp_path: Path, policy: SandboxPolicy) -> None:
    line = f"bash: line 1: {tmp_path}/.npmrc: Permission denied"
    assert find_refusals(line, 126, policy, tmp_path / "project", tmp_path) == []


async def test_real_programs_are_understood_when_the_sandbox_refuses(it: Attacked) -> None:
    secret = it.home / ".ssh/id_ed25519"
    # What another user may not write either is not refused by the sandbox.
    writes = () if os.getuid() else ("echo x > /usr/x",)
    for line in (
        *writes,
        f"cat {secret}",
        f"perl -e 'open(F, q(<), q({secret})) or die qq({secret}: $!)'",
        f"python3 -c 'open(\"{secret}\")'",
    ):
        outcome = await it.run(line)
        assert outcome.code, line
        assert any(note.startswith("blocked: ") for note in outcome.notes), (line, outcome.output)


async def test_a_path_of_the_command_that_is_only_there_outside_is_named(it: Attacked) -> None:
    folder = it.home.parent / "else where"
    folder.mkdir()
    (folder / "a,b.log").touch()
    (it.root / "here").mkdir()
    if it.backend == "landlock":
        pytest.skip("it refuses to read what others hide, and says so")
    for line in (
        f"cat '{folder}/a,b.log'",
        f"ls {it.home.parent}/elsewher*",
        f"cd '{folder}' && make",
        f"cat <'{folder}/a,b.log'",
    ):
        outcome = await it.run(line)
        assert len(outcome.notes) == 1, (line, outcome)
        (note,) = outcome.notes
        assert note.startswith(f"blocked: read of {it.home.parent}/else"), (line, outcome.output)
        assert "which sandboxed commands don't see" in note
        assert note.endswith(ASK_OUTSIDE)
    for line in (
        f"cat '{folder}/none'",
        f"ls {it.home.parent}/nothing*",
        f"cat {it.root}/none // /** /tmp",
        f"test -e '{folder}/a,b.log'",
        f"cat '{folder}/a,b.log'; true",
        f"echo '{folder}/a,b.log'; cat here/none",
    ):
        outcome = await it.run(line)
        assert not outcome.notes, (line, outcome.output)


def test_a_failed_command_that_names_the_proxy_hears_how_to_do_without() -> None:
    variables = make_proxy_environment(40123, {})
    printed = "expected undefined, got 'http://127.0.0.1:40123'"
    (note,) = find_proxy_mention(printed, 1, variables)
    assert "`env -u HTTP_PROXY -u HTTPS_PROXY -u ALL_PROXY -u http_proxy " in note
    assert "GIT_CONFIG" not in note
    assert not find_proxy_mention(printed, 0, variables)
    assert not find_proxy_mention(printed, None, variables)
    assert not find_proxy_mention(printed, 1, {"HTTP_PROXY": "http://proxy.example:40123"})
    assert not find_proxy_mention(printed, 1, {})
    for other in ("127.0.0.1:4012", "127.0.0.1:401234", "localhost:40123", "port 40123"):
        assert not find_proxy_mention(f"connect to {other}", 1, variables)


@pytest.mark.parametrize(
    ("printed", "code"),
    [
        ("", 0),
        ("", 6),
        ("1 failed, 3 passed", 1),
        ("ERROR: No matching distribution found for six", 0),
        ("npm error errno EAI_AGAIN", 0),
        ("curl: (6) Could not resolve host: example.com", 0),
        ("", None),
    ],
)
def test_a_command_that_was_refused_the_network_and_may_have_failed_for_it_is_told(
    printed: str, code: int | None
) -> None:
    (note,) = find_refused_network(printed, code, [])
    assert note.endswith(ASK_OUTSIDE)
    assert (
        find_refused_network(
            printed, code, ["blocked: the network, which is off for sandboxed commands."]
        )
        == []
    )


@pytest.mark.parametrize(
    "printed", ["works", "3 passed", "EXTRA lines of evidence\nending: all good"]
)
def test_a_command_that_was_refused_the_network_and_worked_all_the_same_is_not_told(
    printed: str,
) -> None:
    assert find_refused_network(printed, 0, []) == []
