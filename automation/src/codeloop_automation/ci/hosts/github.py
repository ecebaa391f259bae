"""GitHub and GitHub Enterprise as a host of `codeloop ci` and of fleets, by their REST API."""

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
    401: "The token is wrong, expired or revoked: check the secret that the job passes as GITHUB_TOKEN.",
    403: "Give the job `contents: write`, `issues: write` and `pull-requests: write` below `permissions:`, and allow "
    "GitHub Actions to create pull requests in the repository's settings.",
    404: "Check the repository's name, and that the token may read it.",
}
_WRITER_ROLES = frozenset({"admin", "maintain", "write"})
# The account of a job's own token. Such a token may not ask GitHub for its account.
_ACTIONS_LOGIN = "github-actions[bot]"


class GitHub:
    """A repository `owner/name` on GitHub or GitHub Enterprise."""

    name = "GitHub"
    # GitHub shows the avatar of the bot for this address: it starts with the number of the account.
    author = Author("github-actions[bot]", "41898282+github-actions[bot]@users.noreply.github.com")

    def __init__(self, api: str, repository: str, token: str, remote: str, login: str = "") -> None:
        """Connect later. `api`: the base URL. `login`: the account of the token;
        "": GitHub is asked for it.
        """
        self.remote = remote
        self.token = token
        self._repository = repository
        headers = {
            "accept": "application/vnd.github+json",
            "authorization": f"Bearer {token}",
            "user-agent": f"codeloop/{__version__}",
            "x-github-api-version": "2022-11-28",
        }
        self._rest = RestApi(self.name, api, headers, _ADVICE_BY_STATUS)
        self._path = f"/repos/{repository}"
        self._login = login

    def make_git_credential(self) -> str:
        """Return the value of the Authorization header of git's requests."""
        # Git over HTTP takes a token as the password of a user with any name.
        return f"Basic {base64.b64encode(f'x-access-token:{self.token}'.encode()).decode()}"

    async def can_write(self, actor: str) -> bool:
        """Return whether a user's role is write, maintain or admin."""
        try:
            collaborator = await self._rest.get(
                f"{self._path}/collaborators/{quote(actor, safe='')}/permission"
            )
        except HostProblem as problem:
            # Not a collaborator.
            if problem.status == 404:
                return False
            raise
        # `permission` knows no "maintain", and `role_name` may be a role of the organisation.
        return bool({collaborator.get("permission"), collaborator.get("role_name")} & _WRITER_ROLES)

    async def read_thread(self, number: int, *, is_pull: bool) -> Thread:
        """Return an issue or a pull request as it is now, without the comments of this account."""
        issue = await self._rest.get(f"{self._path}/issues/{number}")
        rows = await self._rest.list_all(f"{self._path}/issues/{number}/comments")
        own_login = await self._read_own_login()
        texts = [
            ThreadText(
                author=_read_login(row),
                text=get_text(row, "body"),
                moment=parse_moment(get_text(row, "updated_at")),
                source=f"issues/comments/{row['id']}",
            )
            for row in rows
            if _read_login(row) != own_login
        ]
        return Thread(
            number=number,
            is_pull=is_pull,
            title=get_text(issue, "title"),
            author=_read_login(issue),
            body=get_text(issue, "body"),
            is_own=_read_login(issue) == own_login,
            texts=tuple(texts),
        )

    async def read_text(self, source: str) -> str | None:
        """Return the text of a comment or review as it is now; None: it was deleted."""
        try:
            return get_text(await self._rest.get(f"{self._path}/{source}"), "body")
        except HostProblem as problem:
            if problem.status in {404, 410}:
                return None
            raise

    async def read_pull(self, number: int) -> PullRequest:
        """Return a pull request as it is now."""
        return self._make_pull(await self._rest.get(f"{self._path}/pulls/{number}"))

    async def find_comment(self, number: int, *, is_pull: bool, marker: str) -> Comment | None:
        """Return this account's comment that contains the marker.
        Comments of others never count.
        """
        # To GitHub, a pull request is an issue with the comments of one.
        del is_pull
        own_login = await self._read_own_login()
        for row in await self._rest.list_all(f"{self._path}/issues/{number}/comments"):
            if _read_login(row) == own_login and marker in get_text(row, "body"):
                return _make_comment(row)
        return None

    async def write_comment(self, number: int, text: str, *, is_pull: bool, marker: str) -> Comment:
        """Update this account's comment that contains the marker, or create it;
        never create a second one.
        """

        async def find() -> Comment | None:
            return await self.find_comment(number, is_pull=is_pull, marker=marker)

        async def create() -> Comment:
            return _make_comment(
                await self._rest.send(
                    "POST", f"{self._path}/issues/{number}/comments", {"body": text}
                )
            )

        comment = await self._rest.create_once(find, create)
        if comment.text == text:
            return comment
        path = f"{self._path}/issues/comments/{comment.id}"
        return _make_comment(await self._rest.send("PATCH", path, {"body": text}))

    async def delete_comment(self, number: int, comment: Comment, *, is_pull: bool) -> None:
        """Delete a comment."""
        del number, is_pull
        await self._rest.delete(f"{self._path}/issues/comments/{comment.id}")

    async def find_pull(self, branch: str) -> PullRequest | None:
        """Return the open pull request of a branch of this repository."""
        # The parameter `head` takes `OWNER:BRANCH`.
        owner = self._repository.partition("/")[0]
        rows = await self._rest.list_all(
            f"{self._path}/pulls", state="open", head=f"{owner}:{branch}"
        )
        return next((self._make_pull(row) for row in rows if row["head"]["ref"] == branch), None)

    async def open_pull(self, branch: str, base: str, title: str, text: str) -> PullRequest:
        """Open a pull request for a branch, or update the text of the one that is open."""
        body = {"title": title, "body": text}
        pull = await self.find_pull(branch)
        if pull is not None:
            return self._make_pull(
                await self._rest.send("PATCH", f"{self._path}/pulls/{pull.number}", body)
            )

        async def create() -> PullRequest:
            return self._make_pull(
                await self._rest.send(
                    "POST", f"{self._path}/pulls", {**body, "head": branch, "base": base}
                )
            )

        return await self._rest.create_once(lambda: self.find_pull(branch), create)

    async def list_line_comments(self, number: int) -> list[str]:
        """Return the texts of this account's comments on lines of a pull request."""
        own_login = await self._read_own_login()
        rows = await self._rest.list_all(f"{self._path}/pulls/{number}/comments")
        return [get_text(row, "body") for row in rows if _read_login(row) == own_login]

    async def post_line_comments(
        self, pull: PullRequest, text: str, comments: Sequence[LineComment], marker: str
    ) -> int:
        """See Host. GitHub accepts a review with all of its comments, or not at all."""
        rows = [
            {"path": each.path, "line": each.line, "side": "RIGHT", "body": each.text}
            for each in comments
        ]
        body = {"commit_id": pull.head_sha, "event": "COMMENT", "body": text, "comments": rows}

        async def find() -> int | None:
            texts = await self.list_line_comments(pull.number)
            return len(comments) if any(marker in text for text in texts) else None

        async def create() -> int:
            await self._rest.send("POST", f"{self._path}/pulls/{pull.number}/reviews", body)
            return len(comments)

        return await self._rest.create_once(find, create)

    async def read_default_branch(self) -> str:
        """Return the name of the branch that changes are merged into."""
        return (await self._rest.get(self._path))["default_branch"]

    async def has_job_ended(self, job: str) -> bool:
        """Return whether a run of a workflow has ended;
        False if the token lacks `actions: read`.
        """
        try:
            run = await self._rest.get(f"{self._path}/actions/runs/{quote(job, safe='')}")
        except HostProblem as problem:
            if problem.status in {403, 404}:
                return False
            raise
        return run["status"] == "completed"

    async def close(self) -> None:
        """Close the connections."""
        await self._rest.close()

    async def _read_own_login(self) -> str:
        if not self._login:
            try:
                self._login = (await self._rest.get("/user"))["login"]
            except HostProblem as problem:
                # 403: the token belongs to a job, not to a user.
                if problem.status != 403:
                    raise
                self._login = _ACTIONS_LOGIN
        return self._login

    def _make_pull(self, row: JSON) -> PullRequest:
        head = row["head"]
        # Null if the fork was deleted.
        repository = get_object(head, "repo").get("full_name")
        return PullRequest(
            number=row["number"],
            url=row["html_url"],
            head=head["ref"],
            head_sha=head["sha"],
            base=row["base"]["ref"],
            is_fork=repository != row["base"]["repo"]["full_name"],
            is_draft=bool(row.get("draft")),
        )


def _read_login(row: JSON) -> str:
    return get_text(get_object(row, "user"), "login")


def _make_comment(row: JSON) -> Comment:
    return Comment(id=str(row["id"]), url=row["html_url"], text=get_text(row, "body"))
