"""The interface of a host (GitHub, GitLab, plain git), and the types of its threads,
comments and pull requests.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from codeloop.schema.errors import CodeloopError


class ThreadText(Struct, frozen=True):
    """A comment of a thread. `moment`: when it was last changed, in seconds since the epoch;
    inf: unknown.

    `source`: its path, as `Host.read_text` takes it.
    """

    author: str
    text: str
    moment: float
    source: str


class Thread(Struct, frozen=True, kw_only=True):
    """An issue or a pull request. `body`: its description; `texts`: its comments, oldest first.

    `is_own`: whether codeloop's account has written the description.
    """

    number: int
    is_pull: bool
    title: str
    author: str = ""
    body: str = ""
    is_own: bool = False
    texts: tuple[ThreadText, ...] = ()


NO_THREAD = Thread(number=0, is_pull=False, title="")
"""Stands for the thread of a job that no issue or pull request has started."""


class PullRequest(Struct, frozen=True):
    """A pull or merge request, to merge the branch `head` into `base`.
    `is_fork`: `head` is in another repository.
    """

    number: int
    url: str
    head: str
    head_sha: str
    base: str
    is_fork: bool
    is_draft: bool = False


class Comment(Struct, frozen=True):
    """A comment that codeloop has written."""

    id: str
    url: str
    text: str


class LineComment(Struct, frozen=True):
    """A comment on a line of the new version of a file, numbered from 1."""

    path: str
    line: int
    text: str


class Author(Struct, frozen=True):
    """The author of commits."""

    name: str
    email: str


class HostProblem(CodeloopError):
    """The host refused a request, or can't be reached. `status`: the HTTP status;
    0 if there was no answer.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Host(Protocol):
    """A service that has a repository with its issues and pull requests.
    Every method may raise HostProblem.
    """

    @property
    def name(self) -> str:
        """The name of the host in messages."""
        ...

    @property
    def author(self) -> Author:
        """The author of commits that are made for this host."""
        ...

    @property
    def remote(self) -> str:
        """The URL that branches are fetched from and pushed to."""
        ...

    @property
    def token(self) -> str:
        """The secret token, "" for none. Requests to the host have it, also git's;
        the agent never gets it.
        """
        ...

    def make_git_credential(self) -> str:
        """Return the value of the Authorization header of git's requests, "" for none."""
        ...

    async def can_write(self, actor: str) -> bool:
        """Return whether a user may push to the repository.
        `actor`: a login on GitHub, a number on GitLab.
        """
        ...

    async def read_thread(self, number: int, *, is_pull: bool) -> Thread:
        """Return a thread as it is now, without the comments of codeloop's account."""
        ...

    async def read_text(self, source: str) -> str | None:
        """Return the text of a comment or review as it is now; None: it was deleted.

        `source`: its path below that of the repository in the host's API.
        """
        ...

    async def read_pull(self, number: int) -> PullRequest:
        """Return a pull request as it is now."""
        ...

    async def find_comment(self, number: int, *, is_pull: bool, marker: str) -> Comment | None:
        """Return codeloop's comment that contains the marker."""
        ...

    async def write_comment(self, number: int, text: str, *, is_pull: bool, marker: str) -> Comment:
        """Update codeloop's comment that contains the marker, or create it;
        never create a second one.
        """
        ...

    async def delete_comment(self, number: int, comment: Comment, *, is_pull: bool) -> None:
        """Delete a comment, if it still exists."""
        ...

    async def find_pull(self, branch: str) -> PullRequest | None:
        """Return the open pull request of a branch of this repository."""
        ...

    async def open_pull(self, branch: str, base: str, title: str, text: str) -> PullRequest:
        """Open a pull request for a branch, or update the text of the one that is open."""
        ...

    async def list_line_comments(self, number: int) -> list[str]:
        """Return the texts of codeloop's comments on lines of a pull request."""
        ...

    async def post_line_comments(
        self, pull: PullRequest, text: str, comments: Sequence[LineComment], marker: str
    ) -> int:
        """Post comments on lines as one review with the introduction `text`;
        return the number of comments.

        Each comment contains `marker`, by which a repeated call finds that the review was posted.
        """
        ...

    async def read_default_branch(self) -> str:
        """Return the name of the branch that changes are merged into."""
        ...

    async def has_job_ended(self, job: str) -> bool:
        """Return whether a job has ended; False if the host can't tell.
        `job`: as in `JobSettings.run_id`.
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...
