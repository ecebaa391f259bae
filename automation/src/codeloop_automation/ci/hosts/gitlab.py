"""GitLab as a host of `codeloop ci` and of fleets, by its REST API.
It says merge request for pull request.
"""

import base64
from collections.abc import Sequence
from urllib.parse import quote

from codeloop import __version__
from codeloop.schema.wire import JSON
from codeloop_automation.ci.hosts.host import (
    Author,
    Comment,
    HostProblem,
    LineComment,
    PullRequest,
    Thread,
    ThreadText,
)
from codeloop_automation.ci.hosts.rest_api import RestApi
from codeloop_automation.ci.json_fields import get_object, get_text, parse_moment

_ADVICE_BY_STATUS = {
    401: "The token is wrong, expired or revoked: make a project access token and set it as CODELOOP_GITLAB_TOKEN.",
    403: "The token needs the role Developer and the scopes `api` and `write_repository`.",
    404: "Check the project, and that the token may read it.",
}
# The lowest access level that may push.
_DEVELOPER_LEVEL = 30


class GitLab:
    """A project on GitLab. `project`: its number or full path; `api`: `https://HOST/api/v4`."""

    name = "GitLab"
    author = Author("codeloop", "codeloop@users.noreply.invalid")

    def __init__(self, api: str, project: str, token: str, remote: str) -> None:
        self.remote = remote
        self.token = token
        headers = {
            "private-token": token,
            "accept": "application/json",
            "user-agent": f"codeloop/{__version__}",
        }
        self._rest = RestApi(self.name, api, headers, _ADVICE_BY_STATUS)
        self._path = f"/projects/{quote(project, safe='')}"
        self._own_user_id = 0

    def make_git_credential(self) -> str:
        """Return the value of the Authorization header of git's requests."""
        # Git over HTTP takes a token as the password of the user `oauth2`.
        return f"Basic {base64.b64encode(f'oauth2:{self.token}'.encode()).decode()}"

    async def can_write(self, actor: str) -> bool:
        """Return whether a user, given by number, is a Developer or more,
        in the project or a group above it.
        """
        if not actor.isdigit():
            return False
        try:
            # Without `/all`, GitLab leaves out members of the groups above the project.
            member = await self._rest.get(f"{self._path}/members/all/{actor}")
        except HostProblem as problem:
            if problem.status == 404:
                return False
            raise
        return (
            member.get("access_level", 0) >= _DEVELOPER_LEVEL
            and member.get("state", "active") == "active"
        )

    async def read_thread(self, number: int, *, is_pull: bool) -> Thread:
        """Return an issue or a merge request as it is now, without the notes of this account."""
        path = self._make_thread_path(number, is_pull=is_pull)
        thread = await self._rest.get(path)
        notes = await self._list_notes(number, is_pull=is_pull)
        own_id = await self._read_own_id()
        # System notes are those that GitLab writes about changes, such as of labels.
        texts = [
            ThreadText(
                author=_read_author(note),
                text=note["body"],
                moment=parse_moment(get_text(note, "updated_at")),
                source=f"{path.removeprefix(self._path)[1:]}/notes/{note['id']}",
            )
            for note in notes
            if note["author"]["id"] != own_id and not note["system"]
        ]
        return Thread(
            number=number,
            is_pull=is_pull,
            title=get_text(thread, "title"),
            author=_read_author(thread),
            body=get_text(thread, "description"),
            is_own=get_object(thread, "author").get("id") == own_id,
            texts=tuple(texts),
        )

    async def read_text(self, source: str) -> str | None:
        """Return the text of a note as it is now; None: it was deleted."""
        try:
            return get_text(await self._rest.get(f"{self._path}/{source}"), "body")
        except HostProblem as problem:
            if problem.status == 404:
                return None
            raise

    async def read_pull(self, number: int) -> PullRequest:
        """Return a merge request as it is now."""
        return _make_pull(await self._rest.get(self._make_thread_path(number, is_pull=True)))

    async def find_comment(self, number: int, *, is_pull: bool, marker: str) -> Comment | None:
        """Return this account's note that contains the marker."""
        own_id = await self._read_own_id()
        for note in await self._list_notes(number, is_pull=is_pull):
            if note["author"]["id"] == own_id and marker in note["body"]:
                return _make_comment(note)
        return None

    async def write_comment(self, number: int, text: str, *, is_pull: bool, marker: str) -> Comment:
        """Update this account's note that contains the marker, or create it;
        never create a second one.
        """
        path = f"{self._make_thread_path(number, is_pull=is_pull)}/notes"

        async def find() -> Comment | None:
            return await self.find_comment(number, is_pull=is_pull, marker=marker)

        async def create() -> Comment:
            return _make_comment(await self._rest.send("POST", path, {"body": text}))

        comment = await self._rest.create_once(find, create)
        if comment.text == text:
            return comment
        return _make_comment(await self._rest.send("PUT", f"{path}/{comment.id}", {"body": text}))

    async def delete_comment(self, number: int, comment: Comment, *, is_pull: bool) -> None:
        """Delete a note."""
        await self._rest.delete(
            f"{self._make_thread_path(number, is_pull=is_pull)}/notes/{comment.id}"
        )

    async def find_pull(self, branch: str) -> PullRequest | None:
        """Return the open merge request of a branch of this project."""
        rows = await self._rest.list_all(
            f"{self._path}/merge_requests", state="opened", source_branch=branch
        )
        return next(
            (pull for pull in map(_make_pull, rows) if pull.head == branch and not pull.is_fork),
            None,
        )

    async def open_pull(self, branch: str, base: str, title: str, text: str) -> PullRequest:
        """Open a merge request for a branch, or update the text of the one that is open."""
        body = {"title": title, "description": text}
        pull = await self.find_pull(branch)
        if pull is not None:
            return _make_pull(
                await self._rest.send(
                    "PUT", self._make_thread_path(pull.number, is_pull=True), body
                )
            )

        async def create() -> PullRequest:
            fields = {**body, "source_branch": branch, "target_branch": base}
            return _make_pull(await self._rest.send("POST", f"{self._path}/merge_requests", fields))

        return await self._rest.create_once(lambda: self.find_pull(branch), create)

    async def list_line_comments(self, number: int) -> list[str]:
        """Return the texts of this account's notes on lines of a merge request."""
        own_id = await self._read_own_id()
        notes = await self._list_notes(number, is_pull=True)
        return [
            note["body"]
            for note in notes
            if note["author"]["id"] == own_id and note.get("type") == "DiffNote"
        ]

    async def post_line_comments(
        self, pull: PullRequest, text: str, comments: Sequence[LineComment], marker: str
    ) -> int:
        """Open a discussion for each line; `text` and `marker` are not used."""
        # GitLab has no reviews, so each comment is looked for by its own first line,
        # which is a hidden mark.
        del text, marker
        path = self._make_thread_path(pull.number, is_pull=True)
        diff_refs = (await self._rest.get(path))["diff_refs"]
        for each in comments:
            # The arguments of the functions have defaults,
            # since a closure would see the last comment of the loop.
            position = {
                **diff_refs,
                "position_type": "text",
                "new_path": each.path,
                "old_path": each.path,
            }
            body = {"body": each.text, "position": {**position, "new_line": each.line}}

            async def find(comment_text: str = each.text) -> bool | None:
                first_line = comment_text.partition("\n")[0]
                is_posted = any(
                    first_line in text for text in await self.list_line_comments(pull.number)
                )
                return True if is_posted else None

            async def create(body: JSON = body) -> bool:
                await self._rest.send("POST", f"{path}/discussions", body)
                return True

            await self._rest.create_once(find, create)
        return len(comments)

    async def read_default_branch(self) -> str:
        """Return the name of the branch that changes are merged into."""
        return (await self._rest.get(self._path))["default_branch"]

    async def has_job_ended(self, job: str) -> bool:
        """Return whether a job of a pipeline has ended."""
        try:
            pipeline_job = await self._rest.get(f"{self._path}/jobs/{quote(job, safe='')}")
        except HostProblem as problem:
            if problem.status in {403, 404}:
                return False
            raise
        return pipeline_job["status"] in {"success", "failed", "canceled", "skipped"}

    async def close(self) -> None:
        """Close the connections."""
        await self._rest.close()

    def _make_thread_path(self, number: int, *, is_pull: bool) -> str:
        return f"{self._path}/{'merge_requests' if is_pull else 'issues'}/{number}"

    async def _list_notes(self, number: int, *, is_pull: bool) -> list[JSON]:
        return await self._rest.list_all(
            f"{self._make_thread_path(number, is_pull=is_pull)}/notes", sort="asc"
        )

    async def _read_own_id(self) -> int:
        if not self._own_user_id:
            self._own_user_id = (await self._rest.get("/user"))["id"]
        return self._own_user_id


def _read_author(row: JSON) -> str:
    return get_text(get_object(row, "author"), "username")


def _make_comment(note: JSON) -> Comment:
    # GitLab gives notes no URL.
    return Comment(id=str(note["id"]), url="", text=note["body"])


def _make_pull(row: JSON) -> PullRequest:
    return PullRequest(
        # `id` counts over all projects of the server; `iid` is the number that users see.
        number=row["iid"],
        url=row["web_url"],
        head=row["source_branch"],
        head_sha=row["sha"],
        base=row["target_branch"],
        is_fork=row["source_project_id"] != row["target_project_id"],
        is_draft=bool(row.get("draft")),
    )
