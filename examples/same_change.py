"""The same change in many repositories, without a key: `python same_change.py [NUMBER]
[FOLDER]` (500, ./same-change).

Makes the repositories and a table of jobs, and runs `codeloop fleet` on them: each job's agent
replaces a call that is no longer there in Python 3.12 and runs the tests. The model is a recording.
Run it again after Ctrl-C: what is done stays done. Every change is then a branch of its repository,
which `codeloop fleet publish` has made.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

OLD, NEW = "datetime.datetime.utcnow()", "datetime.datetime.now(datetime.timezone.utc)"
CODE = f"import datetime\n\n\ndef stamp():\n    return {OLD}.isoformat()\n"
TEST = """import unittest

from stamp import stamp


class TestStamp(unittest.TestCase):
    def test_it_says_that_it_is_utc(self):
        self.assertTrue(stamp().endswith("+00:00"))
"""
CHECK = "python3 -m unittest -q"
AT_ONCE = str(2 * (os.cpu_count() or 1))


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=example", "-c", "user.email=example@localhost")
    command = ["git", "-C", str(folder), *who, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def make_repository(folder: Path) -> None:
    """Make a repository with a function, and a test that it fails."""
    folder.mkdir(parents=True)
    (folder / "stamp.py").write_text(CODE)
    (folder / "test_stamp.py").write_text(TEST)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "Start")


def record_model(file: Path) -> None:
    """Write what the model answers in each repository: it changes the line, and runs the tests."""
    edit = {"filePath": "stamp.py", "oldString": OLD, "newString": NEW}
    steps: list[dict[str, object]] = [
        {"calls": [{"name": "edit", "arguments": edit}]},
        {
            "calls": [
                {"name": "bash", "arguments": {"command": CHECK, "description": "Run the tests"}}
            ]
        },
        {"text": "`utcnow()` is deprecated. The time zone is now explicit, and the tests pass."},
    ]
    file.write_text("".join(json.dumps(step) + "\n" for step in steps))


def codeloop(*arguments: str) -> int:
    # Where no sandbox can be had, it would be asked for.
    settings = {"permission": {"bash": {CHECK: "allow"}}}
    environment = {**os.environ, "CODELOOP_CONFIG_CONTENT": json.dumps(settings)}
    return subprocess.run(
        [sys.executable, "-m", "codeloop", *arguments], env=environment, check=False
    ).returncode


def main(number: int, folder: Path) -> int:
    repositories = [
        folder.absolute() / "repositories" / f"service-{at:03}" for at in range(1, number + 1)
    ]
    for repository in repositories:
        if not repository.exists():
            make_repository(repository)
    jobs = [
        {"id": each.name, "repository": str(each), "goal": f"{OLD} is replaced", "checks": [CHECK]}
        for each in repositories
    ]
    (folder / "jobs.json").write_text(json.dumps(jobs, indent=1))
    record_model(folder / "model.jsonl")
    fleet = (
        "fleet",
        "run",
        str(folder / "jobs.json"),
        "--name",
        "same-change",
        "--at-once",
        AT_ONCE,
        "--publish",
    )
    code = codeloop(*fleet, "--replay", str(folder / "model.jsonl"))
    codeloop("fleet", "show", "same-change", "--html", str(folder / "results.html"))
    branches = [git(each, "branch", "--list", "codeloop/*").split() for each in repositories]
    changed = sum(
        len(each) == 1 and NEW in git(repository, "show", f"{each[0]}:stamp.py")
        for each, repository in zip(branches, repositories, strict=True)
    )
    print(
        f"{changed} of {number} repositories have the change on a branch; the page: {folder / 'results.html'}"
    )
    return code


if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv[1:]))
    sys.exit(main(int(arguments.get(0, 500)), Path(arguments.get(1, "same-change"))))
