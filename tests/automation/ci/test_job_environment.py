"""The host of a job, from its flags and variables."""

from pathlib import Path

import pytest

from codeloop.schema.errors import UsageProblem
from codeloop_automation.ci.job_environment import HostName, JobFlags, make_host

GITHUB = {"GITHUB_REPOSITORY": "ada/app"}
GITLAB = {"CI_SERVER_URL": "https://gitlab.com", "CI_PROJECT_ID": "1", "CI_PROJECT_PATH": "ada/app"}


@pytest.mark.parametrize(
    ("name", "environment", "words"),
    [
        (
            "github",
            GITHUB,
            "GITHUB_TOKEN is not set. `codeloop ci setup` writes a file that sets it.",
        ),
        ("github", {}, "GITHUB_REPOSITORY is not set. The host sets it in its jobs"),
        ("gitlab", GITLAB, "CI_API_V4_URL is not set. The host sets it in its jobs"),
        (
            "gitlab",
            {**GITLAB, "CI_API_V4_URL": "https://gitlab.com/api/v4"},
            "CODELOOP_GITLAB_TOKEN is not set. Add it to the project's CI/CD variables",
        ),
    ],
)
def test_a_missing_variable_is_named_with_who_sets_it(
    name: HostName, environment: dict[str, str], words: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageProblem) as caught:
        make_host(name, JobFlags(), environment, tmp_path)
    assert words in str(caught.value)
