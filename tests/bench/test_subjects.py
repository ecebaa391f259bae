"""What is measured gets a home, a project and its placeholders filled in."""

import json
import subprocess
from pathlib import Path

import pytest

from bench import subjects
from bench.budgets import BUDGETS
from bench.process_runner import count_imports, run_command
from bench.replay_script import write_replay_script


def test_a_place_has_a_home_and_a_clean_git_project(tmp_path: Path) -> None:
    installation = subjects.install_subject(subjects.make_codeloop(), tmp_path)
    status = subprocess.run(
        ["git", "status", "--porcelain"],
        cwd=installation.project,
        capture_output=True,
        text=True,
        check=True,
    )
    assert status.stdout == ""
    assert (installation.project / "add.py").is_file()
    assert list(installation.home.iterdir()) == []


def test_placeholders_are_filled_in_and_other_braces_stay(tmp_path: Path) -> None:
    pairs = ["URL={url}", 'CONFIG={"base": "{url}", "home": "{home}", "models": {}}']
    other = subjects.make_other("agent run --dir {project} '{prompt}'", pairs, None)
    installation = subjects.install_subject(other, tmp_path)
    command = installation.fill(other.argv, "http://127.0.0.1:1/v1")
    assert command.argv == ["agent", "run", "--dir", str(installation.project), subjects.PROMPT]
    assert command.environ["URL"] == "http://127.0.0.1:1/v1"
    assert json.loads(command.environ["CONFIG"]) == {
        "base": command.environ["URL"],
        "home": str(installation.home),
        "models": {},
    }
    assert command.environ["HOME"] == str(installation.home)


def test_nothing_of_the_callers_environment_reaches_a_subject(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_API_KEY", "k")
    installation = subjects.install_subject(subjects.make_codeloop(), tmp_path)
    assert "SECRET_API_KEY" not in installation.fill(installation.subject.argv).environ


def test_the_model_of_codeloop_is_the_benchs_server(tmp_path: Path) -> None:
    installation = subjects.install_subject(subjects.make_codeloop(), tmp_path)
    config = json.loads(
        installation.fill(installation.subject.argv, "http://127.0.0.1:1/v1").environ[
            "CODELOOP_CONFIG_CONTENT"
        ]
    )
    assert config["provider"]["bench"]["options"]["baseURL"] == "http://127.0.0.1:1/v1"


@pytest.mark.slow
def test_a_text_answer_imports_no_more_modules_than_its_budget(tmp_path: Path) -> None:
    """A count is the same on every machine: what exceeds it fails here,
    and not only in the next `make bench`.
    """
    installation = subjects.install_subject(subjects.make_codeloop(), tmp_path)
    command = installation.fill(
        installation.subject.scripted, script=write_replay_script(tmp_path / "answer.jsonl")
    )
    run_command(command)  # the first run in a home makes the database
    count = count_imports(command)
    budget = next(row.at_most for row in BUDGETS if row.name == "answer-modules")
    assert count is not None
    assert budget is not None
    assert 300 < count <= budget


@pytest.mark.parametrize(("line", "pairs"), [("", []), ("agent", ["NAME"])])
def test_a_wrong_comparison_is_refused_with_the_reason(line: str, pairs: list[str]) -> None:
    with pytest.raises(ValueError, match="--against"):
        subjects.make_other(line, pairs, None)
