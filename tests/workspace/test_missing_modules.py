"""A module that a command did not find is named with the project's own list that has it."""

from pathlib import Path

import pytest

from codeloop.workspace.missing_modules import find_missing_module

PROJECT = """
[project]
dependencies = ["msgspec>=0.19"]
[project.optional-dependencies]
"test" = ["pytest-Mock ; python_version > '3'", "PyYAML"]
[dependency-groups]
dev = ["ephemeral-port-reserve", {include-group = "docs"}]
docs = ["sphinx~=7.0"]
[tool.poetry.group.lint.dependencies]
ruff = "^0.1"
"""


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("msgspec", "a dependency of pyproject.toml; it is not installed. To install it: pip install -e ."),
        (
            "pytest_mock",
            "in the extra `test` of pyproject.toml; it is not installed. To install it: pip install -e '.[test]'",
        ),
        ("yaml", "in the extra `test` of pyproject.toml; it is not installed. To install it: pip install -e '.[test]'"),
        (
            "ephemeral_port_reserve",
            "in the group `dev` of pyproject.toml; it is not installed. To install it: pip install --group dev",
        ),
        (
            "ruff",
            "in the group `lint` of pyproject.toml; it is not installed. To install it: poetry install --with lint",
        ),
        ("flask", "in requirements/web.txt; it is not installed. To install it: pip install -r requirements/web.txt"),
    ],
)
def test_the_group_that_has_a_python_module_is_named(tmp_path: Path, module: str, expected: str) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/web.txt").write_text("# web\nFlask==3.0\n-r base.txt\n")
    (tmp_path / "tests").mkdir()
    output = f"Traceback\nModuleNotFoundError: No module named '{module}.sub'\n"
    assert find_missing_module(output, tmp_path / "tests", tmp_path) == f"`{module}` is {expected}"


def test_modules_of_the_project_itself_and_of_node(tmp_path: Path) -> None:
    (tmp_path / "src/shop").mkdir(parents=True)
    (tmp_path / "package.json").write_text('{"devDependencies": {"@scope/tool": "1"}}')
    (tmp_path / "pnpm-lock.yaml").touch()
    own = find_missing_module("ModuleNotFoundError: No module named 'shop'", tmp_path, tmp_path)
    assert own.startswith("`shop` is this project's own, below src;")
    node = find_missing_module("Error: Cannot find module '@scope/tool'\nRequire stack:", tmp_path, tmp_path)
    assert (
        node
        == "`@scope/tool` is in the devDependencies of package.json; it is not installed. To install it: pnpm install"
    )


@pytest.mark.parametrize(
    "output",
    ["", "No module named 'left'", "Cannot find module './own'", "ModuleNotFoundError: No module named 'left'"],
)
def test_of_anything_else_nothing_is_said(tmp_path: Path, output: str) -> None:
    (tmp_path / "pyproject.toml").write_text("[project\n")
    (tmp_path / "package.json").write_text("[[")
    assert find_missing_module(output, tmp_path, tmp_path) == ""
