"""The environments of helper programs lead into no folder that is excluded,
unless it holds the home.
"""

from pathlib import Path

from codeloop.workspace.process.program_environment import make_tool_environment


def test_a_project_that_is_the_home_keeps_the_variables_of_its_tools(tmp_path: Path) -> None:
    home = tmp_path / "home"
    environment = {
        "HOME": str(home),
        "PATH": f"{home}/bin:/usr/bin",
        "GOPATH": f"{home}/go",
        "VIRTUAL_ENV": f"{home}/venv",
        "CARGO_HOME": f"{home}/cargo",
    }
    for project in (home, tmp_path):
        assert make_tool_environment(environment, {}, (project,)) == environment
    made = make_tool_environment(environment, {}, (home / "go", home / "venv", home / "bin"))
    assert made == {
        "HOME": str(home),
        "PATH": "/usr/bin",
        "GOPATH": "",
        "CARGO_HOME": f"{home}/cargo",
    }
