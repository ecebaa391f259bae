"""One attempt at a job of a fleet: clone, run the agent, commit, and rename the folder, which makes the attempt final.

The process may be killed at any step: the next attempt then starts afresh, or finds the renamed folder.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from codeloop.automation.fleet.driver import Driver, JobTask
from codeloop.automation.fleet.git import run_git
from codeloop.kit.remove_tree import remove_tree
from codeloop.schema.bounds.automation import FLEET_DIFF
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON

_COMMIT_IDENTITY = ("-c", "user.name=codeloop", "-c", "user.email=codeloop@localhost")
# The exit code of `codeloop run` after a signal; a shell, too, reports 128 + 2 after Ctrl-C.
INTERRUPTED_EXIT_CODE = 130


class JobAttempt:
    """An attempt at one job. `folder`: the folder of the fleet. `commit`: the commit to start from; "": the job's base.

    The attempt works in `task.folder`, which it creates.
    """

    def __init__(self, folder: Path, driver: Driver, task: JobTask, commit: str = "") -> None:
        self._final_folder = folder / "jobs" / task.job.id
        self._driver = driver
        self._task = task
        self._commit = commit

    def run(self, record_child: Callable[[int], None], is_stopping: Callable[[], bool]) -> JSON:
        """Do the job and return its result, or return the result of an earlier attempt that has finished the job.

        `is_stopping` is called regularly. Raises FleetStopped, DriverLost, and CodeloopError when git fails.
        """
        if (earlier_result := read_result(self._final_folder)) is not None:
            return earlier_result
        job, tree, branch = self._task.job, self._task.tree, f"codeloop/{self._task.job.id}"

        def git(*arguments: str) -> str:
            return run_git(job.repository, "-C", str(tree), *arguments, is_stopping=is_stopping)

        # Without a result, both folders are remains of a process that was killed.
        remove_tree(self._final_folder)
        remove_tree(self._task.folder)
        self._task.folder.mkdir(parents=True)
        base = ("--branch", job.base) if job.base else ()
        clone = ("clone", "--quiet", *base, "--", job.repository, str(tree))
        run_git(job.repository, *clone, is_stopping=is_stopping)
        git("checkout", "--quiet", "-B", branch, *((self._commit,) if self._commit else ()))
        # One git process for both: the commit of the branch, and the branch that `origin/HEAD` points to. An empty
        # repository has neither.
        refs = (f"refs/heads/{branch}", "refs/remotes/origin/HEAD")
        lines = git("for-each-ref", "--format=%(objectname) %(symref:lstrip=3)", *refs).splitlines()
        if not lines:
            raise CodeloopError(f"{job.repository} has no commit to start from.")
        before, target = lines[0].strip(), lines[1].split()[-1] if len(lines) > 1 else ""
        git_settings = _read_git_settings(tree)
        result = self._driver.run(self._task, record_child, is_stopping)
        # The agent could name a filter or a hook there, which git would run here, outside of the agent's sandbox.
        if _read_git_settings(tree) != git_settings:
            raise CodeloopError("The job changed the settings of its repository, so nothing of it was committed.")
        if result.get("exitCode") == INTERRUPTED_EXIT_CODE:
            self.discard()
            return result
        git("add", "--all")
        # The first line is `# branch.oid COMMIT`: the agent may have committed by itself.
        commit_line, *changes = git("status", "--porcelain=v2", "--branch").splitlines()
        after = commit_line.split()[-1]
        if any(not line.startswith("#") for line in changes):
            title = (job.goal or job.prompt).strip().splitlines()[0][:72]
            git(*_COMMIT_IDENTITY, "commit", "--quiet", "-m", title)
            after = git("rev-parse", "HEAD").strip()
        result |= {"start": before, "target": job.base or target, "commit": after, "branch": branch}
        diff = git("diff", "--no-ext-diff", "--no-textconv", before, after) if after != before else ""
        result["diff"] = diff[: FLEET_DIFF.value]
        (self._task.folder / "result.json").write_bytes(msgspec.json.encode(result))
        self._final_folder.parent.mkdir(parents=True, exist_ok=True)
        # From here on the job is done, even if this process is killed before the table is updated.
        self._task.folder.rename(self._final_folder)
        return result

    def discard(self) -> None:
        """Remove the files of an attempt that is not final."""
        remove_tree(self._task.folder)


def _read_git_settings(tree: Path) -> list[bytes]:
    """Return the contents of the files of a repository that may name programs for git to run."""
    files = (tree / ".git" / name for name in ("config", "config.worktree", "info/attributes"))
    return [file.read_bytes() if file.is_file() else b"" for file in files]


def read_result(final_folder: Path) -> JSON | None:
    """Return the result in the final folder of a job; None if the job is not finished."""
    try:
        return msgspec.json.decode((final_folder / "result.json").read_bytes())
    except (OSError, msgspec.DecodeError):
        return None
