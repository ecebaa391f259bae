"""Files that other programs run or obey when a project is opened can't be
made or changed by commands.
"""

from codeloop.kit.guarded_paths import OPENED_PATHS
from codeloop.workspace.sandbox.policy import SandboxGrants
from tests.workspace.sandbox.conftest import Attacked

MAKE = "for f in {}; do mkdir -p $(dirname $f); echo evil > $f; done 2> /dev/null; true"


async def test_what_runs_when_a_project_is_opened_is_only_read(it: Attacked) -> None:
    there = [name for name in OPENED_PATHS if name.endswith(("settings.json", ".toml", ".lua"))]
    for name in (*there, "my.code-workspace"):
        (it.root / name).parent.mkdir(parents=True, exist_ok=True)
        (it.root / name).write_text("mine")
    absent = [
        f"{name}/x" if "." not in name.rpartition("/")[2][1:] else name for name in OPENED_PATHS
    ]
    outcome = await it.run(MAKE.format(" ".join([*absent, "my.code-workspace"])))
    for name in OPENED_PATHS:
        assert (it.root / name).exists() == (name in there), name
        assert name not in there or (it.root / name).read_text() == "mine"
    assert (it.root / "my.code-workspace").read_text() == "mine"
    assert {moved.path for moved in outcome.moved_files} >= {
        it.root / ".exrc",
        it.root / ".mcp.json",
    }


async def test_what_a_command_was_allowed_is_written(it: Attacked) -> None:
    (it.root / ".vscode").mkdir()
    (it.root / ".vscode/settings.json").write_text("mine")
    names = (".vscode/settings.json", ".mcp.json", ".devcontainer")
    await it.run(
        MAKE.format(".vscode/settings.json .mcp.json .devcontainer/devcontainer.json"),
        grant(it, names),
    )
    assert (
        (it.root / ".vscode/settings.json").read_text()
        == (it.root / ".mcp.json").read_text()
        == "evil\n"
    )
    assert (it.root / ".devcontainer/devcontainer.json").read_text() == "evil\n"


def grant(it: Attacked, names: tuple[str, ...]) -> SandboxGrants:
    return SandboxGrants(writable=tuple(it.root / name for name in names))
