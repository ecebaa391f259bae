"""`codeloop fleet run --publish`: one pull request a repository,
found again whatever is killed or lost.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codeloop.schema.errors import UsageProblem
from codeloop_automation.fleet.repository_host import find_repository_host, normalise_address
from tests.automation.ci.ci_project import make_bare
from tests.automation.ci.github_server import GitHubServer
from tests.automation.ci.gitlab_server import GitLabServer
from tests.automation.ci.host_server import Fault, HostServer, serving_host
from tests.automation.fleet.test_fleet import last_prompt, write_table
from tests.cli.program import HANGING, Desk, call, serving, steps
from tests.support.answers import Answer
from tests.support.http_connection import ReceivedRequest


def write_asked(received: ReceivedRequest) -> Answer:
    """Answer as a model that writes the file with the text that the prompt names."""
    found = re.search(rb"write (\w+) to (\w+)", last_prompt(received))
    assert found
    text, name = found[1].decode(), found[2].decode()
    return steps(
        call("write", filePath=f"{name}.md", content=f"{text}\n"), Answer(text=f"I told @{name}.")
    )(received)


@contextmanager
def desk_at(folder: Path, host: HostServer) -> Generator[Desk]:
    """Make a desk whose git may clone from a host, and whose model writes files."""
    helper = f"!f() {{ echo username={host.git_user}; echo password={host.token}; }}; f"
    (folder / ".gitconfig").write_text(f'[credential]\n\thelper = "{helper}"\n')
    with serving_host(host), serving(write_asked) as model:
        variables = {
            "GITHUB_SERVER_URL": host.url,
            "GITHUB_API_URL": host.url,
            "GITHUB_TOKEN": host.token,
        }
        variables |= {"CI_SERVER_URL": "https://gitlab.example"}
        if isinstance(host, GitLabServer):
            variables = {"CI_SERVER_URL": host.url, "CODELOOP_GITLAB_TOKEN": host.token}
        desk = Desk(folder, environment=variables, limits={"automation.CI_RETRY": 5})
        desk.use(model, permission={"bash": "allow"})
        yield desk
        assert host.violations == []


def job(repository: str, text: str, name: str) -> dict[str, object]:
    return {"id": f"{name}-{text}", "repository": repository, "prompt": f"write {text} to {name}"}


def publish(
    desk: Desk, jobs: list[dict[str, object]], *more: str, code: int = 0, **env: str
) -> dict[str, Any]:
    """Run the fleet; return the pull request of each job, by id."""
    done = desk.run("fleet", "run", write_table(desk, jobs), "--publish", *more, **env)
    assert done.returncode == code, done.stdout + done.stderr
    rows = json.loads(desk.run("fleet", "show", "jobs", "--json", **env).stdout)
    return {row["id"]: row["pull"] for row in rows}


@pytest.mark.slow
def test_a_repository_has_one_pull_request_whatever_is_killed_lost_or_pushed_by_others(
    tmp_path: Path,
) -> None:
    host = GitHubServer(make_bare(tmp_path, {"a.md": "start\n"}))
    with desk_at(tmp_path, host) as desk:
        address = f"{host.url}/acme/calc.git"
        jobs = [
            job(address, "one", "b"),
            job(address.replace("//", "//x-access-token@"), "two", "c"),
            job(address, "six", "b"),
        ]
        table = write_table(desk, jobs)
        for at, fault in enumerate(
            (Fault("GET", r"/pulls\?", cut="after"), Fault("POST", r"/pulls$", cut="after"))
        ):
            coordinator = desk.start("fleet", "run", table, "--publish")
            fault.then = coordinator.kill
            host.faults.append(fault)
            coordinator.communicate(timeout=HANGING)
            assert coordinator.returncode == -9
            assert (len(host.git("branch", "--list", "codeloop/*").split()), len(host.pulls)) == (
                1,
                at,
            )
        pulls = publish(desk, jobs, code=1)
        (number,) = host.pulls
        assert {pull["number"] for pull in pulls.values()} == {number}
        assert pulls["b-six"]["problem"].endswith("those of the other jobs: b-six.")
        branch = pulls["b-one"]["branch"]
        assert host.git("show", f"{branch}:b.md") == "one"
        assert host.git("show", f"{branch}:c.md") == "two"
        pull = host.pulls[number]
        assert pull["title"] == "jobs: 2 changes"
        assert "I told @b" not in pull["body"], "nobody is notified"
        assert "I told" in pull["body"]

        jobs[2] = job(address, "six", "d")
        shutil.rmtree(desk.home / "data" / "fleet")
        pulls = publish(desk, jobs)
        assert (
            list(host.pulls),
            len(host.git("log", "--format=%s", f"main..{branch}").splitlines()),
        ) == ([number], 3)
        assert all(each["url"] == pull["html_url"] for each in pulls.values())

        seed = tmp_path / "seed"
        review = ["git", "-C", str(seed), "-c", "user.name=r", "-c", "user.email=r@e.org"]
        subprocess.run([*review, "fetch", "-q", str(host.bare), branch], check=True)
        subprocess.run([*review, "checkout", "-q", "FETCH_HEAD"], check=True)
        subprocess.run(
            [*review, "commit", "-q", "--allow-empty", "-m", "A reviewer's commit"], check=True
        )
        subprocess.run([*review, "push", "-q", str(host.bare), f"HEAD:{branch}"], check=True)
        jobs.append(job(address, "ten", "e"))
        publish(desk, jobs)
        titles = host.git("log", "--format=%s", f"main..{branch}").splitlines()
        assert titles[:2] == ["write ten to e", "A reviewer's commit"]
        assert (len(titles), list(host.pulls)) == (5, [number])
        page = tmp_path / "page.html"
        assert desk.run("fleet", "show", "jobs", "--html", str(page)).returncode == 0
        assert f'<a href="{pull["html_url"]}">pull request #{number}</a>' in page.read_text()

        asked = len(host.requests)
        host.pulls[number]["state"] = "closed"
        publish(desk, jobs)
        assert (len(host.requests), list(host.pulls)) == (asked, [number]), (
            "one that was closed is not opened again"
        )


@pytest.mark.slow
def test_gitlab_and_plain_repositories_get_theirs_and_a_branch_of_others_is_left_alone(
    tmp_path: Path,
) -> None:
    host = GitLabServer(make_bare(tmp_path, {"a.md": "start\n"}))
    with desk_at(tmp_path, host) as desk:
        plain = tmp_path / "plain.git"
        shutil.copytree(host.bare, plain)
        project = f"{host.url}/acme/calc.git"
        jobs = [job(project, "one", "b"), job(str(plain), "two", "c")]
        refused = publish(desk, jobs, code=1, CODELOOP_GITLAB_TOKEN="")
        assert "CODELOOP_GITLAB_TOKEN is not set" in refused["b-one"]["problem"]
        branch = refused["c-two"]["branch"]
        assert refused["c-two"]["problem"] == ""
        assert "two" in subprocess.check_output(
            ["git", "-C", plain, "show", f"{branch}:c.md"], text=True
        )
        done = desk.run("fleet", "publish", "jobs")
        assert done.returncode == 0, done.stdout
        (merge,) = host.merges.values()
        assert (merge["title"], merge["target_branch"]) == ("write one to b", "main")
        assert merge["web_url"] in desk.run("fleet", "show", "jobs").stdout

        taken = f"codeloop/again-{branch.rpartition('-')[2]}"
        subprocess.run(["git", "-C", plain, "branch", taken, branch], check=True)
        table = write_table(desk, jobs[1:])
        again = desk.run("fleet", "run", table, "--name", "again", "--publish")
        assert again.returncode == 1
        assert "has commits that are not of this fleet" in again.stdout


def test_one_repository_is_known_by_all_ways_to_write_it_and_so_is_its_host(tmp_path: Path) -> None:
    same = (
        "https://github.com/Acme/Calc.git",
        "git@github.com:acme/calc",
        "ssh://git@github.com:22/acme/calc.git/",
    )
    assert {normalise_address(each) for each in same} == {"github.com/acme/calc"}
    assert normalise_address(f"file://{tmp_path}") == normalise_address(str(tmp_path))
    for each in same:
        assert find_repository_host(each, "main", {"GITHUB_TOKEN": "t"}, tmp_path).name == "GitHub"
        with pytest.raises(UsageProblem, match="GITHUB_TOKEN is not set"):
            find_repository_host(each, "main", {}, tmp_path)
    own = {"CI_SERVER_URL": "https://git.example:8443", "CODELOOP_GITLAB_TOKEN": "t"}
    assert (
        find_repository_host("https://git.example:8443/a/b", "main", own, tmp_path).name == "GitLab"
    )
    assert (
        find_repository_host("https://elsewhere.example/a/b", "main", own, tmp_path).name == "git"
    )
    assert find_repository_host(str(tmp_path), "main", own, tmp_path).name == "git"
