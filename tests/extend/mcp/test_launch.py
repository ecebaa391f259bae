"""What a server may read by the paths that its entry names, and by those in its `envFile`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from codeloop.extend.mcp.definition import LocalDefinition
from codeloop.extend.mcp.transport.server_launch import (
    ServerLaunch,
    ServerProject,
    make_project_launch,
    make_user_launch,
)
from codeloop.schema.config import SandboxConfig


@pytest.mark.parametrize("make", [make_user_launch, make_project_launch])
def test_a_file_of_variables_gives_values_and_no_paths_to_read(
    tmp_path: Path, make: Callable[..., ServerLaunch]
) -> None:
    home, root = tmp_path / "home", tmp_path / "work"
    root.mkdir()
    for name in ("named", "keys"):
        (home / name).mkdir(parents=True)
    (root / "vars").write_text(f"KEY_FILE={home}/keys\nDATA=other\n")
    config = LocalDefinition(
        command=["sh"], environment={"DATA": str(home / "named")}, env_file="vars"
    )
    project = ServerProject(root, root, True, SandboxConfig())
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home)}
    made = make(config, project, environment, tmp_path / "own")
    assert made.launch.environment["KEY_FILE"] == str(home / "keys")
    assert made.launch.environment["DATA"] == str(home / "named")
    assert {"KEY_FILE", "DATA"} <= {*made.launch.named_variables}
    assert made.profile is not None
    assert home / "named" in made.profile.named
    assert home / "keys" not in made.profile.named
