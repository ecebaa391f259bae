"""What is measured gets a home, a project and its placeholders filled in."""

import json
import subprocess
from pathlib import Path

import pytest

from bench import script, subject
from bench.budgets import BUDGETS
from bench.measure import imported, run


def test_a_place_has_a_home_and_a_clean_git_project(tmp_path: Path) -> None:
    place = subject.place(subject.codeloop(), tmp_path)
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=place.project, capture_output=True, text=True, check=True
    )
    assert status.stdout == ""
    assert (place.project / "add.py").is_file()
    assert list(place.home.iterdir()) == []


def test_placeholders_are_filled_in_and_other_braces_stay(tmp_path: Path) -> None:
    pairs = ["URL={url}", 'CONFIG={"base": "{url}", "home": "{home}", "models": {}}']
    other = subject.another("agent run --dir {project} '{prompt}'", pairs, None)
    place = subject.place(other, tmp_path)
    command = place.fill(other.argv, "http://127.0.0.1:1/v1")
    assert command.argv == ["agent", "run", "--dir", str(place.project), subject.PROMPT]
    assert command.environ["URL"] == "http://127.0.0.1:1/v1"
    assert json.loads(command.environ["CONFIG"]) == {
        "base": command.environ["URL"],
        "home": str(place.home),
        "models": {},
    }
    assert command.environ["HOME"] == str(place.home)


def test_nothing_of_the_callers_environment_reaches_a_subject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_API_KEY", "k")
    place = subject.place(subject.codeloop(), tmp_path)
    assert "SECRET_API_KEY" not in place.fill(place.subject.argv).environ


def test_the_model_of_codeloop_is_the_benchs_server(tmp_path: Path) -> None:
    place = subject.place(subject.codeloop(), tmp_path)
    config = json.loads(place.fill(place.subject.argv, "http://127.0.0.1:1/v1").environ["CODELOOP_CONFIG_CONTENT"])
    assert config["provider"]["bench"]["options"]["baseURL"] == "http://127.0.0.1:1/v1"


@pytest.mark.slow
def test_a_text_answer_imports_no_more_modules_than_its_budget(tmp_path: Path) -> None:
    """A count is the same on every machine: what exceeds it fails here, and not only in the next `make bench`."""
    place = subject.place(subject.codeloop(), tmp_path)
    command = place.fill(place.subject.scripted, script=script.write(tmp_path / "answer.jsonl"))
    run(command)  # the first run in a home makes the database
    count = imported(command)
    budget = next(row.at_most for row in BUDGETS if row.name == "answer-modules")
    assert count is not None
    assert budget is not None
    assert 300 < count <= budget


@pytest.mark.parametrize(("line", "pairs"), [("", []), ("agent", ["NAME"])])
def test_a_wrong_comparison_is_refused_with_the_reason(line: str, pairs: list[str]) -> None:
    with pytest.raises(ValueError, match="--against"):
        subject.another(line, pairs, None)
