"""Machines that lack what sandboxes need: each gets the best one that holds,
and everyone is told what it can't do.
"""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from codeloop.workspace.sandbox.backends.bubblewrap import find_bubblewrap
from tests.cli.program import Desk, bash, call, serving, steps
from tests.support import weak_machine
from tests.support.answers import Answer
from tests.support.model_server import ModelServer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux", reason="only Linux can refuse a program what sandboxes need"
    ),
]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
DONE = Answer(text="Finished.")
NO_NETWORK = "commands have no network, not even localhost"
NO_CACHES = "the caches of your tools are not seen"
NO_NAMESPACE = "a user namespace can't be made: unshare: Operation not permitted"
NO_MOUNT = "nothing can be mounted in a namespace"
NO_OWN_NETWORK = "a network of its own can't be made"
NO_LANDLOCK = "Landlock can't be used"
NO_FILTER = "system calls can't be filtered: prctl: Invalid argument"
NO_PROCESSES = "what a command starts can't be found and ended (/proc)"
BACKENDS = ("namespaces", "landlock", "")

# The weakness, what holds then, the reason against namespaces and that against Landlock
# ("": they are not refused).
MACHINES = (
    ("no-namespaces", "landlock", NO_NAMESPACE, ""),
    ("no-mounts", "landlock", f"{NO_MOUNT}: mount: Permission denied", ""),
    (
        "no-network-namespaces",
        "landlock",
        f"{NO_OWN_NETWORK}: unshare: No space left on device",
        "",
    ),
    ("no-loopback", "landlock", f"{NO_OWN_NETWORK}: Operation not permitted", ""),
    ("no-servers", "landlock", "its localhost can't be used: Permission denied", ""),
    ("no-landlock", "namespaces", "", ""),
    ("refused-landlock", "namespaces", "", ""),
    ("landlock=2", "namespaces", "", ""),
    ("no-namespaces,landlock=1", "landlock", NO_NAMESPACE, ""),
    ("no-mounts,landlock=3", "landlock", NO_MOUNT, ""),
    ("no-namespaces,landlock=5", "landlock", NO_NAMESPACE, ""),
    (
        "no-namespaces,no-landlock",
        "",
        NO_NAMESPACE,
        f"{NO_LANDLOCK}: syscall: Operation not supported",
    ),
    (
        "no-namespaces,refused-landlock",
        "",
        NO_NAMESPACE,
        f"{NO_LANDLOCK}: syscall: Permission denied",
    ),
    ("no-seccomp", "", NO_FILTER, NO_FILTER),
    ("no-namespaces,no-seccomp-call", "landlock", NO_NAMESPACE, ""),
    # Nothing hints at it, so it is said with the first command.
    pytest.param("chroot", "landlock", NO_NAMESPACE, "", marks=as_root),
    pytest.param(
        "masked-proc",
        "landlock",
        f"{NO_MOUNT}: mount: Operation not permitted (/proc)",
        "",
        marks=as_root,
    ),
    pytest.param("no-proc", "", "users can't be mapped into it", NO_PROCESSES, marks=as_root),
    pytest.param("no-overlay", "namespaces", "", "", marks=as_root),
)


def weaken(tmp_path: Path, weakness: str) -> Desk:
    desk = Desk(tmp_path, wrapper=(sys.executable, weak_machine.__file__, weakness))
    # A cache that is there, so that there is something to lay a layer over.
    (tmp_path / ".npm").mkdir()
    (desk.work / "file").write_text("words\n")
    return desk


def is_full_here(tmp_path: Path) -> bool:
    return (
        json.loads(Desk(tmp_path / "full").run("debug", "sandbox", "--json").stdout)["backend"]
        == "namespaces"
    )


@pytest.fixture(autouse=True)
def full_machine(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    if not is_full_here(tmp_path):
        pytest.skip("this machine lacks namespaces itself")


def run(desk: Desk, *answers: Answer, **settings: Any) -> tuple[int, str, ModelServer]:
    """Have the model give the answers; return the exit code, what the person was told,
    and the server.
    """
    with serving(steps(*answers, DONE)) as server:
        desk.use(server, permission={"bash": {}}, **settings)
        done = desk.run("run", "--title", "T", "work")
    assert "Something unforeseen" not in done.stderr
    return done.returncode, done.stderr, server


def read_results(server: ModelServer) -> list[str]:
    """Return the results of calls in the last request with tools."""
    (*_, last) = [received.json for received in server.requests if b'"tools"' in received.body]
    return [str(message["content"]) for message in last["messages"] if message["role"] == "tool"]


def read_system_prompt(server: ModelServer) -> str:
    """Return the system prompt of the first request with tools;
    that of each later one has to be the same.
    """
    prompts = [
        str(
            next(
                message["content"]
                for message in received.json["messages"]
                if message["role"] == "system"
            )
        )
        for received in server.requests
        if b'"tools"' in received.body
    ]
    assert len(set(prompts)) == 1
    return prompts[0]


def skip_if_bubblewrap_holds(backend: str) -> None:
    """Skip a case for which Landlock is only the best where bubblewrap is not installed."""
    with suppress(FileNotFoundError):
        find_bubblewrap()
        if backend == "landlock":
            pytest.skip("bubblewrap is installed here, and holds where root may make namespaces")


@pytest.mark.parametrize(
    ("weakness", "backend", "against_namespaces", "against_landlock"), MACHINES
)
def test_the_best_sandbox_that_holds_is_used_and_each_refusal_is_named(
    tmp_path: Path, weakness: str, backend: str, against_namespaces: str, against_landlock: str
) -> None:
    skip_if_bubblewrap_holds(backend)
    desk = weaken(tmp_path, weakness)
    shown = desk.run("debug", "sandbox", "--json")
    report = json.loads(shown.stdout)
    reasons = report["refused"]
    assert (report["backend"], "Traceback" in shown.stderr) == (backend, False)
    assert ("namespaces" in reasons) == bool(against_namespaces)
    assert against_namespaces in reasons.get("namespaces", "")
    assert against_landlock in reasons.get("landlock", "")
    assert ("landlock" in reasons) == bool(against_landlock)
    assert (NO_NETWORK in report["shortcomings"]) == (backend == "landlock")
    failed = [attempt["what"] for attempt in report["attempts"] if not attempt["ok"]]
    # Before its sixth version Landlock keeps no signal from other processes, which is said.
    can_kill = "=" in weakness and backend == "landlock"
    assert failed == (["end a process of this program"] if can_kill else [])
    assert ("commands can end your other programs" in report["shortcomings"]) == can_kill


@pytest.mark.parametrize(
    ("weakness", "backend", "against_namespaces", "against_landlock"), MACHINES
)
def test_a_run_works_there_or_asks_and_says_once_what_is_lacking(
    tmp_path: Path, weakness: str, backend: str, against_namespaces: str, against_landlock: str
) -> None:
    skip_if_bubblewrap_holds(backend)
    desk = weaken(tmp_path, weakness)
    code, shown, _ = run(
        desk,
        bash("echo made > made; cat made", "call_1"),
        bash(f"echo x > {tmp_path}/outside", "call_2"),
    )
    notices = [line for line in shown.splitlines() if "`codeloop debug sandbox` says why" in line]
    if backend == "namespaces":
        assert (notices, NO_CACHES in shown) == ([], weakness == "no-overlay")
    else:
        assert len(notices) == 1
        assert ("Only Landlock" in notices[0], NO_NETWORK in notices[0]) == (
            backend == "landlock",
        ) * 2
        assert ("No sandbox can be had" in notices[0]) == (not backend)
    # What is named outside is asked about, and without a sandbox the first line, too;
    # nobody is there to answer.
    assert (code, (desk.work / "made").exists(), (tmp_path / "outside").exists()) == (
        5,
        bool(backend),
        False,
    )


def test_doctor_names_what_holds_what_was_refused_and_what_it_cannot_do(tmp_path: Path) -> None:
    desk = weaken(tmp_path, "no-mounts")
    shown = desk.run("doctor").stdout
    (line,) = [line for line in shown.splitlines() if " sandbox " in line]
    assert line.split()[0] == "warning"
    assert "landlock, tried: it holds" in line
    assert f"not namespaces ({NO_MOUNT}: mount: Permission denied)" in line
    assert NO_NETWORK in line


@pytest.mark.parametrize(
    ("weakness", "settings", "sentence"),
    [
        ("no-namespaces", {}, "Sandbox: commands have no network, not even localhost; "),
        ("no-namespaces", {"sandbox": {"network": "on"}}, ""),
        ("no-namespaces,no-landlock", {}, "Sandbox: none on this machine; "),
        ("no-namespaces", {"sandbox": "off"}, ""),
        ("no-landlock", {}, ""),
    ],
)
def test_the_model_is_told_from_the_first_request_on(
    tmp_path: Path, weakness: str, settings: dict[str, Any], sentence: str
) -> None:
    _, _, server = run(weaken(tmp_path, weakness), bash("cat file", "call_1"), **settings)
    prompt = read_system_prompt(server)
    assert ("Sandbox: " in prompt, sentence in prompt) == (bool(sentence), True)


CONNECT = "import socket; socket.create_connection(('192.0.2.1', 9), 2)"
QUIET = "import socket, contextlib\nwith contextlib.suppress(OSError): socket.getaddrinfo('host.example', 80)"
PROBE = (
    "import socket, contextlib\nwith contextlib.suppress(OSError): socket.socket(socket.AF_INET6)"
)


def test_a_result_says_that_the_network_was_refused_however_its_output_is_cut(
    tmp_path: Path,
) -> None:
    lines = (
        f'python3 -c "{CONNECT}"',
        f'python3 -c "{CONNECT}" 2>&1 | head -1',
        f'python3 -c "{QUIET}" | tail -1',
        f'python3 -c "{QUIET}"; false',
    )
    server = run(
        weaken(tmp_path, "no-namespaces"),
        *(bash(line, f"call_{at}") for at, line in enumerate(lines)),
    )[2]
    results = read_results(server)
    assert [result.count("blocked: the network") for result in results] == [1] * len(lines)
    assert all("call bash again with `outside`" in result for result in results)


@pytest.mark.parametrize("weakness", ["no-namespaces,no-seccomp-call", "no-namespaces,landlock=1"])
def test_where_attempts_can_not_be_noticed_they_are_refused_all_the_same(
    tmp_path: Path, weakness: str
) -> None:
    server = run(
        weaken(tmp_path, weakness), bash(f'python3 -c "{CONNECT}" 2>&1 | tail -1', "call_1")
    )[2]
    (result,) = read_results(server)
    assert ("Permission denied" in result, "blocked: the network" in result) == (True, False)


def test_a_command_that_works_or_only_asks_whether_there_is_ipv6_gets_no_note(
    tmp_path: Path,
) -> None:
    lines = (
        f'python3 -c "{QUIET}"; echo works',
        f'python3 -c "{PROBE}"; echo wrong; false',
        "echo no; false",
    )
    server = run(
        weaken(tmp_path, "no-namespaces"),
        *(bash(line, f"call_{at}") for at, line in enumerate(lines)),
    )[2]
    assert [result.count("blocked:") for result in read_results(server)] == [0, 0, 0]


def test_installing_tells_it_whatever_pip_says_of_it(tmp_path: Path) -> None:
    line = "python3 -m pip --retries 0 --disable-pip-version-check install six-of-nobody 2>&1 | tail -2"
    server = run(weaken(tmp_path, "no-namespaces"), bash(line, "call_1"))[2]
    (result,) = read_results(server)
    assert "blocked: the network" in result


def test_a_background_command_tells_it_when_its_output_is_read(tmp_path: Path) -> None:
    started = call(
        "bash", command=f'python3 -c "{CONNECT}"', run_in_background=True, description="Runs it"
    )
    read = call("bash_output", call_id="call_2", id="bash_1", wait=20_000)
    server = run(weaken(tmp_path, "no-namespaces"), started, read)[2]
    assert read_results(server)[1].count("blocked: the network") == 1
