"""The host GitHub, by its REST API."""

import base64
from collections.abc import Sequence
from urllib.parse import quote

from codeloop import __version__
from codeloop.automation.ci.hosts.host import Author, Comment, LineComment, PullRequest, Thread
from codeloop.automation.ci.json_fields import object_at, text_at
from codeloop.automation.ci.rest_api import HostProblem, RestApi
from codeloop.schema.wire import JSON

_ADVICE = {
    401: "The token is wrong, expired or revoked: check the secret that the job passes as GITHUB_TOKEN.",
    403: "Give the job `contents: write`, `issues: write` and `pull-requests: write` below `permissions:`, and allow "
    "GitHub Actions to create pull requests in the repository's settings.",
    404: "Check the repository's name, and that the token may read it.",
}
_WRITERS = frozenset({"admin", "maintain", "write"})
_JOB_ACCOUNT = "github-actions[bot]"
"""The author of comments that are written with a job's own token, which may not ask for its account."""


class GitHub:
    """A repository `owner/name` on GitHub or GitHub Enterprise."""

    name = "GitHub"
    author = Author("github-actions[bot]", "41898282+github-actions[bot]@users.noreply.github.com")

    def __init__(self, api: str, repository: str, token: str, remote: str, login: str = "") -> None:
        """Connect to nothing yet. `login`: the account of the token, "" to ask the host for it."""
        self.remote = remote
        self.token = token
        self._repository = repository
        headers = {
            "accept": "application/vnd.github+json",
            "authorization": f"Bearer {token}",
            "user-agent": f"codeloop/{__version__}",
            "x-github-api-version": "2022-11-28",
        }
        self._rest = RestApi(self.name, api, headers, _ADVICE)
        self._path = f"/repos/{repository}"
        self._login = login

    def git_credential(self) -> str:
        """Return the value of the Authorization header of git's requests."""
        return f"Basic {base64.b64encode(f'x-access-token:{self.token}'.encode()).decode()}"

    async def can_write(self, actor: str) -> bool:
        """Return whether a user's role is write, maintain or admin."""
        try:
            row = await self._rest.get(f"{self._path}/collaborators/{quote(actor, safe='')}/permission")
        except HostProblem as problem:
            if problem.status == 404:
                return False
            raise
        return bool({row.get("permission"), row.get("role_name")} & _WRITERS)

    async def read_thread(self, number: int, *, is_pull: bool) -> Thread:
        """Return an issue or a pull request with its texts, without those of this account."""
        issue = await self._rest.get(f"{self._path}/issues/{number}")
        rows = await self._rest.list_all(f"{self._path}/issues/{number}/comments")
        own = await self._own_login()
        texts = [(_login(row), text_at(row, "body")) for row in (issue, *rows) if _login(row) != own]
        return Thread(number=number, is_pull=is_pull, title=text_at(issue, "title"), texts=tuple(texts))

    async def read_pull(self, number: int) -> PullRequest:
        """Return a pull request as it is now."""
        return self._pull(await self._rest.get(f"{self._path}/pulls/{number}"))

    async def find_comment(self, number: int, *, is_pull: bool, marker: str) -> Comment | None:
        """Return this account's comment that contains the marker. Comments of others never count."""
        del is_pull  # both kinds have the comments of an issue
        own = await self._own_login()
        for row in await self._rest.list_all(f"{self._path}/issues/{number}/comments"):
            if _login(row) == own and marker in (text_at(row, "body")):
                return _comment(row)
        return None

    async def write_comment(self, number: int, text: str, *, is_pull: bool, marker: str) -> Comment:
        """Update this account's comment that contains the marker, or create it; never create a second one."""

        async def find() -> Comment | None:
            return await self.find_comment(number, is_pull=is_pull, marker=marker)

        async def create() -> Comment:
            return _comment(await self._rest.send("POST", f"{self._path}/issues/{number}/comments", {"body": text}))

        comment = await self._rest.create_once(find, create)
        if comment.text == text:
            return comment
        path = f"{self._path}/issues/comments/{comment.id}"
        return _comment(await self._rest.send("PATCH", path, {"body": text}))

    async def delete_comment(self, number: int, comment: Comment, *, is_pull: bool) -> None:
        """Delete a comment."""
        del number, is_pull
        await self._rest.delete(f"{self._path}/issues/comments/{comment.id}")

    async def find_pull(self, branch: str) -> PullRequest | None:
        """Return the open pull request of a branch of this repository."""
        owner = self._repository.partition("/")[0]
        rows = await self._rest.list_all(f"{self._path}/pulls", state="open", head=f"{owner}:{branch}")
        return next((self._pull(row) for row in rows if row["head"]["ref"] == branch), None)

    async def open_pull(self, branch: str, base: str, title: str, text: str) -> PullRequest:
        """Open a pull request for a branch, or update the text of the one that is open."""
        body = {"title": title, "body": text}
        pull = await self.find_pull(branch)
        if pull is not None:
            return self._pull(await self._rest.send("PATCH", f"{self._path}/pulls/{pull.number}", body))

        async def create() -> PullRequest:
            return self._pull(
                await self._rest.send("POST", f"{self._path}/pulls", {**body, "head": branch, "base": base})
            )

        return await self._rest.create_once(lambda: self.find_pull(branch), create)

    async def list_line_comments(self, number: int) -> list[str]:
        """Return the texts of this account's comments on lines of a pull request."""
        own = await self._own_login()
        rows = await self._rest.list_all(f"{self._path}/pulls/{number}/comments")
        return [text_at(row, "body") for row in rows if _login(row) == own]

    async def comment_lines(self, pull: PullRequest, text: str, comments: Sequence[LineComment], marker: str) -> int:
        """Post comments on lines as one review, which GitHub accepts completely or not at all."""
        rows = [{"path": each.path, "line": each.line, "side": "RIGHT", "body": each.text} for each in comments]
        body = {"commit_id": pull.head_sha, "event": "COMMENT", "body": text, "comments": rows}

        async def find() -> int | None:
            texts = await self.list_line_comments(pull.number)
            return len(comments) if any(marker in text for text in texts) else None

        async def create() -> int:
            await self._rest.send("POST", f"{self._path}/pulls/{pull.number}/reviews", body)
            return len(comments)

        return await self._rest.create_once(find, create)

    async def default_branch(self) -> str:
        """Return the name of the branch that changes go into."""
        return (await self._rest.get(self._path))["default_branch"]

    async def is_job_over(self, job: str) -> bool:
        """Return whether a run of a workflow has ended; False without `actions: read`."""
        try:
            return (await self._rest.get(f"{self._path}/actions/runs/{quote(job, safe='')}"))["status"] == "completed"
        except HostProblem as problem:
            if problem.status in {403, 404}:
                return False
            raise

    async def close(self) -> None:
        """Drop the connections."""
        await self._rest.close()

    async def _own_login(self) -> str:
        if not self._login:
            try:
                self._login = (await self._rest.get("/user"))["login"]
            except HostProblem as problem:
                if problem.status != 403:
                    raise
                self._login = _JOB_ACCOUNT
        return self._login

    def _pull(self, row: JSON) -> PullRequest:
        head = row["head"]
        repository = object_at(head, "repo").get("full_name")  # None when the fork was deleted
        return PullRequest(
            number=row["number"],
            url=row["html_url"],
            head=head["ref"],
            head_sha=head["sha"],
            base=row["base"]["ref"],
            is_fork=repository != row["base"]["repo"]["full_name"],
            is_draft=bool(row.get("draft")),
        )


def _login(row: JSON) -> str:
    return text_at(object_at(row, "user"), "login")


def _comment(row: JSON) -> Comment:
    return Comment(str(row["id"]), row["html_url"], text_at(row, "body"))
