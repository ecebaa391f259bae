"""The tasks of a benchmark: TOML files in a folder, each with a repository,
a prompt and a check.
"""

import tomllib
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.schema.errors import UsageProblem

TASK_EXAMPLE = (
    'repository = "../app", prompt = "fix the failing test", check = "python3 -m unittest"'
)


class BenchTask(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One task. `repository`: a folder, relative to the task's file,
    or the address of a git repository.

    `revision`: the commit to start from; "": the repository as it is.
    `setup`: a shell command to run before the agent.
    `check`: a shell command to run after the agent; its exit code 0 means that the task is passed.
    `files`: a folder to copy into the work tree before the check, such as tests that the agent must
    not see. `solution`: a shell command that does the task, for the agent `solution`.
    `timeout`: of the agent, in seconds.
    """

    repository: str
    prompt: str
    check: str
    revision: str = ""
    setup: str = ""
    files: str = ""
    solution: str = ""
    timeout: float | None = None


class NamedTask(Struct, frozen=True):
    """A task with its name, and the folder that its paths are relative to."""

    name: str
    folder: Path
    task: BenchTask

    @property
    def is_local(self) -> bool:
        """Whether the repository is a folder on this machine."""
        return (self.folder / self.task.repository).is_dir()


def read_tasks(folder: Path, names: tuple[str, ...] = ()) -> list[NamedTask]:
    """Read the tasks of a folder (`NAME.toml` and `NAME/task.toml`), sorted by name.
    `names`: only these; empty: all.

    Raises UsageProblem for an unknown name, an invalid file, or a folder without tasks.
    """
    files = {path.stem: path for path in folder.glob("*.toml")} | {
        path.parent.name: path for path in folder.glob("*/task.toml")
    }
    for name in names:
        if name not in files:
            raise UsageProblem(f"There is no task {name} in {folder}: {', '.join(sorted(files))}.")
    if not files:
        raise UsageProblem(
            f"There are no tasks in {folder}. A task is a file NAME.toml: {TASK_EXAMPLE}."
        )
    return [
        _read_task(name, path) for name, path in sorted(files.items()) if not names or name in names
    ]


def _read_task(name: str, path: Path) -> NamedTask:
    try:
        task = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), BenchTask)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise UsageProblem(f"{path} is not a task: {error}. It has {TASK_EXAMPLE}.") from None
    named_task = NamedTask(name, path.parent, task)
    if not named_task.is_local and ":" not in task.repository:
        raise UsageProblem(
            f"{path}: the repository {task.repository} is neither a folder nor an address."
        )
    if task.files and not (path.parent / task.files).is_dir():
        raise UsageProblem(f"{path}: the files {task.files} are not a folder.")
    return named_task
