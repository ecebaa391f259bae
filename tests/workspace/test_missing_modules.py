"""A module that a command did not find is named with the project's own list that has it."""

from pathlib import Path

import pytest

from codeloop.workspace.missing_modules import (
    describe_missing_test_packages,
    explain_missing_module,
)

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
        (
            "msgspec",
            "a dependency of pyproject.toml; it is not installed. To install it: pip install -e .",
        ),
        (
            "pytest_mock",
            "in the extra `test` of pyproject.toml; it is not installed. To install it: pip install -e '.[test]'",
        ),
        (
            "yaml",
            "in the extra `test` of pyproject.toml; it is not installed. To install it: pip install -e '.[test]'",
        ),
        (
            "ephemeral_port_reserve",
            "in the group `dev` of pyproject.toml; it is not installed. To install it: pip install --group dev",
        ),
        (
            "ruff",
            "in the group `lint` of pyproject.toml; it is not installed. To install it: poetry install --with lint",
        ),
        (
            "flask",
            "in requirements/web.txt; it is not installed. To install it: pip install -r requirements/web.txt",
        ),
    ],
)
def test_the_group_that_has_a_python_module_is_named(
    tmp_path: Path, module: str, expected: str
) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/web.txt").write_text("# web\nFlask==3.0\n-r base.txt\n")
    (tmp_path / "tests").mkdir()
    output = f"Traceback\nModuleNotFoundError: No module named '{module}.sub'\n"
    assert (
        explain_missing_module(output, tmp_path / "tests", tmp_path) == f"`{module}` is {expected}"
    )


def test_modules_of_the_project_itself_and_of_node(tmp_path: Path) -> None:
    (tmp_path / "src/shop").mkdir(parents=True)
    (tmp_path / "package.json").write_text('{"devDependencies": {"@scope/tool": "1"}}')
    (tmp_path / "pnpm-lock.yaml").touch()
    own = explain_missing_module("ModuleNotFoundError: No module named 'shop'", tmp_path, tmp_path)
    assert own.startswith("`shop` is this project's own, below src;")
    node = explain_missing_module(
        "Error: Cannot find module '@scope/tool'\nRequire stack:", tmp_path, tmp_path
    )
    assert (
        node
        == "`@scope/tool` is in the devDependencies of package.json; it is not installed. To install it: pnpm install"
    )


@pytest.mark.parametrize(
    "output",
    [
        "",
        "No module named 'left'",
        "Cannot find module './own'",
        "ModuleNotFoundError: No module named 'left'",
    ],
)
def test_of_anything_else_nothing_is_said(tmp_path: Path, output: str) -> None:
    (tmp_path / "pyproject.toml").write_text("[project\n")
    (tmp_path / "package.json").write_text("[[")
    assert explain_missing_module(output, tmp_path, tmp_path) == ""


def install(root: Path, *names: str) -> None:
    """Make an environment of the project that has these packages."""
    packages = root / ".venv/lib/python3.12/site-packages"
    packages.mkdir(parents=True)
    (root / ".venv/bin").mkdir()
    (root / ".venv/bin/python").touch()
    (root / ".venv/pyvenv.cfg").touch()
    for name in names:
        (packages / f"{name}-1.0.dist-info").mkdir()


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        (
            "pyproject.toml",
            '[project.optional-dependencies]\ntests = ["pytest>7", "Ephemeral.Port_Reserve", "tomli; os_name > \'a\'"]',
            "need ephemeral-port-reserve, in the extra `tests` ... installed. To install: pip install -e '.[tests]'",
        ),
        (
            "pyproject.toml",
            '[dependency-groups]\ndev = ["sphinx", "pytest", "pytest-cov", "pytest-xdist[a]", {include-group = "x"}]',
            "need pytest-cov, pytest-xdist, in the group `dev` ... installed. To install: pip install --group dev",
        ),
        (
            "requirements-test.txt",
            "# for tests\npytest\na\nb\nc\nd\ne\nf\n",
            "need a, b, c, d, e and 1 more, in requirements-test.txt ... pip install -r requirements-test.txt",
        ),
        (
            "package.json",
            '{"devDependencies": {"jest": "29"}}',
            "there is no node_modules. To install it: npm install",
        ),
        ("package.json", '{"devDependencies": {}}', ""),
        ("pyproject.toml", '[dependency-groups]\ndev = ["sphinx"]\ntest = ["pytest"]', ""),
        ("pyproject.toml", "[dependency-groups\n", ""),
    ],
)
def test_what_tests_need_and_is_not_installed_is_named(
    tmp_path: Path, file: str, text: str, expected: str
) -> None:
    install(tmp_path, "pytest")
    (tmp_path / file).write_text(text)
    (tmp_path / "sub").mkdir()
    found = describe_missing_test_packages(tmp_path / "sub", tmp_path, {"PATH": "/nonexistent"})
    start, _, end = expected.rpartition(" ... ")
    assert start in found
    assert found.endswith(end)
    assert bool(found) == bool(expected)


def test_nothing_is_said_where_what_is_installed_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "requirements-test.txt").write_text("pytest\nabsent\n")
    assert describe_missing_test_packages(tmp_path, tmp_path, {"PATH": "/nonexistent"}) == ""
    install(tmp_path, "pytest", "absent")
    assert describe_missing_test_packages(tmp_path, tmp_path, {"PATH": "/nonexistent"}) == ""
