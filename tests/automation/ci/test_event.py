"""What an event asks for, and who asks."""

from typing import Any

import pytest

from codeloop.schema.errors import UsageProblem
from codeloop_automation.ci.event import (
    CiEvent,
    Review,
    Skip,
    Task,
    extract_request,
    plan_work,
    read_github_event,
    read_gitlab_event,
)

ADA = {"login": "ada", "type": "User"}
OWN = {"full_name": "acme/calc"}


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("/codeloop", ""),
        ("Fix it.\r\n/codeloop  \r\nWith a test.", "Fix it.\nWith a test."),
        ("/codeloop fix it", None),
        (" /codeloop", None),
        ("use /codeloop here", None),
        ("> /codeloop", None),
        ("```\n/codeloop\n```", None),
        ("```\n~~~\n/codeloop\n```\n/codeloop", "```\n~~~\n/codeloop\n```"),
        ("~~~~\n~~~\n/codeloop\n~~~~", None),
        ("/CODELOOP", None),
        ("", None),
    ],
)
def test_only_the_exact_line_is_a_request(text: str, request_: str | None) -> None:
    assert extract_request(text, "/codeloop") == request_


def event(**more: Any) -> CiEvent:
    given: dict[str, Any] = {
        "kind": "comment",
        "key": "k",
        "actor": "ada",
        "number": 1,
        "text": "/codeloop\nFix it.",
    }
    return CiEvent(**{**given, **more})


@pytest.mark.parametrize(
    ("given", "plan"),
    [
        (event(), Task("Fix it.")),
        (event(text="hello"), Skip),
        (event(is_bot=True), Skip),
        (event(is_fork=True, is_pull=True), Skip),
        (event(text="/codeloop\nReview!", is_pull=True), Review()),
        (event(text="/codeloop\nreview"), Skip),
        (event(kind="label", about="codeloop", text=""), Task("")),
        (event(kind="label", about="bug", text=""), Skip),
        (event(kind="pull", is_pull=True, text="words"), Review()),
        (event(kind="pull", is_pull=True, text="words", is_draft=True), Skip),
        (event(kind="pull", is_pull=True, text="words", is_fork=True), Skip),
        (event(kind="pull", is_pull=True), Task("Fix it.")),
        (event(kind="schedule", text="Tidy up."), Task("Tidy up.")),
        (event(kind="dispatch", text=" "), Skip),
    ],
)
def test_an_event_is_planned(given: CiEvent, plan: Any) -> None:
    planned = plan_work(given, "/codeloop", "codeloop", reviews_every_pull=True)
    assert isinstance(planned, plan) if isinstance(plan, type) else planned == plan


def test_reviews_that_nobody_asked_for_can_be_turned_off() -> None:
    assert isinstance(
        plan_work(
            event(kind="pull", is_pull=True, text=""),
            "/codeloop",
            "codeloop",
            reviews_every_pull=False,
        ),
        Skip,
    )


def pull(repository: str | None = "acme/calc") -> dict[str, Any]:
    head = {"sha": "abc", "ref": "x", "repo": {"full_name": repository} if repository else None}
    times = {"created_at": "1970-01-01T00:00:07Z", "updated_at": "1970-01-01T00:00:09Z"}
    return {
        "number": 4,
        "head": head,
        "base": {"repo": OWN},
        "title": "A",
        "body": "/codeloop",
        **times,
    }


def test_github_events_are_read() -> None:
    payload = {
        "sender": ADA,
        "action": "created",
        "issue": {"number": 4, "pull_request": {}, "title": "A", "body": None},
        "comment": {"id": 9, "body": "x", "created_at": "1970-01-01T00:00:08Z"},
    }
    assert read_github_event("issue_comment", payload, "1", "") == CiEvent(
        kind="comment",
        key="comment-9",
        actor="ada",
        number=4,
        is_pull=True,
        text="x",
        title="A",
        body="",
        source="issues/comments/9",
        moment=8.0,
    )
    assert isinstance(
        read_github_event("issue_comment", {**payload, "action": "edited"}, "1", ""), Skip
    )
    assert isinstance(read_github_event("push", {}, "1", ""), Skip)
    opened = read_github_event(
        "pull_request", {"sender": ADA, "action": "opened", "pull_request": pull()}, "1", ""
    )
    assert opened == CiEvent(
        kind="pull",
        key="pull-4-abc",
        actor="ada",
        number=4,
        is_pull=True,
        is_fork=False,
        text="/codeloop",
        title="A",
        body="/codeloop",
        moment=7.0,
    )
    for repository in ("eve/calc", None):
        given = {"sender": ADA, "action": "synchronize", "pull_request": pull(repository)}
        fork = read_github_event("pull_request", given, "1", "")
        assert isinstance(fork, CiEvent)
        assert fork.is_fork
    review = {
        "sender": ADA,
        "action": "submitted",
        "pull_request": pull(),
        "review": {"id": 3, "body": None},
    }
    assert read_github_event("pull_request_review", review, "1", "") == CiEvent(
        kind="comment",
        key="review-3",
        actor="ada",
        number=4,
        is_pull=True,
        is_fork=False,
        title="A",
        body="/codeloop",
        source="pulls/4/reviews/3",
        moment=0.0,
    ), "an event without a time is older than all that others wrote"
    label = {
        "sender": ADA,
        "action": "labeled",
        "label": {"name": "codeloop"},
        "issue": {"number": 2, "updated_at": "1970-01-01T00:00:05Z", "title": "A", "body": "B"},
    }
    assert read_github_event("issues", label, "1", "") == CiEvent(
        kind="label",
        key="issue-2-labeled-19700101000005",
        actor="ada",
        number=2,
        about="codeloop",
        title="A",
        body="B",
        moment=5.0,
    )
    assert read_github_event("schedule", {}, "8", "Tidy up.") == CiEvent(
        kind="schedule", key="schedule-8", text="Tidy up."
    )
    by_hand = read_github_event(
        "workflow_dispatch", {"sender": ADA, "inputs": {"task": "Do."}}, "8", "Tidy up."
    )
    assert by_hand == CiEvent(kind="dispatch", key="dispatch-8", actor="ada", text="Do.")
    for name in ("pull_request_target", "workflow_run"):
        with pytest.raises(UsageProblem, match="secrets"):
            read_github_event(name, {}, "1", "")


def test_gitlab_events_are_read() -> None:
    note: dict[str, Any] = {
        "object_kind": "note",
        "user": {"id": 5, "username": "ada"},
        "object_attributes": {
            "id": 9,
            "note": "/codeloop",
            "action": "create",
            "created_at": "1970-01-01 00:00:06 UTC",
            "position": {"new_path": "a.py", "new_line": 3},
        },
        "merge_request": {
            "iid": 4,
            "source_project_id": 1,
            "target_project_id": 1,
            "title": "A",
            "description": "B",
        },
    }
    assert read_gitlab_event({}, note, "") == CiEvent(
        kind="comment",
        key="comment-9",
        actor="5",
        number=4,
        is_pull=True,
        is_fork=False,
        text="/codeloop",
        about="a.py:3",
        title="A",
        body="B",
        source="merge_requests/4/notes/9",
        moment=6.0,
    )
    bot = read_gitlab_event({}, {**note, "user": {"id": 5, "username": "project_7_bot_ab"}}, "")
    assert isinstance(bot, CiEvent)
    assert bot.is_bot
    assert isinstance(read_gitlab_event({}, {"object_kind": "push"}, ""), Skip)
    assert isinstance(read_gitlab_event({"CI_PIPELINE_SOURCE": "push"}, None, ""), Skip)
    merge = {
        "CI_PIPELINE_SOURCE": "merge_request_event",
        "CI_MERGE_REQUEST_IID": "4",
        "CI_MERGE_REQUEST_PROJECT_ID": "1",
        "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "2",
    }
    fork = read_gitlab_event(merge, None, "")
    assert isinstance(fork, CiEvent)
    assert fork.is_fork
    task = read_gitlab_event(
        {"CI_PIPELINE_SOURCE": "schedule", "CI_PIPELINE_ID": "3"}, None, "Tidy up."
    )
    assert task == CiEvent(kind="schedule", key="schedule-3", text="Tidy up.")
