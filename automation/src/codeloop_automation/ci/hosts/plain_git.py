"""The host for git servers without issues and pull requests: results are branches,
and files instead of comments.
"""

from collections.abc import Sequence
from pathlib import Path

from codeloop_automation.ci.hosts.host import Author, Comment, LineComment, PullRequest, Thread
from codeloop_automation.ci.output_files import write_output


class PlainGit:
    """A repository on any git server, or in a folder.
    Files that stand for comments are written to `output`.
    """

    name = "git"
    token = ""
    author = Author("codeloop", "codeloop@users.noreply.invalid")

    def __init__(self, remote: str, base: str, head: str, output: Path) -> None:
        """Connect later. `base`: the branch that changes are merged into.
        `head`: the branch to review.
        """
        self.remote = remote
        self._base = base
        self._head = head
        self._output = output

    def make_git_credential(self) -> str:
        """Return "": git uses the credentials that it finds itself, such as an SSH key."""
        return ""

    async def can_write(self, actor: str) -> bool:
        """Return True: the user who starts the program has git's credentials already."""
        del actor
        return True

    async def read_thread(self, number: int, *, is_pull: bool) -> Thread:
        """Return a thread without texts."""
        return Thread(number=number, is_pull=is_pull, title="")

    async def read_text(self, source: str) -> str | None:
        """Return None: there are no comments of others."""
        del source

    async def read_pull(self, number: int) -> PullRequest:
        """Return the branch to review in the shape of a pull request."""
        return _make_pull(number, self._head, self._base)

    async def find_comment(self, number: int, *, is_pull: bool, marker: str) -> Comment | None:
        """Return the content of the thread's file."""
        path = self._make_thread_path(number, is_pull=is_pull)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        return Comment(id=path.name, url=str(path), text=text) if marker in text else None

    async def write_comment(self, number: int, text: str, *, is_pull: bool, marker: str) -> Comment:
        """Write the file of the thread."""
        del marker
        path = self._make_thread_path(number, is_pull=is_pull)
        write_output(path.parent, path.name, text)
        return Comment(id=path.name, url=str(path), text=text)

    async def delete_comment(self, number: int, comment: Comment, *, is_pull: bool) -> None:
        """Do nothing: the thread's only file stays."""

    async def find_pull(self, branch: str) -> PullRequest | None:
        """Return the branch in the shape of a pull request."""
        return _make_pull(0, branch, self._base)

    async def open_pull(self, branch: str, base: str, title: str, text: str) -> PullRequest:
        """Return the branch in the shape of a pull request; nothing is opened."""
        del title, text
        return _make_pull(0, branch, base)

    async def list_line_comments(self, number: int) -> list[str]:
        """Return the text of the file of findings, if there is one."""
        path = self._make_findings_path(number)
        return [path.read_text(encoding="utf-8")] if path.exists() else []

    async def post_line_comments(
        self, pull: PullRequest, text: str, comments: Sequence[LineComment], marker: str
    ) -> int:
        """Add the comments to the file of findings."""
        del text, marker
        existing = "".join(await self.list_line_comments(pull.number))
        new_findings = "".join(
            f"## {each.path}:{each.line}\n\n{each.text}\n\n" for each in comments
        )
        path = self._make_findings_path(pull.number)
        write_output(path.parent, path.name, existing + new_findings)
        return len(comments)

    async def read_default_branch(self) -> str:
        """Return the name of the branch that changes are merged into."""
        return self._base

    async def has_job_ended(self, job: str) -> bool:
        """Return False: a git server knows no jobs."""
        del job
        return False

    async def close(self) -> None:
        """Do nothing: there are no connections."""

    def _make_thread_path(self, number: int, *, is_pull: bool) -> Path:
        return (
            self._output / f"{'review' if is_pull else 'result'}{f'-{number}' if number else ''}.md"
        )

    def _make_findings_path(self, number: int) -> Path:
        return self._output / f"findings{f'-{number}' if number else ''}.md"


def _make_pull(number: int, head: str, base: str) -> PullRequest:
    return PullRequest(number=number, url="", head=head, head_sha="", base=base, is_fork=False)
