"""What a person allowed one command can be written by that command,
replaced and removed as far as the kernel lets.
"""

from pathlib import Path

import pytest

from codeloop.workspace.sandbox.policy import SandboxGrants
from tests.workspace.sandbox.conftest import SECRET, Attacked


async def test_a_place_that_was_granted_can_be_written_by_that_command_alone(it: Attacked) -> None:
    other = it.home.parent / "elsewhere"
    assert (await it.run(f"echo 1 > {other}/a", SandboxGrants(writable=(other,)))).code == 0
    await it.run(f"echo 2 > {other}/a")
    assert (other / "a").read_text() == "1\n"


async def test_a_protected_file_that_was_granted_keeps_what_is_written(it: Attacked) -> None:
    hooks = it.root / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("one", "two"):
        (hooks / name).write_text("before\n")
    await it.run(
        "cd .git/hooks; echo 1 > one; echo 2 > two", SandboxGrants(writable=(hooks / "one",))
    )
    assert [(hooks / name).read_text() for name in ("one", "two")] == ["1\n", "before\n"]


@pytest.fixture
def notes(it: Attacked) -> Path:
    """A plain folder of the person's."""
    folder = it.home / "notes"
    (folder / "more").mkdir(parents=True)
    for name in ("a", "b", "more/c"):
        (folder / name).write_text("before\n")
    return folder


@pytest.mark.slow
async def test_the_files_beside_a_new_one_stay_as_they_were(it: Attacked, notes: Path) -> None:
    attack = "cd {}; echo x > b; rm -f b; mv b z; mv a b; echo x > more/c; rm -rf more; ln -sf /etc/passwd b; mv more m"
    new = notes / "new"
    await it.run(
        attack.format(notes) + "; mkdir new; echo x > new/file; ln -s a new/link",
        SandboxGrants((new,)),
    )
    assert [(notes / name).read_text() for name in ("a", "b", "more/c", "new/file")] == [
        *["before\n"] * 3,
        "x\n",
    ]


@pytest.mark.slow
async def test_a_project_beside_a_new_file_stays_writable(it: Attacked) -> None:
    place = it.place.environment
    it.shells._work_trees._policy_makers.clear()
    environment = {**place, "HOME": str(it.root.parent.parent)}
    other = it._replace(
        place=type(it.place)(it.root, it.root, it.place.scratch, environment, it.place.own_folders)
    )
    new = it.root.parent / "new"
    outcome = await other.run(f"echo x > made && echo x > {new}", SandboxGrants(writable=(new,)))
    assert outcome.code == 0, outcome.output
    assert (it.root / "made").exists()
    (it.root.parent / "new").unlink()
    await other.run("echo '[core] x = y' >> .git/config", SandboxGrants(writable=(new,)))
    assert "x = y" not in (it.root / ".git/config").read_text()


@pytest.mark.slow
async def test_a_granted_file_that_can_only_be_written_is_told(it: Attacked) -> None:
    bashrc = it.home / ".bashrc"
    before = bashrc.stat().st_mtime_ns
    granted = SandboxGrants(writable=(bashrc,))
    assert (await it.run("true", granted)).code == 0
    assert bashrc.stat().st_mtime_ns == before, "a grant alone changes nothing"
    assert (await it.run(f"echo new > {bashrc}", granted)).code == 0
    outcome = await it.run(f"echo x > n; mv n {bashrc}", granted)
    assert bashrc.read_text() == "new\n"
    if it.backend != "landlock":
        assert outcome.notes[0].startswith(
            "blocked: replacing ~/.bashrc, which may be written here, but not be renamed"
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ["echo A=2 >> .env", "echo A=2 > .e && mv .e .env", "rm .env; echo A=2 > .env"]
)
async def test_a_secret_that_was_granted_is_written_by_that_command_alone(
    it: Attacked, command: str
) -> None:
    secret = it.root / ".env"
    secret.write_text(f"A={SECRET}\n")
    outcome = await it.run(command, SandboxGrants(writable=(secret,)))
    assert (outcome.code, outcome.notes) == (0, ()), outcome.output
    assert "A=2\n" in secret.read_text()
    after = secret.read_text()
    outcome = await it.run("cat .env; echo A=3 > .env")
    if it.backend != "landlock":
        assert secret.read_text() == after
        assert "A=2" not in outcome.output
        assert any(".env" in note for note in outcome.notes)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["codeloop.json", ".codeloop/codeloop.json", ".git/config", ".git/hooks/pre-commit"]
)
@pytest.mark.parametrize("is_there", [True, False])
async def test_a_protected_file_that_was_granted_is_written(
    it: Attacked, name: str, is_there: bool
) -> None:
    path = it.root / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    if is_there:
        path.write_text("before\n")
    outcome = await it.run(f"echo after > {name}", SandboxGrants(writable=(path,)))
    assert (outcome.code, outcome.notes) == (0, ()), outcome.output
    assert path.read_text() == "after\n"
    await it.run(f"echo again > {name}")
    assert path.read_text() == "after\n"


async def test_git_writes_a_configuration_that_was_granted(it: Attacked) -> None:
    config = it.root / ".git/config"
    outcome = await it.run("git config alias.st status", SandboxGrants(writable=(config,)))
    assert outcome.code == 0, outcome.output
    assert "st = status" in config.read_text()


async def test_only_the_granted_file_appears_in_a_folder_of_ours(it: Attacked) -> None:
    wanted = it.root / ".codeloop/agents/a.md"
    command = "mkdir -p .codeloop/agents; echo a > .codeloop/agents/a.md; echo '{}' > .codeloop/codeloop.json"
    outcome = await it.run(command, SandboxGrants(writable=(wanted,)))
    assert wanted.read_text() == "a\n"
    assert not (it.root / ".codeloop/codeloop.json").exists()
    assert [each.path.name for each in outcome.moved_files] == ["codeloop.json"]
