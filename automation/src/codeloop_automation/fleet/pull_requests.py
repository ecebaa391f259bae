"""Publishes a fleet's changes as pull requests: one for each repository and base branch,
with one commit per job.

The branch is built anew each time, and equal changes give the same commit. So after the process was
killed between push and pull request, or the fleet's table was lost, both are found again. Commits
of others are never replaced.
"""

import asyncio
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from codeloop.kit.remove_tree import temporary_folder
from codeloop.kit.small_files import lock
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import replace
from codeloop_automation.bounds import FLEET_PUBLISH
from codeloop_automation.ci.hosts.host import Host, PullRequest
from codeloop_automation.ci.inert_text import make_code_span, make_inert_markdown, make_inert_phrase
from codeloop_automation.ci.job_repository import make_credential_variables
from codeloop_automation.fleet.git import run_git
from codeloop_automation.fleet.ledger import Ledger
from codeloop_automation.fleet.ledger_rows import FleetPullRequest, LedgerRow
from codeloop_automation.fleet.repository_host import find_repository_host, normalise_address

# The trailer of a commit message that names the fleet and the job,
# by which later runs know their own commits.
_JOB_TRAILER = "Codeloop-Job"
_MAX_TITLE_CHARACTERS = 70
_COMMIT_ID = r"[0-9a-f]{40}|[0-9a-f]{64}"

# Called with the state of each pull request, from any thread.
PullListener = Callable[[FleetPullRequest], object]


class _Target(NamedTuple):
    """The identity of a pull request: its branch, the address of its repository,
    and the branch to merge into.
    """

    branch: str
    address: str
    base: str


class _Change(Struct, frozen=True):
    """The commits of one job: after `start` up to `commit`, in the clone `tree`.
    `mark`: the value of the trailer.
    """

    row: LedgerRow
    tree: Path
    start: str
    commit: str
    mark: str


def publish_fleet(
    folder: Path,
    ledger: Ledger,
    environment: Mapping[str, str],
    on_pull: PullListener,
    is_stopping: Callable[[], bool],
) -> None:
    """Push the changes of the fleet's done jobs, and open or update the pull requests.

    `environment`: the variables with the hosts' tokens.
    Raises CodeloopError when another process publishes the fleet.
    """
    groups = _group_changes(folder, ledger.list_rows())
    earlier = {pull.branch: pull for pull in ledger.list_pull_requests()}

    def publish_group(entry: tuple[_Target, list[_Change]]) -> None:
        if is_stopping():
            return
        key, changes = entry
        pull = FleetPullRequest(
            repository=changes[0].row.job.repository,
            branch=key.branch,
            target=key.base,
            jobs=tuple(each.row.job.id for each in changes),
        )
        try:
            pull = _Publication(folder, pull, changes, environment).publish(earlier.get(key.branch))
        except (CodeloopError, OSError) as error:
            pull = replace(earlier.get(key.branch, pull), problem=one_line(str(error), 400))
        ledger.store_pull_request(pull)
        on_pull(pull)

    try:
        with lock(folder / "publish.lock", 0), ThreadPoolExecutor(FLEET_PUBLISH.value) as threads:
            list(threads.map(publish_group, groups.items()))
    except TimeoutError:
        raise CodeloopError(
            "The pull requests of this fleet are being opened by another process."
        ) from None


def _group_changes(folder: Path, rows: Sequence[LedgerRow]) -> dict[_Target, list[_Change]]:
    """Return the changes of done jobs whose clones are on this machine, by pull request."""
    groups: dict[_Target, list[_Change]] = {}
    for row in rows:
        result, job = row.result, row.job
        tree = folder / "jobs" / job.id / "work"
        if (
            row.state != "done"
            or result.get("commit") == result.get("start")
            or "target" not in result
            or not tree.is_dir()
        ):
            continue
        # Others may write into a shared table, and these become arguments of git.
        if not all(re.fullmatch(_COMMIT_ID, str(result.get(name))) for name in ("start", "commit")):
            continue
        address, base = normalise_address(job.repository), str(result["target"])
        suffix = hashlib.sha256(f"{address}\n{base}".encode()).hexdigest()[:8]
        # A job whose prompt was changed is another job, although it has the same id.
        task_hash = hashlib.sha256(
            msgspec.json.encode((job.id, job.prompt, job.goal, job.checks))
        ).hexdigest()[:12]
        change = _Change(
            row=row,
            tree=tree,
            start=str(result["start"]),
            commit=str(result["commit"]),
            mark=f"{folder.name}/{job.id} {task_hash}",
        )
        groups.setdefault(_Target(f"codeloop/{folder.name}-{suffix}", address, base), []).append(
            change
        )
    return groups


class _Publication:
    """Publishes one pull request, with git in a temporary repository that the agents'
    clones can't configure.
    """

    def __init__(
        self,
        folder: Path,
        pull: FleetPullRequest,
        changes: Sequence[_Change],
        environment: Mapping[str, str],
    ) -> None:
        self._folder = folder
        self._pull = pull
        self._changes = changes
        self._host = find_repository_host(pull.repository, pull.target, environment, folder)
        self._credential_variables = make_credential_variables(
            pull.repository, self._host.make_git_credential()
        )
        # Set by `publish`, for as long as the temporary repository exists.
        self._repository = Path()

    def publish(self, earlier: FleetPullRequest | None) -> FleetPullRequest:
        """Push the branch and open or update the pull request, unless `earlier` is up to date.
        Raises CodeloopError.
        """
        with temporary_folder("pull-", self._folder) as name:
            self._repository = name
            run_git(self._pull.repository, "init", "--quiet", "--bare", "--template=", str(name))
            trees = "".join(f"{change.tree}/.git/objects\n" for change in self._changes)
            # git finds the objects of all clones where they are, so nothing is copied.
            (self._repository / "objects" / "info" / "alternates").write_text(trees)
            commit, left_out = self._stack_commits(self._changes[0].start, self._changes)
            pull = replace(self._pull, commit=commit, problem=_describe_conflict(left_out))
            if earlier is not None and earlier.commit == commit and earlier.problem == pull.problem:
                return earlier
            self._push(commit)
        title, text = _describe_pull(
            self._folder.name, [each for each in self._changes if each not in left_out]
        )
        opened = asyncio.run(_open_pull(self._host, pull, title, text))
        return replace(pull, number=opened.number, url=opened.url)

    def _stack_commits(self, tip: str, changes: Sequence[_Change]) -> tuple[str, list[_Change]]:
        """Put one commit for each change on top of a commit;
        return the last commit and the changes in conflict.
        """
        left_out: list[_Change] = []
        for change in changes:
            try:
                tree = self._merge_tree(tip, change)
            # merge-tree fails on a conflict.
            except CodeloopError:
                left_out.append(change)
                continue
            # A change that is there already, such as the same fix by two jobs, needs no commit.
            if tree != self._run_git("rev-parse", f"{tip}^{{tree}}"):
                tip = self._commit(tree, tip, change)
        return tip, left_out

    def _merge_tree(self, tip: str, change: _Change) -> str:
        """Return the tree of a commit with a change on top. Raises CodeloopError on a conflict."""
        if tip == change.start:
            return self._run_git("rev-parse", f"{change.commit}^{{tree}}")
        # merge-tree takes no merge base before git 2.40. It finds `start` as the merge base of a
        # commit with the files of the tip and `start` as its parent.
        tip_on_start = self._commit(
            self._run_git("rev-parse", f"{tip}^{{tree}}"), change.start, change
        )
        return self._run_git(
            "merge-tree", "--write-tree", tip_on_start, change.commit
        ).splitlines()[0]

    def _commit(self, tree: str, parent: str, change: _Change) -> str:
        """Make a commit, and return its id."""
        # Author, committer and both dates are set: equal arguments give the same commit,
        # also on another day.
        author, date = (
            self._host.author,
            self._run_git("show", "-s", "--format=%at +0000", change.commit),
        )
        identity = {
            f"GIT_{role}_{key}": value
            for role in ("AUTHOR", "COMMITTER")
            for key, value in (("NAME", author.name), ("EMAIL", author.email), ("DATE", date))
        }
        message = f"{_make_title(change)}\n\n{_JOB_TRAILER}: {change.mark}"
        return self._run_git("commit-tree", tree, "-p", parent, "-m", message, variables=identity)

    def _push(self, commit: str) -> None:
        """Push the changes to the branch, keeping commits that others have added.

        Raises CodeloopError when the branch has only commits of others,
        or the changes conflict with these.
        """
        remote, ref = self._pull.repository, f"refs/heads/{self._pull.branch}"
        remote_commit = self._run_git(
            "ls-remote", remote, ref, variables=self._credential_variables
        ).partition("\t")[0]
        if remote_commit == commit:
            return
        if not remote_commit:
            self._run_git(
                "push", "--quiet", remote, f"{commit}:{ref}", variables=self._credential_variables
            )
            return
        self._run_git(
            "fetch", "--quiet", "--no-tags", remote, ref, variables=self._credential_variables
        )
        marks = self._list_marks(remote_commit)
        own_marks = {change.mark for change in self._changes}
        # The branch has only earlier versions of these commits.
        # The lease makes the push fail if others push now.
        if marks <= own_marks:
            lease = f"--force-with-lease={ref}:{remote_commit}"
            self._run_git(
                "push",
                "--quiet",
                lease,
                remote,
                f"{commit}:{ref}",
                variables=self._credential_variables,
            )
            return
        if not marks & own_marks:
            raise CodeloopError(
                f"The branch {self._pull.branch} of {remote} has commits that are not of this fleet. "
                "Delete it, or give the fleet another name with --name."
            )
        # Others have added commits, which are kept: only the missing changes go on top.
        missing = [change for change in self._changes if change.mark not in marks]
        tip, left_out = self._stack_commits(remote_commit, missing)
        if left_out:
            raise CodeloopError(
                f"{self._pull.branch} was changed by others. {_describe_conflict(left_out)}"
            )
        if tip != remote_commit:
            self._run_git(
                "push", "--quiet", remote, f"{tip}:{ref}", variables=self._credential_variables
            )

    def _list_marks(self, commit: str) -> set[str]:
        """Return the marks of a branch's commits after the jobs' start commits;
        "" for commits without a mark.
        """
        starts = {f"^{change.start}" for change in self._changes}
        log = self._run_git("log", "--format=%B%x01", commit, *starts)
        trailers = (
            re.search(rf"^{_JOB_TRAILER}: (.+)$", message, re.MULTILINE)
            for message in log.split("\x01")[:-1]
        )
        return {match[1] if match else "" for match in trailers}

    def _run_git(self, *arguments: str, variables: Mapping[str, str] | None = None) -> str:
        return run_git(
            self._pull.repository, *arguments, folder=self._repository, variables=variables
        ).strip()


async def _open_pull(host: Host, pull: FleetPullRequest, title: str, text: str) -> PullRequest:
    """Open or update the pull request at its host, and close the connections."""
    try:
        target = pull.target or await host.read_default_branch()
        return await host.open_pull(pull.branch, target, title, text)
    finally:
        await host.close()


def _make_title(change: _Change) -> str:
    """Return the first line of the job's goal or prompt."""
    job = change.row.job
    return one_line((job.goal or job.prompt).strip().partition("\n")[0], _MAX_TITLE_CHARACTERS)


def _describe_pull(name: str, changes: Sequence[_Change]) -> tuple[str, str]:
    """Return the title and the text of the pull request."""
    title = _make_title(changes[0]) if len(changes) == 1 else f"{name}: {len(changes)} changes"
    parts: list[str] = []
    for change in changes:
        answer = make_inert_markdown(str(change.row.result.get("text") or "").strip())
        title_phrase, job = (
            make_inert_phrase(_make_title(change)),
            make_code_span(change.row.job.id),
        )
        parts.append(f"**{title_phrase}** (job {job})\n\n{answer}".strip())
    return title, "\n\n".join(parts)


def _describe_conflict(left_out: Sequence[_Change]) -> str:
    """Return the message about changes that are left out; "" if there are none."""
    ids = ", ".join(change.row.job.id for change in left_out)
    return (
        f"Left out, because the changes conflict with those of the other jobs: {ids}."
        if ids
        else ""
    )
