"""The file that `codeloop ci setup` writes."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop_automation.ci.setup_file.install_source import InstallSource
from codeloop_automation.ci.setup_file.setup_file import make_setup_file, write_setup_file

SOURCE = InstallSource(
    "https://git.example/team/codeloop.git", "0123456789abcdef0123456789abcdef01234567"
)


def test_the_github_file_gives_forks_nothing_and_asks_for_no_more_than_it_needs(
    tmp_path: Path,
) -> None:
    made = make_setup_file("github", SOURCE, "openai/gpt-5", "/codeloop", "", 30, 1.5)
    assert write_setup_file(tmp_path, made, force=False)
    assert not write_setup_file(tmp_path, made, force=False)
    text = (tmp_path / ".github/workflows/codeloop.yml").read_text()
    document: Any = yaml.safe_load(text)
    job = document["jobs"]["codeloop"]
    assert "pull_request_target" not in document[True]
    assert "workflow_run" not in document[True]
    assert document["permissions"] == {}
    assert job["permissions"] == {
        "actions": "read",
        "contents": "write",
        "issues": "write",
        "pull-requests": "write",
    }
    assert "head.repo.full_name == github.repository" in job["if"]
    assert "contains(github.event.comment.body, '/codeloop')" in job["if"]
    assert "github.event.issue" not in document["concurrency"]["group"], (
        "a comment would cancel a request that waits"
    )
    assert document["concurrency"]["cancel-in-progress"] is False
    assert job["timeout-minutes"] == 30
    checkout, *_, install, start, upload = job["steps"]
    assert checkout["with"] == {"persist-credentials": False}
    assert (
        start["run"]
        == 'exec "$RUNNER_TEMP/codeloop/.venv/bin/codeloop" ci run --model openai/gpt-5 --max-cost 1.5'
    )
    assert f"clone --quiet --no-checkout {SOURCE.address} " in install["run"]
    assert f"checkout --quiet --detach {SOURCE.commit}\n" in install["run"]
    assert "env" not in install, "what is installed sees no key"
    assert {*start["env"]} == {"GITHUB_TOKEN", "OPENAI_API_KEY"}
    assert start["env"]["OPENAI_API_KEY"] == "${{ secrets.OPENAI_API_KEY }}"
    assert "${{" not in start["run"], "no text of an event is ever part of a command line"
    assert upload["if"] == "always()"
    assert "OPENAI_API_KEY" in made.steps[0]


def test_the_gitlab_file_starts_for_its_own_merge_requests_only() -> None:
    made = make_setup_file("gitlab", SOURCE, "", "/bot", "MY_KEY", 60, None)
    document = yaml.safe_load(made.text)
    rules = [rule["if"] for rule in document["codeloop"]["rules"]]
    assert "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID" in rules[0]
    *install, start = document["codeloop"]["script"]
    assert start == 'exec "$CI_PROJECT_DIR.codeloop/.venv/bin/codeloop" ci run --trigger /bot'
    assert f"git clone --quiet --no-checkout {SOURCE.address} " in install[1]
    assert install[2].endswith(f"checkout --quiet --detach {SOURCE.commit}")
    assert "MY_KEY" in made.text


def test_another_file_is_kept_and_words_that_would_change_it_are_refused(tmp_path: Path) -> None:
    made = make_setup_file("github", SOURCE, "", "/codeloop", "", 60, None)
    (tmp_path / made.path).parent.mkdir(parents=True)
    (tmp_path / made.path).write_text("name: mine\n")
    with pytest.raises(UsageProblem, match="--force"):
        write_setup_file(tmp_path, made, force=False)
    assert write_setup_file(tmp_path, made, force=True)
    for model in ("a b", "x'; rm -rf /", "a/${{ github.token }}"):
        with pytest.raises(UsageProblem, match="--model"):
            make_setup_file("github", SOURCE, model, "/codeloop", "", 60, None)


@pytest.mark.parametrize(
    "planted", [".github", ".github/workflows", ".github/workflows/codeloop.yml"]
)
def test_a_link_of_the_project_leads_the_file_nowhere_else(tmp_path: Path, planted: str) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    for folder in (elsewhere / "workflows", (project / planted).parent):
        folder.mkdir(parents=True)
    (project / planted).symlink_to(
        elsewhere / "none.yml" if planted.endswith(".yml") else elsewhere
    )
    with pytest.raises(CodeloopError, match="link"):
        write_setup_file(
            project, make_setup_file("github", SOURCE, "", "/codeloop", "", 60, None), force=True
        )
    assert [path for path in elsewhere.rglob("*") if not path.is_dir()] == []
