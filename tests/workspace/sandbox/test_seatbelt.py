"""The profile for `sandbox-exec` of macOS, as text: there is no Mac here to try it on."""

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from codeloop.cli.commands.examine import debug as command
from codeloop.kit.child_process import Launch
from codeloop.schema.config import SandboxConfig
from codeloop.workspace.sandbox.backends import seatbelt
from codeloop.workspace.sandbox.backends.seatbelt import SeatbeltStarter, write_profile
from codeloop.workspace.sandbox.policy import PolicyInput, PolicyMaker, SandboxGrants, SandboxPolicy
from codeloop.workspace.sandbox.process_launcher import ProcessLauncher
from codeloop.workspace.sandbox.sandbox import SandboxUnavailable
from codeloop.workspace.sandbox.sandbox_report import SandboxReport
from codeloop.workspace.sandbox.sandboxes import Sandboxes

TEMPORARY = Path("/private/var/folders/x/T/codeloop-1")
HOME = Path("/Users/ann")
ROOT = HOME / "app"
GOLDEN = Path(__file__).with_name("profile.sb").read_text()


def policy(**changed: Any) -> SandboxPolicy:
    """A policy of a project in the home; `changed`: its fields that are others."""
    usual: dict[str, Any] = {
        "writable": (ROOT,),
        "protected": (ROOT / ".git/config",),
        "visible": (HOME, HOME / ".codeloop/output"),
        "hidden": (HOME / ".ssh", HOME / ".codeloop", ROOT / "web/.env"),
        "absent": (ROOT / ".codeloop",),
        "network": "hosts",
        "hosts": (),
    }
    return SandboxPolicy(**{**usual, **changed})


def may(text: str, operation: str, path: str) -> bool:
    """Return what the last rule of a profile that is about an operation and a path says."""
    allowed = False
    for verb, operations, kind, place in re.findall(
        r'^\((allow|deny) ([^("]+) \((subpath|literal) "(.+)"\)\)$', text, re.MULTILINE
    ):
        names = [name.removesuffix("*") for name in operations.split()]
        is_there = path == place or (kind == "subpath" and path.startswith(f"{place}/"))
        if is_there and any(operation.startswith(name) for name in names):
            allowed = verb == "allow"
    return allowed


def test_the_profile_is_the_policy() -> None:
    assert write_profile(policy(), TEMPORARY, {4002, 4001}) == GOLDEN


@pytest.mark.parametrize(
    ("path", "read", "write"),
    [
        ("/Users/ann/app/a.py", True, True),
        ("/Users/ann/apple/a.py", True, False),
        ("/Users/ann/notes", True, False),
        ("/Users/ann/app/.git/config", True, False),
        ("/Users/ann/app/.git/index", True, True),
        ("/Users/ann/app/.codeloop/codeloop.json", True, False),
        ("/Users/ann/app/web/.env", False, False),
        ("/Users/ann/.ssh/id_ed25519", False, False),
        ("/Users/ann/.codeloop/auth.json", False, False),
        ("/Users/ann/.codeloop/output/1", True, False),
        ("/private/var/folders/x/T/codeloop-1/file", False, True),
        ("/private/tmp/file", False, False),
    ],
)
def test_each_place_has_its_rule(path: str, read: bool, write: bool) -> None:
    text = write_profile(policy(), TEMPORARY)
    assert may(text, "file-write-data", path) is write
    if path.startswith("/Users"):  # elsewhere everything may be read, by the rule without a place
        assert may(text, "file-read-data", path) is read


def test_what_holds_a_rule_can_not_be_renamed_and_other_things_can() -> None:
    text = write_profile(policy(), TEMPORARY)
    kept = [
        path
        for path in ("", "/.git", "/web", "/src", "/.git/index")
        if not may(text, "file-write-unlink", f"{ROOT}{path}")
    ]
    assert kept == ["", "/.git", "/web"]


def test_the_deeper_place_decides_in_whatever_order_they_come() -> None:
    deep = policy(
        writable=(ROOT / "a/b/c", ROOT),
        protected=(ROOT / "a/b/c/d", ROOT / "a"),
        hidden=(ROOT / "a/b/c/e",),
        absent=(),
    )
    text = write_profile(deep, TEMPORARY)
    wanted = {"x": True, "a/x": False, "a/b/c/x": True, "a/b/c/d/x": False, "a/b/c/e": False}
    assert {path: may(text, "file-write-data", f"{ROOT}/{path}") for path in wanted} == wanted
    same = policy(writable=(ROOT,), protected=(ROOT / "p",), hidden=(ROOT / "p",), absent=())
    assert not may(write_profile(same, TEMPORARY), "file-read-data", f"{ROOT}/p")


def test_what_was_granted_may_appear_and_nothing_beside_it() -> None:
    text = write_profile(policy(granted=(ROOT / ".codeloop/a.json",)), TEMPORARY)
    assert may(text, "file-write-create", f"{ROOT}/.codeloop/a.json")
    assert not may(text, "file-write-create", f"{ROOT}/.codeloop/b.json")


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        ('a"b', r"a\"b"),
        ("a\\b", r"a\\b"),
        ('a\\"))(allow default)', r"a\\\"))(allow default)"),
        ("a\n(allow default)", r"a\n(allow default)"),
        ("a\tb\rc", r"a\tb\rc"),
        ("é ü;'#", "é ü;'#"),
    ],
)
def test_no_name_ends_its_string(name: str, quoted: str) -> None:
    text = write_profile(policy(hidden=(ROOT / name,)), TEMPORARY)
    assert f'(deny file-read* file-write* network-outbound (subpath "{ROOT}/{quoted}"))\n' in text
    assert len(text.splitlines()) == len(
        write_profile(policy(hidden=(ROOT / "plain",)), TEMPORARY).splitlines()
    )


@pytest.mark.parametrize(
    ("network", "reached"), [("off", []), ("hosts", ["localhost:7"]), ("on", ["*:*"])]
)
def test_the_network_is_none_the_proxy_or_all(network: str, reached: list[str]) -> None:
    text = write_profile(policy(network=network), TEMPORARY, {7} if network == "hosts" else ())
    assert re.findall(r'remote ip "([^"]+)"', text) == reached
    assert ("mDNSResponder" in text) is (network == "on")


def test_a_project_reached_through_a_link_is_named_where_it_is(tmp_path: Path) -> None:
    resolve_links = tmp_path / "private/tmp"
    (resolve_links / "app/.git/hooks").mkdir(parents=True)
    (resolve_links / "app/.git/HEAD").touch()
    (resolve_links / "app/.env").write_text("A=1")
    (tmp_path / "tmp").symlink_to(resolve_links)
    root = tmp_path / "tmp/app"
    environment = {"HOME": str(tmp_path / "tmp"), "PATH": "/usr/bin:/bin"}
    place = PolicyInput(root, root, root, environment)
    made = PolicyMaker(place, SandboxConfig()).make_policy(SandboxGrants())
    text = write_profile(made, TEMPORARY)
    assert f'"{tmp_path}/tmp' not in text
    assert not may(text, "file-read-data", f"{resolve_links}/app/.env")
    assert not may(text, "file-write-create", f"{resolve_links}/app/.git/hooks/pre-commit")
    assert not may(text, "file-write-create", f"{resolve_links}/app/opencode.json")


async def test_the_proxys_ports_alone_come_into_reach() -> None:
    launcher = ProcessLauncher()
    starter = SeatbeltStarter(launcher, policy(), TEMPORARY)
    with await starter.open_listener(0) as listener:
        address, port = listener.getsockname()
    assert address == "127.0.0.1"
    with pytest.raises(OSError, match="port 5432 is in reach as it is"):
        await starter.open_listener(5432)
    assert starter.ports == {port, 5432}


async def test_where_the_program_is_missing_no_sandbox_is_claimed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(seatbelt, "PROGRAM", str(tmp_path / "sandbox-exec"))
    with pytest.raises(SandboxUnavailable, match="sandbox-exec is not there"):
        await entered(tmp_path)


async def test_a_program_that_does_not_hold_is_found_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    false = tmp_path / "sandbox-exec"
    false.write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    false.chmod(0o755)
    monkeypatch.setattr(seatbelt, "PROGRAM", str(false))
    with pytest.raises(SandboxUnavailable, match="it lets files be made outside"):
        await entered(tmp_path)
    assert not list((tmp_path / "home").iterdir())


async def test_each_command_is_started_under_the_profile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    kept = tmp_path / "sandbox-exec"
    kept.write_text(f'#!/bin/sh\nprintf "%s %s" "$1" "$2" > {seen}\nshift 2\nexec "$@"\n')
    kept.chmod(0o755)
    monkeypatch.setattr(seatbelt, "PROGRAM", str(kept))
    launcher = ProcessLauncher()
    starter = SeatbeltStarter(launcher, policy(), TEMPORARY)
    with await starter.open_listener(0) as listener:
        port = listener.getsockname()[1]
    try:
        process = await starter.start(Launch(("/bin/sh", "-c", "exit 7"), tmp_path, {}, {}))
        assert await process.exited == 7
        assert seen.read_text() == f"-p {write_profile(policy(), TEMPORARY, {port})}"
        waiting = await starter.start(Launch(("/bin/sleep", "60"), tmp_path, {}, {}))
        assert not starter.is_idle
        await starter.end()
        assert await waiting.exited < 0
    finally:
        await launcher.close()


def test_the_report_says_that_it_was_not_tried_on_a_mac(monkeypatch: pytest.MonkeyPatch) -> None:
    async def found(*_: object) -> SandboxReport:
        return SandboxReport("auto", "sandbox-exec", {}, "off", [], [], [], [], [], [])

    monkeypatch.setattr(command, "make_report", found)
    assert "not tried on a Mac" in CliRunner().invoke(command.show_sandbox, []).output


async def entered(folder: Path) -> None:
    """Enter a sandbox of this kind, for a project beside a home."""
    root, home = folder / "app", folder / "home"
    for each in (root, home):
        each.mkdir()
    launcher = ProcessLauncher()
    sandboxes = Sandboxes(launcher, ("sandbox-exec",))
    try:
        await sandboxes.enter(
            policy(writable=(root,), protected=(), visible=(home,), hidden=(), absent=())
        )
    finally:
        await sandboxes.close()
        await launcher.close()
