"""The git commands of a CI job: numbers of lines, names of files,
and the commits of earlier jobs.
"""

from pathlib import Path

from codeloop_automation.ci.hosts.host import Author
from codeloop_automation.ci.job_repository import REQUEST_TRAILER, JobRepository
from tests.automation.ci.ci_project import commit, make_bare, run

AUTHOR = Author("t", "t@e.org")


async def open_repository(folder: Path, files: dict[str, str]) -> tuple[JobRepository, str]:
    """Return the repository of a job whose remote has these files on main,
    and the id of that commit.
    """
    bare, work = make_bare(folder, files), folder / "work"
    run("git", "clone", "--quiet", str(bare), str(work))
    repository = JobRepository(work, folder / "job.git", str(bare), "")
    await repository.open(folder / "output")
    base = await repository.fetch("main")
    assert base is not None
    return repository, base


async def push_change(folder: Path, repository: JobRepository, files: dict[str, str]) -> str:
    """Push a commit with these files to main, and return its id."""
    commit(folder / "seed", files, "Change")
    run("git", "push", "--quiet", str(folder / "origin.git"), "main", cwd=folder / "seed")
    head = await repository.fetch("main")
    assert head is not None
    return head


async def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    """Sources of GNU and of Python have form feeds, which Python counts as ends of lines,
    and git does not.
    """
    repository, base = await open_repository(tmp_path, {"a.c": "one\n\f\ntwo\n", "empty": ""})
    head = await push_change(
        tmp_path, repository, {"a.c": "one\n\f\ntwo\nx = '\u2028\f@@ -1 +77 @@'\r\n", "empty": ""}
    )
    assert await repository.list_changed_lines(base, head) == {"a.c": frozenset({4})}
    assert await repository.read_file_lines(head, "a.c") == [
        "one",
        "\f",
        "two",
        "x = '\u2028\f@@ -1 +77 @@'",
    ]
    assert (
        await repository.read_file_lines(head, "empty")
        == await repository.read_file_lines(head, "none")
        == []
    )


async def test_names_that_git_quotes_are_found(tmp_path: Path) -> None:
    repository, base = await open_repository(tmp_path, {"a": "1\n"})
    names = ['say "hi".py', "back\\slash.py", "tab\there.py", "two words.py", "ä.py", "'quoted'.py"]
    head = await push_change(tmp_path, repository, dict.fromkeys(names, "x\n"))
    assert await repository.list_changed_lines(base, head) == dict.fromkeys(names, frozenset({1}))


async def test_the_commit_of_another_request_whose_key_begins_the_same_is_not_taken(
    tmp_path: Path,
) -> None:
    repository, base = await open_repository(tmp_path, {"a": "1\n"})
    changed = await push_change(tmp_path, repository, {"a": "2\n"})
    trees = [
        run("git", "rev-parse", f"{each}^{{tree}}", cwd=tmp_path / "seed").strip()
        for each in (base, changed)
    ]
    made = await repository.commit(
        base, trees[0], trees[1], f"Mend\n\n{REQUEST_TRAILER}: comment-123\n", AUTHOR
    )
    assert made is not None
    assert await repository.find_request_commit("comment-12", made, base) is None
    found = await repository.find_request_commit("comment-123", made, base)
    assert found is not None
    assert found.sha == made
