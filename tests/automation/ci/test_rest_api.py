"""Requests to a host that fails, limits and lies."""

from collections.abc import Generator
from pathlib import Path

import pytest

from codeloop.schema.errors import UsageProblem
from codeloop.schema.wire import replace
from codeloop_automation.ci.agent_program import AgentLimits
from codeloop_automation.ci.event import CiEvent
from codeloop_automation.ci.event_runner import (
    COMMENT_MARKER,
    ThreadRecord,
    read_record,
    render_comment,
    run_event,
)
from codeloop_automation.ci.hosts import rest_api
from codeloop_automation.ci.hosts.github import GitHub
from codeloop_automation.ci.hosts.host import HostProblem
from codeloop_automation.ci.job import JobSettings
from tests.automation.ci.github_server import BOT, REPOSITORY, GitHubServer
from tests.automation.ci.host_server import Fault, serving_host
from tests.model.local_server import http, serving


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[GitHubServer]:
    monkeypatch.setattr(rest_api, "CI_RETRY", replace(rest_api.CI_RETRY, value=2))
    with serving_host(GitHubServer(tmp_path / "no-repository")) as server:
        yield server


def client(host: GitHubServer, token: str = "") -> GitHub:
    return GitHub(host.url, REPOSITORY, token or host.token, "")


async def test_all_pages_are_read_and_comments_of_others_are_never_ours(host: GitHubServer) -> None:
    number = host.add_issue("t", "b")
    for at in range(7):
        host.add_comment(number, f"{COMMENT_MARKER} {at}", "eve")
    own = host.add_comment(number, f"{COMMENT_MARKER} ours", BOT["login"])
    host.page_size = 3
    github = client(host)
    found = await github.find_comment(number, is_pull=False, marker=COMMENT_MARKER)
    assert found is not None
    assert found.id == str(own["id"])
    assert len((await github.read_thread(number, is_pull=False)).texts) == 7
    await github.close()


@pytest.mark.parametrize(
    "faults",
    [
        [Fault("POST", "/comments", cut="after")],
        [Fault("POST", "/comments", cut="before")],
        [Fault("POST", "/comments", status=500), Fault("POST", "/comments", status=502)],
        [Fault("POST", "/comments", status=403, headers={"Retry-After": "0"})],
        [Fault("POST", "/comments", status=429, headers={"Retry-After": "0"})],
        [Fault("GET", "/comments", status=503, times=4), Fault("POST", "/comments", cut="after")],
    ],
)
async def test_a_comment_is_there_once_whatever_happens_to_requests(
    host: GitHubServer, faults: list[Fault]
) -> None:
    number = host.add_issue("t", "b")
    host.faults = [replace_fault(fault) for fault in faults]
    github = client(host)
    await github.write_comment(number, f"{COMMENT_MARKER} a", is_pull=False, marker=COMMENT_MARKER)
    await github.write_comment(number, f"{COMMENT_MARKER} b", is_pull=False, marker=COMMENT_MARKER)
    assert host.own_comments(number) == [f"{COMMENT_MARKER} b"]
    assert host.violations == []
    await github.close()


def replace_fault(fault: Fault) -> Fault:
    """Return a fault of its own: it counts down."""
    return Fault(fault.method, fault.path, fault.status, fault.cut, fault.headers, fault.times)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (
            Fault("GET", "/issues", status=500, times=99),
            "answered GET .* with 500: made to fail.* Start the job again",
        ),
        (
            Fault("GET", "/issues", status=403, times=99),
            "with 403: made to fail.* `contents: write`",
        ),
        (Fault("GET", "/issues", status=404, times=99), "with 404.* repository's name"),
        (
            Fault("GET", "/issues", status=301, times=99),
            "with 301: it has moved.* name and address",
        ),
        (Fault("GET", "/issues", status=403, headers={"Retry-After": "99999"}), "with 403"),
        (Fault("GET", "/issues", cut="before", times=99), "can't be reached"),
    ],
)
async def test_what_fails_for_good_says_what_to_do(
    host: GitHubServer, fault: Fault, words: str
) -> None:
    number = host.add_issue("t", "b")
    host.faults = [replace_fault(fault)]
    github = client(host)
    with pytest.raises(HostProblem, match=words):
        await github.read_thread(number, is_pull=False)
    await github.close()


@pytest.mark.parametrize(
    "body", [b'[{"title":"\xff"}]', b"[" * 3000 + b"]" * 3000], ids=["not UTF-8", "nested deeply"]
)
async def test_an_answer_that_can_not_be_decoded_is_no_json(body: bytes) -> None:
    async with serving(http(body)) as (url, _):
        github = GitHub(url, REPOSITORY, "token", "")
        with pytest.raises(HostProblem, match="something that is not JSON"):
            await github.read_thread(1, is_pull=False)
        await github.close()


async def test_a_revoked_token_names_the_secret_and_is_not_shown(host: GitHubServer) -> None:
    github = client(host, "gone-token")
    with pytest.raises(HostProblem, match="expired or revoked") as caught:
        await github.can_write("ada")
    assert "gone-token" not in str(caught.value)
    await github.close()


async def test_roles_decide_who_may_ask(host: GitHubServer) -> None:
    host.roles |= {"max": "maintain", "root": "admin", "tri": "triage"}
    github = client(host)
    allowed = [
        name
        for name in ("ada", "eve", "max", "root", "tri", "nobody")
        if await github.can_write(name)
    ]
    assert allowed == ["ada", "max", "root"]
    await github.close()


async def test_a_next_page_on_another_server_gets_no_token(
    host: GitHubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = host.add_issue("t", "b")
    for _ in range(3):
        host.add_comment(number, "x", "eve")
    host.page_size = 1
    monkeypatch.setattr(GitHubServer, "url", property(lambda _: "http://evil.example"))
    github = GitHub(f"http://127.0.0.1:{host.port}", REPOSITORY, host.token, "")
    with pytest.raises(HostProblem, match="another server"):
        await github.read_thread(number, is_pull=False)
    await github.close()


async def test_a_job_waits_for_another_one_on_the_same_thread_and_says_how_it_failed(
    host: GitHubServer, tmp_path: Path
) -> None:
    number = host.add_issue("t", "b")
    busy = ThreadRecord(done=("comment-1",), run="other", until=2**40)
    host.add_comment(number, render_comment(busy, "working on it", "", ()), BOT["login"], "Bot")
    settings = JobSettings(
        work=tmp_path,
        output=tmp_path / "out",
        limits=AgentLimits(cost=1, steps=1, seconds=1, profile="auto"),
        run_id="mine",
    )
    lines = list[str]()
    host.runs["other"] = "in_progress"

    def write_log(line: str) -> None:
        """Note a line; when it says that the other job is waited for, that one's time is up."""
        lines.append(line)
        host.comments[0]["body"] = render_comment(replace(busy, until=1), "working on it", "", ())

    github = client(host)
    event = CiEvent(kind="comment", key="comment-2", actor="ada", number=number, text="/codeloop")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "codeloop_automation.ci.event_runner.CI_POLL", replace(rest_api.CI_RETRY, value=100)
        )
        with pytest.raises(UsageProblem, match="not the top folder of a git checkout"):
            await run_event(github, event, settings, write_log)
    assert "Another job works on this" in lines[0]
    lines.clear()
    host.comments[0]["body"] = render_comment(busy, "working on it", "", ())
    host.runs["other"] = "completed"
    with pytest.raises(UsageProblem):
        await run_event(github, event, settings, lines.append)
    assert "Another job" not in "".join(lines), "a job that was killed is not waited for"
    (text,) = host.own_comments(number)
    assert "**codeloop** · failed" in text
    assert read_record(text) == ThreadRecord(done=("comment-1",)), (
        "the request is not done, and the thread is free"
    )
    await github.close()
