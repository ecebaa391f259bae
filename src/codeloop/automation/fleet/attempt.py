"""One attempt at a job, in steps that can be repeated: clone, run, commit, and one rename that makes it count."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from codeloop.automation.fleet.driver import Driver, JobTask
from codeloop.automation.fleet.git import run_git
from codeloop.kit.small_files import remove_tree
from codeloop.schema.bounds.automation import FLEET_DIFF
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON

_WHO = ("-c", "user.name=codeloop", "-c", "user.email=codeloop@localhost")
INTERRUPTED = 130


class JobAttempt:
    """The work on one job in `folder` of the fleet, by `driver`.

    `commit`: where to start; "": at the job's base. `task.folder` is made here, and is the attempt's own.
    """

    def __init__(self, folder: Path, driver: Driver, task: JobTask, commit: str = "") -> None:
        self._final = folder / "jobs" / task.job.id
        self._driver = driver
        self._task = task
        self._commit = commit

    def run(self, note_child: Callable[[int], None], is_stopping: Callable[[], bool]) -> JSON:
        """Do the job, and return its result. What an earlier attempt finished is returned as it is.

        `is_stopping`: asked all the while. Raises Stopped; DriverLost; CodeloopError when git fails.
        """
        if (done := read_result(self._final)) is not None:
            return done
        job, tree = self._task.job, self._task.tree
        remove_tree(self._final)
        remove_tree(self._task.folder)
        self._task.folder.mkdir(parents=True)
        base = ("--branch", job.base) if job.base else ()
        run_git(job.repository, "clone", "--quiet", *base, "--", job.repository, str(tree))
        self._git("checkout", "--quiet", "-B", f"codeloop/{job.id}", *((self._commit,) if self._commit else ()))
        before = self._git("rev-parse", "HEAD").strip()
        heads = self._git("for-each-ref", "--format=%(symref:lstrip=3)", "refs/remotes/origin/HEAD")
        settings = _read_settings(tree)
        result = self._driver.run(self._task, note_child, is_stopping)
        if _read_settings(tree) != settings:  # git would start what they name
            raise CodeloopError("The job changed the settings of its repository, so nothing of it was committed.")
        if result.get("exitCode") == INTERRUPTED:
            self.discard()
            return result
        self._git("add", "--all")
        if self._git("status", "--porcelain"):
            title = (job.goal or job.prompt).strip().splitlines()[0][:72]
            self._git(*_WHO, "commit", "--quiet", "-m", title)
        result["start"], result["target"] = before, job.base or heads.strip()  # "": its HEAD is on no branch
        result["commit"] = self._git("rev-parse", "HEAD").strip()
        result["branch"] = f"codeloop/{job.id}"
        diff = self._git("diff", "--no-ext-diff", "--no-textconv", f"{before}..HEAD")
        result["diff"] = diff[: FLEET_DIFF.value]
        (self._task.folder / "result.json").write_bytes(msgspec.json.encode(result))
        self._final.parent.mkdir(parents=True, exist_ok=True)
        self._task.folder.rename(self._final)  # from here on it is done, whoever is killed
        return result

    def discard(self) -> None:
        """Remove what an attempt left that does not count."""
        remove_tree(self._task.folder)

    def _git(self, *arguments: str) -> str:
        return run_git(self._task.job.repository, "-C", str(self._task.tree), *arguments)


def _read_settings(tree: Path) -> list[bytes]:
    """Return the files of a repository that may name programs for git to start."""
    files = (tree / ".git" / name for name in ("config", "config.worktree", "info/attributes"))
    return [file.read_bytes() if file.is_file() else b"" for file in files]


def read_result(final: Path) -> JSON | None:
    """Return the result of a job that was finished; None: it was not."""
    try:
        return msgspec.json.decode((final / "result.json").read_bytes())
    except (OSError, msgspec.DecodeError):
        return None
