"""The names of files that rules match."""

from pathlib import Path

import pytest

from codeloop.permission.defaults import make_fixed_rules
from codeloop.permission.rules import decide
from codeloop.schema.permission import Need
from codeloop.workspace.files.permission_name import make_permission_name
from codeloop.workspace.workspace import Workspace


@pytest.mark.parametrize(
    ("path", "action"),
    [
        (".codeloop/plans/a.md", "allow"),
        (".codeloop/PLANS/a.md", "deny"),
        (".CodeLoop/plans/a.md", "deny"),
    ],
)
def test_only_the_folder_of_plans_as_it_is_written_is_one_in_plan_mode(
    tmp_path: Path, path: str, action: str
) -> None:
    workspace = Workspace(tmp_path, tmp_path, tmp_path / "scratch", {})
    name = make_permission_name(workspace, tmp_path / path)
    assert (
        decide(Need(permission="edit", patterns=(name,)), make_fixed_rules("read-only")).action
        == action
    )
