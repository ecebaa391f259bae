"""What binds commands binds every program in a sandbox: rules that deny files,
and names that may not appear.
"""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from codeloop.kit.child_process import Launch
from codeloop.kit.wildcard import matches
from codeloop.schema.config import ProgramSandboxConfig, SandboxConfig
from codeloop.schema.permission import Action
from codeloop.workspace.process.program_sandboxes import ProgramSandbox, choose_program_sandbox
from codeloop.workspace.sandbox.program_profile import ProgramProfile, widen_profile
from codeloop.workspace.sandbox.sandbox import SandboxUnavailable
from codeloop.workspace.workspace import Workspace

KEY = "the-key-of-this-test"
# Everything that C may plant at the top of a project, beside its git folder.
PLANTS = ("codeloop.json", "opencode.jsonc", ".codeloop/plugins/x.py", ".opencode/tool/y.ts")
SCRIPT = f"""
cat secrets/k.txt keys.txt 2>&1
echo changed > app.lock; echo changed > dist/f; echo changed > made.lock
mkdir -p .codeloop/plugins .opencode/tool
for name in {" ".join(PLANTS)}; do echo planted > $name; done
echo ours > written.txt
"""


class Rules:
    """Rules that deny some files."""

    denied: Mapping[str, Sequence[str]] = {
        "read": ("secrets/*", "keys.txt"),
        "edit": ("*.lock", "dist/*"),
    }

    def list_denials(self, permission: str, /) -> tuple[str, ...]:
        return (*self.denied.get(permission, ()),)

    def judge(self, permission: str, patterns: Sequence[str], /) -> Mapping[str, Action]:
        denied = self.denied.get(permission, ())
        return {
            name: "deny" for name in patterns if any(matches(name, pattern) for pattern in denied)
        }


class Place:
    """A project with denied files, and the warnings that its user was shown."""

    def __init__(self, folder: Path) -> None:
        self.warnings: list[str] = []
        self.root = root = folder / "work"
        for name in ("secrets/k.txt", "keys.txt", "app.lock", "dist/f"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(KEY)
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder / "home")}
        (folder / "home").mkdir()
        (folder / "data/tool-output").mkdir(parents=True)
        self.workspace = Workspace(
            root,
            root,
            folder / "data/tool-output",
            environment,
            SandboxConfig(mode="required", network="off"),
            (folder / "data",),
            self.warnings.append,
        )
        self.workspace.rules = Rules()

    def make_launch(self, script: str) -> Launch:
        return Launch(("/bin/sh", "-c", script), self.root, self.workspace.environment, {})

    def assert_unharmed(self) -> None:
        left = [name for name in PLANTS if (self.root / name).exists()]
        assert left == []
        assert (self.root / "app.lock").read_text() == (self.root / "dist/f").read_text() == KEY
        assert not (self.root / "made.lock").exists()


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    made = Place(tmp_path)
    try:
        sandbox = await made.workspace.program_sandboxes.enter_command_sandbox()
    except SandboxUnavailable as error:
        await made.workspace.close()
        pytest.skip(str(error))
    if sandbox is None or sandbox.backend != "namespaces":
        await made.workspace.close()
        pytest.skip("files in a project are hidden by namespaces only")
    yield made
    await made.workspace.close()


def _share(_place: Place) -> ProgramSandbox | None:
    return ProgramSandbox()


def _formatter_with_own_sandbox(place: Place) -> ProgramSandbox | None:
    workspace = place.workspace
    launch = Launch(("true",), workspace.directory, {})
    own = ProgramSandboxConfig(network="off")
    return choose_program_sandbox(workspace, "mine", own, launch, ProgramSandbox())


def _entry_with_writable_project(place: Place) -> ProgramSandbox | None:
    """As the documented entry of an MCP server, and a hook of the user: `"sandbox":
    {"writable": ["."]}`.
    """
    own = ProgramProfile(place.root.parent / "own", readable=(place.root,), network="on")
    return ProgramSandbox(widen_profile(own, ProgramSandboxConfig(writable=["."]), place.root))


ROWS = (_share, _formatter_with_own_sandbox, _entry_with_writable_project)


@pytest.mark.parametrize("row", ROWS)
async def test_a_program_that_runs_to_its_end_reads_and_leaves_nothing_that_is_denied(
    place: Place, row: Callable[[Place], ProgramSandbox | None]
) -> None:
    result = await place.workspace.program_sandboxes.run(place.make_launch(SCRIPT), row(place))
    assert KEY not in result.stdout.decode()
    assert (place.root / "written.txt").read_text() == "ours\n"
    place.assert_unharmed()


@pytest.mark.parametrize("row", ROWS)
async def test_what_a_server_leaves_is_gone_while_it_runs(
    place: Place, row: Callable[[Place], ProgramSandbox | None]
) -> None:
    script = f"{SCRIPT}\necho answered; read line; echo $line; read line"
    program = await place.workspace.program_sandboxes.open(
        place.make_launch(script), row(place), lambda _: None
    )
    output = b""
    while b"answered" not in output:
        output += await program.read()
    assert KEY not in output.decode()
    async with asyncio.timeout(60):
        while not any("made.lock may not be written by a rule" in each for each in place.warnings):
            await asyncio.sleep(0.02)
    place.assert_unharmed()
    assert (place.root / "written.txt").exists()
    told = "\n".join(place.warnings)
    assert "codeloop.json appeared while a program in the sandbox ran" in told
    await program.close()


async def test_a_program_that_only_reads_the_project_does_not_read_what_is_denied(
    place: Place,
) -> None:
    confinement = ProgramSandbox(
        ProgramProfile(place.root.parent / "own", readable=(place.root,), network="on")
    )
    result = await place.workspace.program_sandboxes.run(
        place.make_launch("cat secrets/k.txt keys.txt dist/f 2>&1"), confinement
    )
    # Only writing is denied in `dist`.
    assert result.stdout.decode().count(KEY) == 1


async def test_what_the_user_puts_back_and_what_codeloop_writes_stays(place: Place) -> None:
    sandboxes = place.workspace.program_sandboxes
    program = await sandboxes.open(place.make_launch("read line"), ProgramSandbox(), lambda _: None)
    (place.root / "codeloop.json").write_text("{}")
    async with asyncio.timeout(60):
        while (place.root / "codeloop.json").exists():
            await asyncio.sleep(0.02)
    moved = place.warnings[-1].partition("moved to ")[2].partition(". If")[0]
    Path(moved).rename(place.root / "codeloop.json")
    place.workspace.read_log.expected_files.add(place.root / ".codeloop/plans/plan.md")
    (place.root / ".codeloop/plans").mkdir(parents=True)
    (place.root / ".codeloop/plans/plan.md").write_text("plan")
    (place.root / ".codeloop/plugins").mkdir()
    (place.root / ".codeloop/plugins/x.py").write_text("planted")
    await asyncio.sleep(0.5)
    await program.close()
    assert (place.root / "codeloop.json").read_text() == "{}"
    assert (place.root / ".codeloop/plans/plan.md").read_text() == "plan"
    assert not (place.root / ".codeloop/plugins/x.py").exists()
