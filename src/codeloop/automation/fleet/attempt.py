"""One attempt at a job, in steps that can be repeated: clone, run, commit, and one rename that makes it count."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from codeloop.automation.fleet.jobs import FleetJob
from codeloop.kit.processes import lives, which, with_absolute_path
from codeloop.schema.bounds.automation import FLEET_DIFF, FLEET_END, FLEET_GIT, FLEET_LOOK
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON

PROGRAM = (sys.executable, "-P", "-m", "codeloop")
_GIT = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false")
_WHO = ("-c", "user.name=codeloop", "-c", "user.email=codeloop@localhost")
INTERRUPTED = 130
_KEPT = ("reason", "message", "text", "cost", "steps", "durationMs", "sessionID", "exitCode", "goal", "checks")


class Stopped(CodeloopError):
    """The fleet is to stop: the job waits for another time."""


class JobAttempt:
    """The work on one job in `folder` of the fleet. `flags`: of `codeloop run`; `is_stopping`: asked all the while."""

    def __init__(
        self, folder: Path, job: FleetJob, attempt: int, flags: Sequence[str], is_stopping: Callable[[], bool]
    ) -> None:
        self._job = job
        self._final = folder / "jobs" / job.id
        self._draft = folder / "attempts" / f"{job.id}.{attempt}"
        self._flags = flags
        self._is_stopping = is_stopping

    def run(self, note_child: Callable[[int], None]) -> JSON:
        """Do the job, and return its result. What an earlier attempt finished is returned as it is.

        Raises Stopped; CodeloopError when git fails.
        """
        if (done := read_result(self._final)) is not None:
            return done
        shutil.rmtree(self._final, ignore_errors=True)
        shutil.rmtree(self._draft, ignore_errors=True)
        self._draft.mkdir(parents=True)
        tree = self._draft / "work"
        base = ("--branch", self._job.base) if self._job.base else ()
        self._git("clone", "--quiet", *base, "--", self._job.repository, str(tree))
        self._git("-C", str(tree), "checkout", "--quiet", "-B", f"codeloop/{self._job.id}")
        before = self._git("-C", str(tree), "rev-parse", "HEAD").strip()
        settings = _read_settings(tree)
        result = self._run_agent(tree, note_child)
        if _read_settings(tree) != settings:  # git would start what they name
            raise CodeloopError("The job changed the settings of its repository, so nothing of it was committed.")
        if result.get("exitCode") == INTERRUPTED:
            self.discard()
            return result
        self._git("-C", str(tree), "add", "--all")
        if self._git("-C", str(tree), "status", "--porcelain"):
            title = (self._job.goal or self._job.prompt).strip().splitlines()[0][:72]
            self._git("-C", str(tree), *_WHO, "commit", "--quiet", "-m", title)
        result["commit"] = self._git("-C", str(tree), "rev-parse", "HEAD").strip()
        result["branch"] = f"codeloop/{self._job.id}"
        result["diff"] = self._git("-C", str(tree), "diff", "--no-ext-diff", "--no-textconv", f"{before}..HEAD")[
            : FLEET_DIFF.value
        ]
        (self._draft / "result.json").write_bytes(msgspec.json.encode(result))
        self._final.parent.mkdir(parents=True, exist_ok=True)
        self._draft.rename(self._final)  # from here on it is done, whoever is killed
        return result

    def discard(self) -> None:
        """Remove what an attempt left that does not count."""
        shutil.rmtree(self._draft, ignore_errors=True)

    def _run_agent(self, tree: Path, note_child: Callable[[int], None]) -> JSON:
        job = self._job
        words = ("--goal", job.goal) if job.goal else ()
        checks = [flag for check in job.checks for flag in ("--check", check)]
        model = ("--model", job.model) if job.model else ()
        command = [*PROGRAM, "run", "--format", "json", "--title", job.id, *model, *self._flags, *words, *checks]
        command += ["--dir", str(tree), *(("--", job.prompt) if job.prompt else ())]
        with (self._draft / "run.jsonl").open("w+b") as output, (self._draft / "log").open("wb") as log:
            child = subprocess.Popen(
                command,
                cwd="/",
                env=with_absolute_path(os.environ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=log,
                start_new_session=True,
            )
            try:
                note_child(child.pid)
                while child.poll() is None:
                    if self._is_stopping():
                        raise Stopped("The fleet was stopped.")
                    time.sleep(FLEET_LOOK.seconds)
            finally:
                end_program(child.pid)
                child.wait()
            output.seek(0)
            lines = output.read().splitlines()
        try:
            last: JSON = msgspec.json.decode(lines[-1])
        except (IndexError, msgspec.DecodeError):
            return {"reason": "error", "exitCode": child.returncode or 1, "message": "It ended without a result."}
        return {key: last[key] for key in _KEPT if key in last}

    def _git(self, *arguments: str) -> str:
        environment = with_absolute_path({**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1"})
        program = which("git", environment["PATH"])
        if program is None:
            raise CodeloopError("git was not found on the PATH. Install it, then try again.")
        try:
            done = subprocess.run(
                [program, *_GIT, *arguments],
                cwd="/",
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=FLEET_GIT.seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise CodeloopError(f"git {arguments[0]} took longer than {FLEET_GIT.seconds:g} s.") from None
        if done.returncode:
            words = done.stderr.decode("utf-8", "replace").strip()
            raise CodeloopError(f"git failed for {self._job.repository}: {words}")
        return done.stdout.decode("utf-8", "replace")


def _read_settings(tree: Path) -> list[bytes]:
    """Return what in a repository may name programs that git starts."""
    files = (tree / ".git" / name for name in ("config", "config.worktree", "info/attributes"))
    return [file.read_bytes() if file.is_file() else b"" for file in files]


def read_result(final: Path) -> JSON | None:
    """Return the result of a job that was finished; None: it was not."""
    try:
        return msgspec.json.decode((final / "result.json").read_bytes())
    except (OSError, msgspec.DecodeError):
        return None


def end_program(pid: int, started: str = "") -> None:
    """End a program that leads its own session, with all of it: asked first, then killed."""
    if not lives(pid, started):
        return
    deadline = time.monotonic() + FLEET_END.seconds
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGTERM)
        while time.monotonic() < deadline and lives(pid, started) and not _is_over(pid):
            time.sleep(FLEET_LOOK.seconds / 4)
        os.killpg(pid, signal.SIGKILL)


def _is_over(pid: int) -> bool:
    """Return whether a child has ended that nobody has collected yet; it stays to be collected."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False
