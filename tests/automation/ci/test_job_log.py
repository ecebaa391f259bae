"""No text of a model, a stranger or a program is a command in the log of a job."""

import re
from pathlib import Path

import pytest

from codeloop_automation.ci.job_log import make_log_line
from tests.automation.ci.test_github import DONE, FIX, open_project
from tests.cli.program import bash


@pytest.mark.parametrize(
    "text",
    [
        "::error::x",
        "  ::add-mask::x",
        "a ::set-output name=x::y",
        "##[add-mask]x",
        "a ##[error]x",
        "##vso[task.setvariable variable=x]y",
        "##teamcity[x]",
        "###[group]",
        ":::error::",
        "\x1b[0Ksection_start:1:x\r\x1b[0Kx",
        "a\n::error::b",
    ],
)
def test_a_line_of_the_log_is_no_command(text: str) -> None:
    line = make_log_line(text)
    assert "::" not in line
    assert "##" not in line
    assert "\x1b" not in line
    assert "\r" not in line
    assert re.sub(r"\W", "", line) == re.sub(r"\W", "", make_log_line(re.sub("[:#]", "", text)))


def test_what_is_no_command_stays() -> None:
    line = "bash cat src/a.py:12 # a: b"
    assert make_log_line(line) == line


@pytest.mark.slow
def test_calls_errors_and_output_of_the_agent_are_no_commands_of_the_job(tmp_path: Path) -> None:
    sign = "##[add-mask]x ::error::y"
    with open_project(
        tmp_path, bash(f"echo '{sign}'", "c1"), bash(f"::error::z {sign}", "c2"), FIX, DONE
    ) as it:
        number = it.host.add_issue(f"add {sign}", "It subtracts.")
        payload = it.host.event("issues", "labeled", number, label={"name": "codeloop"})
        done = it.handle("issues", payload)
        assert done.returncode == 0, done.stderr
        assert "# #[add-mask]x : :error: :y" in done.stderr
        missing = it.handle(
            "issues", payload, "--model", "no::provider/##[error]x", run_id="2", GITHUB_RUN_ID="2"
        )
        bad = it.handle("schedule", {}, "--task", "x", "--base", "no::such##branch", run_id="3")
        assert bad.returncode == 1
        assert "no: :such# #branch" in bad.stderr
        unknown = it.handle(
            "schedule", {}, "--task", "x", "--model", "no::provider/##[error]x", run_id="4"
        )
        assert unknown.returncode != 0
        for output in (done, missing, bad, unknown):
            assert "::" not in output.stderr + output.stdout
            assert "##" not in output.stderr + output.stdout
