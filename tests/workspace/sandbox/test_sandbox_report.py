"""What `codeloop debug sandbox` says of a machine, and that it is tried."""

from pathlib import Path

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.schema.wire import replace
from codeloop.workspace.process.shells import Shells
from codeloop.workspace.sandbox import sandboxes
from codeloop.workspace.sandbox.policy import PolicyInput
from codeloop.workspace.sandbox.sandbox import SandboxUnavailable
from codeloop.workspace.sandbox.sandbox_report import make_report
from codeloop.workspace.sandbox.shortcomings import describe_for_user


def place(tmp_path: Path) -> PolicyInput:
    root, home = tmp_path / "work", tmp_path / "home"
    for folder in (root, home / ".ssh", tmp_path / "scratch"):
        folder.mkdir(parents=True)
    (home / ".ssh/key").write_text("key")
    (home / ".npm").mkdir()
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home)}
    return PolicyInput(root, root, tmp_path / "scratch", environment)


@pytest.mark.slow
async def test_every_attempt_is_kept_from_what_it_wants(tmp_path: Path) -> None:
    report = await make_report(place(tmp_path), SandboxConfig(network="off"))
    if not report.backend:
        pytest.skip(f"no sandbox here: {report.refused}")
    assert [attempt.what for attempt in report.attempts if not attempt.ok] == []
    assert len(report.attempts) == 10
    assert report.holds
    assert str(tmp_path / "home") in report.replaced


async def test_there_is_none_around_the_whole_file_system_and_that_is_told(tmp_path: Path) -> None:
    given = place(tmp_path)
    shells = Shells()
    policy = shells.make_policy(
        replace(given, root=Path("/"), directory=Path("/")), SandboxConfig()
    )
    try:
        with pytest.raises(
            SandboxUnavailable,
            match=r"around /, the whole file system; start codeloop in a project",
        ):
            await shells.sandboxes.enter(policy)
    finally:
        await shells.close()
    assert "sandbox can't be made around /" in describe_for_user(None, SandboxConfig(), Path("/"))
    assert "No sandbox can be had on this machine" in describe_for_user(
        None, SandboxConfig(), tmp_path
    )


async def test_a_machine_without_any_sandbox_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandboxes.Sandboxes.__init__, "__defaults__", ((), None))
    report = await make_report(place(tmp_path), SandboxConfig())
    assert (report.backend, report.attempts, report.holds) == ("", [], False)
