"""The event that a host passes to a CI job: the parsers for GitHub and GitLab,
and the decision what to do. No I/O.
"""

import math
import re
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from codeloop.schema.errors import UsageProblem
from codeloop.schema.wire import JSON
from codeloop_automation.ci.json_fields import get_object, get_text, parse_moment

EventKind = Literal["comment", "issue", "label", "pull", "schedule", "dispatch"]
# The GitHub events that codeloop handles.
_EVENT_NAMES = frozenset(
    (
        *(
            "issue_comment",
            "issues",
            "pull_request",
            "pull_request_review",
            "pull_request_review_comment",
        ),
        *("schedule", "workflow_dispatch"),
    )
)
# The actions of these events that are ignored: an edit, for example, is not a new request.
_IGNORED_ACTIONS = frozenset(
    (
        *(("issue_comment", each) for each in ("edited", "deleted")),
        *(
            ("issues", each)
            for each in ("edited", "closed", "reopened", "deleted", "unlabeled", "assigned")
        ),
        *(
            ("pull_request", each)
            for each in ("closed", "edited", "labeled", "unlabeled", "assigned")
        ),
        *(("pull_request_review", each) for each in ("edited", "dismissed")),
        *(("pull_request_review_comment", each) for each in ("edited", "deleted")),
    )
)


class CiEvent(Struct, frozen=True, kw_only=True):
    """One event of a host. `key`: identifies the event,
    and is the same when a host delivers it twice.
    """

    kind: EventKind
    key: str
    actor: str = ""
    """The user who caused the event, as `Host.can_write` takes it; "" for a schedule."""
    is_bot: bool = False
    number: int = 0
    """The number of the issue or pull request; 0 for none."""
    is_pull: bool = False
    is_fork: bool | None = None
    """Whether the pull request comes from a fork; None: the event does not say."""
    is_draft: bool = False
    text: str = ""
    """The text that may contain the trigger, or the task of a schedule or of a run by hand."""
    about: str = ""
    """What the text is about, such as lines of a file; for the kind "label", the label."""
    title: str | None = None
    """The title of the issue or pull request at the event; None: the event does not say."""
    body: str | None = None
    """Its description at the event; None: the event does not say."""
    source: str = ""
    """The path of the comment that `text` is, as `Host.read_text` takes it;
    "": it is not a comment.
    """
    moment: float = math.inf
    """The time of the event in seconds since the epoch;
    inf: the event is about what is there now.
    """


class Task(Struct, frozen=True):
    """A task for the agent. `text`: the request of a user with write access;
    "": the whole thread is the request.
    """

    text: str


class Review(Struct, frozen=True):
    """A pull request to review."""


class Skip(Struct, frozen=True):
    """The decision to do nothing. `reason`: a line for the log."""

    reason: str


def plan_work(
    event: CiEvent, trigger: str, label: str, *, reviews_every_pull: bool
) -> Task | Review | Skip:
    """Decide what to do about an event.

    `trigger`: the line of a comment that starts work; `label`: the label of an issue that does.
    `reviews_every_pull`: pull requests are reviewed also without a comment that asks for it.
    """
    # Two programs that answer each other's comments could go on for ever.
    if event.is_bot:
        return Skip("a program caused the event; programs are not answered")
    if event.is_fork:
        return Skip(
            "the pull request comes from a fork; nothing of a fork is run where secrets are"
        )
    request = extract_request(event.text, trigger)
    match event.kind:
        case "schedule" | "dispatch":
            return Task(event.text) if event.text.strip() else Skip("no task was given: set --task")
        case "label":
            return Task("") if event.about == label else Skip(f"the label is not `{label}`")
        case "pull" if request is None and reviews_every_pull:
            return Skip("the pull request is a draft") if event.is_draft else Review()
        case _ if request is None:
            return Skip(f"no line of the text is `{trigger}`")
        case _ if request.lower().rstrip(".!") == "review":
            return Review() if event.is_pull else Skip("only pull requests can be reviewed")
        case _:
            return Task(request)


def extract_request(text: str, trigger: str) -> str | None:
    """Return the text without the line that is exactly the trigger; None if it has no such line.

    Lines in a fenced block of code never count, nor do quoted ones, which begin with `>`.
    """
    lines, has_trigger = list[str](), False
    # The opening line of the block of code around the current line, such as ``` or ~~~~; "" outside
    # of blocks. As in Markdown, a block ends at a fence of the same character
    # that is at least as long.
    fence = ""
    for line in text.splitlines():
        fence_match = re.match(r" {0,3}(`{3,}|~{3,})", line)
        if fence_match and not fence:
            fence = fence_match[1]
        elif fence_match and fence_match[1].startswith(fence):
            fence = ""
        elif not fence and line.rstrip() == trigger:
            has_trigger = True
            continue
        lines.append(line)
    return "\n".join(lines).strip() if has_trigger else None


def read_github_event(name: str, payload: JSON, run_id: str, task: str) -> CiEvent | Skip:
    """Parse the event of a GitHub job. Raises UsageProblem for an event that gives
    secrets to code of forks.
    """
    # GitHub runs these two with the secrets of the repository, also when a fork causes them.
    if name in {"pull_request_target", "workflow_run"}:
        raise UsageProblem(
            f"The workflow is started by `{name}`, which gives secrets to jobs about code of strangers. "
            "Use the events that `codeloop ci setup` writes."
        )
    action = get_text(payload, "action")
    if (name, action) in _IGNORED_ACTIONS or name not in _EVENT_NAMES:
        return Skip(f"`{name}`{f' ({action})' if action else ''} is not an event for codeloop")
    sender = get_object(payload, "sender")
    common_fields: JSON = {
        "actor": get_text(sender, "login"),
        "is_bot": sender.get("type") == "Bot",
    }
    if name == "schedule":
        return CiEvent(kind="schedule", key=f"schedule-{run_id}", text=task)
    if name == "workflow_dispatch":
        requested_task = get_object(payload, "inputs").get("task") or task
        return CiEvent(
            kind="dispatch", key=f"dispatch-{run_id}", text=requested_task, **common_fields
        )
    if name in {"issue_comment", "issues"}:
        # To GitHub, a pull request is also an issue, with one more field.
        issue = payload["issue"]
        common_fields |= {
            "number": issue["number"],
            "is_pull": "pull_request" in issue,
            **_read_github_text(issue),
        }
        if name == "issue_comment":
            comment = payload["comment"]
            return CiEvent(
                kind="comment",
                key=f"comment-{comment['id']}",
                text=get_text(comment, "body"),
                source=f"issues/comments/{comment['id']}",
                moment=_read_moment(comment, "created_at"),
                **common_fields,
            )
        common_fields["moment"] = _read_moment(
            issue, "updated_at" if action == "labeled" else "created_at"
        )
        if action == "labeled":
            label = payload["label"]["name"]
            # The time makes the key: a label that is removed and set again is a new event.
            moment = re.sub(r"\D", "", get_text(issue, "updated_at"))
            return CiEvent(
                kind="label",
                key=f"issue-{issue['number']}-labeled-{moment}",
                about=label,
                **common_fields,
            )
        return CiEvent(
            kind="issue",
            key=f"issue-{issue['number']}-opened",
            text=get_text(issue, "body"),
            **common_fields,
        )
    return _read_github_pull(name, payload, common_fields)


def _read_github_pull(name: str, payload: JSON, common_fields: JSON) -> CiEvent:
    """Parse an event about a pull request or a review of one.
    `common_fields`: the fields of the event's sender.
    """
    pull = payload["pull_request"]
    # The repository of the head is null when the fork was deleted, which is a fork all the same.
    head = get_object(pull["head"], "repo").get("full_name")
    is_fork = head != pull["base"]["repo"]["full_name"]
    pull_fields: JSON = {
        **common_fields,
        **_read_github_text(pull),
        "number": pull["number"],
        "is_pull": True,
        "is_fork": is_fork,
        "is_draft": bool(pull.get("draft")),
    }
    match name:
        case "pull_request_review":
            review = payload["review"]
            return CiEvent(
                kind="comment",
                key=f"review-{review['id']}",
                text=get_text(review, "body"),
                source=f"pulls/{pull['number']}/reviews/{review['id']}",
                moment=_read_moment(review, "submitted_at"),
                **pull_fields,
            )
        case "pull_request_review_comment":
            comment = payload["comment"]
            # `line` is null when a later push has changed the line.
            line = comment.get("line") or get_text(comment, "original_line")
            about = f"{comment.get('path', '')}:{line}\n{comment.get('diff_hunk', '')}"
            return CiEvent(
                kind="comment",
                key=f"line-comment-{comment['id']}",
                text=get_text(comment, "body"),
                about=about,
                source=f"pulls/comments/{comment['id']}",
                moment=_read_moment(comment, "created_at"),
                **pull_fields,
            )
        case _:
            # The description may contain a request. It counts once: a later
            # push does not repeat it.
            is_opened = payload.get("action") == "opened"
            return CiEvent(
                kind="pull",
                key=f"pull-{pull['number']}-{pull['head']['sha']}",
                text=get_text(pull, "body") if is_opened else "",
                moment=_read_moment(pull, "created_at" if is_opened else "updated_at"),
                **pull_fields,
            )


def _read_github_text(thread: JSON) -> JSON:
    """Return the fields `title` and `body` of an event about an issue or a pull request."""
    return {"title": get_text(thread, "title"), "body": get_text(thread, "body")}


def _read_moment(row: JSON, name: str) -> float:
    """Return the time in a field; 0 for none, so that nothing counts as older than the event."""
    moment = parse_moment(get_text(row, name))
    return moment if math.isfinite(moment) else 0.0


def read_gitlab_event(
    environment: Mapping[str, str], payload: JSON | None, task: str
) -> CiEvent | Skip:
    """Parse the event of a GitLab job. `payload`: that of the webhook which triggered the pipeline,
    if one did.
    """
    source, pipeline = (
        environment.get("CI_PIPELINE_SOURCE", ""),
        environment.get("CI_PIPELINE_ID", "0"),
    )
    user = environment.get("GITLAB_USER_ID", "")
    # GitLab starts no pipelines for comments: a webhook for notes calls the trigger API,
    # which passes its payload on.
    if payload is not None:
        return _read_gitlab_note(payload)
    match source:
        case "merge_request_event":
            project = environment.get("CI_MERGE_REQUEST_PROJECT_ID", "")
            number = int(environment.get("CI_MERGE_REQUEST_IID", "0"))
            return CiEvent(
                kind="pull",
                key=f"pull-{number}-{environment.get('CI_COMMIT_SHA', '')}",
                actor=user,
                number=number,
                is_pull=True,
                is_fork=environment.get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "") != project,
                is_draft=environment.get("CI_MERGE_REQUEST_DRAFT", "") == "true",
            )
        case "schedule":
            return CiEvent(kind="schedule", key=f"schedule-{pipeline}", text=task)
        case "web" | "api" | "trigger":
            return CiEvent(kind="dispatch", key=f"dispatch-{pipeline}", actor=user, text=task)
        case _:
            return Skip(f"pipelines of `{source}` are not an event for codeloop")


def _read_gitlab_note(payload: JSON) -> CiEvent | Skip:
    """Parse the payload of a webhook for comments, which GitLab calls notes."""
    note = get_object(payload, "object_attributes")
    if payload.get("object_kind") != "note" or note.get("action", "create") != "create":
        return Skip("the webhook sent something else than a new comment")
    pull, issue = payload.get("merge_request"), payload.get("issue")
    thread = pull or issue
    if thread is None:
        return Skip("the comment is neither on an issue nor on a merge request")
    user = get_object(payload, "user")
    username = get_text(user, "username")
    position = get_object(note, "position")
    kind = "issues" if pull is None else "merge_requests"
    return CiEvent(
        kind="comment",
        key=f"comment-{note['id']}",
        title=get_text(thread, "title"),
        body=get_text(thread, "description"),
        source=f"{kind}/{thread['iid']}/notes/{note['id']}",
        moment=_read_moment(note, "created_at"),
        actor=get_text(user, "id"),
        # GitLab names the accounts of access tokens `project_ID_bot_HASH` and `group_ID_bot_HASH`.
        is_bot=username.startswith(("project_", "group_")) and "_bot" in username,
        number=thread["iid"],
        is_pull=pull is not None,
        is_fork=pull is not None and pull.get("source_project_id") != pull.get("target_project_id"),
        text=get_text(note, "note"),
        about=f"{position.get('new_path')}:{position.get('new_line')}" if position else "",
    )
