"""One attempt at a job of a fleet: clone, run the agent, commit, and rename the folder,
which makes the attempt final.

The process may be killed at any step: the next attempt then starts afresh,
or finds the renamed folder.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from codeloop.kit.remove_tree import remove_tree
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import DECODE_ERRORS, JSON
from codeloop_automation.bounds import FLEET_DIFF
from codeloop_automation.fleet.driver import Driver, JobTask
from codeloop_automation.fleet.git import run_git

_COMMIT_IDENTITY = ("-c", "user.name=codeloop", "-c", "user.email=codeloop@localhost")
# The exit code of `codeloop run` after a signal; a shell, too, reports 128 + 2 after Ctrl-C.
INTERRUPTED_EXIT_CODE = 130
# The exit code of `codeloop run` when the models' service gave no answer.
PROVIDER_EXIT_CODE = 3


class JobAttempt:
    """An attempt at one job. `folder`: the folder of the fleet.
    `start_commit`: "" for that of the job's base.

    The attempt works in `task.folder`, which it creates.
    """

    def __init__(self, folder: Path, driver: Driver, task: JobTask, start_commit: str = "") -> None:
        self._final_folder = folder / "jobs" / task.job.id
        self._driver = driver
        self._task = task
        self._start_commit = start_commit
        self._branch = f"codeloop/{task.job.id}"

    def run(self, record_child: Callable[[int], None], is_stopping: Callable[[], bool]) -> JSON:
        """Do the job and return its result, or return the result of an earlier attempt
        that has finished the job.

        `is_stopping` is called regularly. Raises FleetStopped, DriverLost,
        and CodeloopError when git or the job fails.
        """
        if (earlier_result := read_result(self._final_folder)) is not None:
            return earlier_result
        git = partial(
            run_git, self._task.job.repository, tree=self._task.tree, is_stopping=is_stopping
        )
        # Without a result, both folders are remains of a process that was killed.
        remove_tree(self._final_folder)
        remove_tree(self._task.folder)
        self._task.folder.mkdir(parents=True)
        start, target = self._clone(git, is_stopping)
        git_settings = _read_git_settings(self._task.tree)
        result = self._driver.run(self._task, record_child, is_stopping)
        # In these settings the agent could name a filter or a hook,
        # which the user's git would run in the clone.
        if _read_git_settings(self._task.tree) != git_settings:
            raise CodeloopError(
                "The job changed the settings of its repository, so nothing of it was committed."
            )
        if result.get("exitCode") == INTERRUPTED_EXIT_CODE:
            self.discard()
            return result
        commit = self._commit_changes(git)
        result |= {"start": start, "target": target, "commit": commit, "branch": self._branch}
        diff = (
            git("diff", "--no-ext-diff", "--no-textconv", start, commit) if commit != start else ""
        )
        result["diff"] = diff[: FLEET_DIFF.value]
        (self._task.folder / "result.json").write_bytes(msgspec.json.encode(result))
        self._final_folder.parent.mkdir(parents=True, exist_ok=True)
        # From here on the job is done, even if this process is killed before the table is updated.
        self._task.folder.rename(self._final_folder)
        return result

    def discard(self) -> None:
        """Remove the files of an attempt that is not final."""
        remove_tree(self._task.folder)

    def _clone(self, git: Callable[..., str], is_stopping: Callable[[], bool]) -> tuple[str, str]:
        """Clone the repository, on the branch of the job;
        return the commit to start from and the branch to merge into.

        `git`: runs git in the clone, once it exists.
        """
        job = self._task.job
        base = ("--branch", job.base) if job.base else ()
        clone = ("clone", "--quiet", *base, "--", job.repository, str(self._task.tree))
        run_git(job.repository, *clone, is_stopping=is_stopping)
        git(
            "checkout",
            "--quiet",
            "-B",
            self._branch,
            *((self._start_commit,) if self._start_commit else ()),
        )
        # One git process for both: the commit of the branch, and the branch that `origin/HEAD`
        # points to. An empty repository has neither.
        refs = (f"refs/heads/{self._branch}", "refs/remotes/origin/HEAD")
        lines = git("for-each-ref", "--format=%(objectname) %(symref:lstrip=3)", *refs).splitlines()
        if not lines:
            raise CodeloopError(f"{job.repository} has no commit to start from.")
        default_branch = lines[1].split()[-1] if len(lines) > 1 else ""
        return lines[0].strip(), job.base or default_branch

    def _commit_changes(self, git: Callable[..., str]) -> str:
        """Commit what the agent has left uncommitted, if anything; return the last commit."""
        git("add", "--all")
        # The first line is `# branch.oid COMMIT`: the agent may have committed by itself.
        commit_line, *changes = git(
            "status", "--porcelain=v2", "--branch", "--ignore-submodules=dirty"
        ).splitlines()
        if all(line.startswith("#") for line in changes):
            return commit_line.split()[-1]
        job = self._task.job
        title = (job.goal or job.prompt).strip().splitlines()[0][:72]
        git(*_COMMIT_IDENTITY, "commit", "--quiet", "-m", title)
        return git("rev-parse", "HEAD").strip()


def _read_git_settings(tree: Path) -> list[bytes]:
    """Return the contents of the files of a repository that may name programs for git to run."""
    files = (tree / ".git" / name for name in ("config", "config.worktree", "info/attributes"))
    return [file.read_bytes() if file.is_file() else b"" for file in files]


def read_result(final_folder: Path) -> JSON | None:
    """Return the result in the final folder of a job; None if the job is not finished."""
    try:
        return msgspec.json.decode((final_folder / "result.json").read_bytes(), type=JSON)
    except (OSError, *DECODE_ERRORS):
        return None
