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


def test_what_chooses_versions_of_tools_reaches_programs(tmp_path: Path) -> None:
    chosen = {
        "ASDF_NODEJS_VERSION": "20.1.0",
        "MISE_GO_VERSION": "1.22",
        "RBENV_VERSION": "3.3",
        "MY_RUBY_HOME": "/opt/ruby",
        "GOWORK": "off",
    }
    others = {"ASDF_TOKEN": "x", "X_VERSION": "1"}
    made = make_tool_environment({"HOME": str(tmp_path), **chosen, **others}, {})
    assert made == {"HOME": str(tmp_path), **chosen}
