"""The caches that sandboxed commands may fill: those of installed tools, and of tools that the project brings."""

from pathlib import Path

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.workspace.sandbox.policy import Policies, SandboxPlace


@pytest.fixture
def policies(tmp_path: Path) -> Policies:
    (tmp_path / "work").mkdir()
    work, home = tmp_path / "work", {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin")}
    return Policies(SandboxPlace(work, work, tmp_path / "scratch", home), SandboxConfig())


def install(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)


def test_no_cache_is_made_for_a_tool_that_is_not_there(tmp_path: Path, policies: Policies) -> None:
    assert policies.policy().writable == (tmp_path / "work",)
    assert list(tmp_path.iterdir()) == [tmp_path / "work"]


def test_the_cache_of_an_installed_tool_is_made(tmp_path: Path, policies: Policies) -> None:
    install(tmp_path / "bin/uv")
    assert policies.policy().writable == (tmp_path / "work", tmp_path / ".cache/uv")


def test_a_tool_that_was_just_installed_into_the_project_has_its_cache_in_the_next_command(
    tmp_path: Path, policies: Policies
) -> None:
    before = policies.policy().writable
    install(tmp_path / "work/.venv/bin/pre-commit")
    assert policies.policy().writable == (*before, tmp_path / ".cache/pre-commit")


def test_a_wrapper_in_the_project_has_its_caches(tmp_path: Path, policies: Policies) -> None:
    install(tmp_path / "work/gradlew")
    assert tmp_path / ".gradle/wrapper/dists" in policies.policy().writable
