"""The git commands of a CI job, which run in a separate repository that the agent can't configure.

The agent works in the job's checkout and may write anything there: hooks, filters, addresses of
remotes. So git reads no configuration of it, and only gets the host's token in a second repository,
whose path the agent does not know. It takes files over from the checkout, never settings. The two
exchange objects through their paths on this machine.
"""

import asyncio
import os
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.child_process import Launch
from codeloop.kit.git import (
    explain_refused_folder,
    find_common_folder,
    find_git_folder,
    make_git_settings,
)
from codeloop.kit.git.user_settings import RepositoryFacts, read_with_includes
from codeloop.kit.program import run_program
from codeloop.kit.programs import exclude_folder, make_safe_environment
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop_automation.bounds import CI_GIT, CI_RETRY, CI_TRIES
from codeloop_automation.ci.hosts.host import Author
from codeloop_automation.command_lines import open_git_call

# The trailer of a commit message with the key of the event that the commit is for.
REQUEST_TRAILER = "Codeloop-Request"
# safe.directory: a fetch reads the checkout, which may be another user's. quotePath and autocrlf:
# names and contents of files are taken byte for byte.
_GIT_OPTIONS = (
    *("-c", "safe.directory=*", "-c", "advice.detachedHead=false"),
    *("-c", "core.quotePath=false", "-c", "core.autocrlf=false"),
)
# Git gets no other variable of the job: many of them change what it does or
# which programs it starts.
_PASSED_VARIABLES = r"(?i)PATH|HOME|TMPDIR|SSH_AUTH_SOCK|(?:https?|all|no)_proxy|SSL_CERT_(?:FILE|DIR)|GIT_SSL_CAINFO"
# A rejected push is recognised by git's message, which is in English because of LC_ALL=C.
_REJECTION_PATTERN = r"(?i)refusing|rejected|non-fast-forward|fetch first|stale info"

# The escape sequences in names that git quotes: octal numbers of ASCII characters, and those of C.
_ESCAPE_SEQUENCE = r"\\([0-7]{3}|.)"
_ESCAPED_CHARACTERS = {"a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}
_MAX_OUTPUT_BYTES = 256 * 1024 * 1024


class GitProblem(CodeloopError):
    """Git failed, or took too long. The message contains git's error text, if there is one."""


class PushRejected(GitProblem):
    """The server rejected a push, because the branch has moved or a rule of the
    server forbids the push.
    """


class RequestCommit(NamedTuple):
    """The commit that an earlier job made for a request: its id and message."""

    sha: str
    message: str


class JobRepository:
    """The job's checkout (`work`), and the separate repository (`folder`),
    which alone talks to the remote.
    """

    def __init__(self, work: Path, folder: Path, remote: str, credential: str) -> None:
        """`credential`: the Authorization header for the remote, "" for none.
        All paths are absolute.
        """
        # No program of the checkout is ever started as git.
        exclude_folder(work)
        # In a container, the checkout may belong to another user than this process;
        # the job has named it all the same.
        if explain_refused_folder(work):
            os.environ.update(make_git_settings({"safe.directory": str(work)}, os.environ))
        self._work = work
        self._folder = folder
        self._remote = remote
        self._work_tree_options = (f"--work-tree={work}", "-C", str(work))
        self._credential_variables = make_credential_variables(remote, credential)
        # Whether the job has checked large files out, so that those of other commits are wanted,
        # too.
        self._has_lfs = False

    async def open(self, output: Path) -> None:
        """Make the separate repository. Raises UsageProblem if `work` is not a checkout,
        or has the job's token.

        `output`: a folder whose files are never part of a commit.
        """
        folder = find_git_folder(self._work)
        if folder is None:
            raise UsageProblem(
                f"{self._work} is not the top folder of a git checkout. Check the repository out first."
            )
        # `actions/checkout` stores the token as `http.https://github.com/.extraheader`
        # unless it is told not to.
        settings = read_with_includes(
            find_common_folder(folder) / "config", os.environ, RepositoryFacts(folder)
        )
        if any(re.fullmatch(r"http\..*\.extraheader", setting.name) for setting in settings):
            raise UsageProblem(
                "The checkout keeps the job's token in its git configuration, where commands of the agent can read it. "
                "Set `persist-credentials: false` at the step that checks out."
            )
        self._has_lfs = any(setting.name.startswith("filter.lfs.") for setting in settings)
        await self._run("init", "--quiet", "--bare", "--template=", str(self._folder))
        if output.is_relative_to(self._work):
            (self._folder / "info").mkdir(exist_ok=True)
            (self._folder / "info" / "exclude").write_text(
                f"/{output.relative_to(self._work).as_posix()}/\n"
            )

    async def fetch(self, branch: str) -> str | None:
        """Fetch a branch of the remote, and return its commit; None if there is no such branch."""
        ref = f"refs/heads/{branch}"
        # A fetch of a missing branch fails as a fetch without connection does;
        # this tells them apart.
        listing = await self._run_online("ls-remote", self._remote, ref)
        if not any(line.endswith(f"\t{ref}") for line in listing.splitlines()):
            return None
        await self._run_online(
            "fetch", "--quiet", "--no-tags", self._remote, f"+{ref}:refs/remote/{branch}"
        )
        return await self._run_with_git_dir("rev-parse", f"refs/remote/{branch}")

    async def check_out(self, commit: str, branch: str) -> None:
        """Check a commit out on a local branch of this name;
        uncommitted files of the checkout stay.
        """
        # The checkout fetches from the path of the separate repository,
        # so it never needs the token.
        await self._run_with_git_dir("update-ref", "refs/heads/work", commit)
        fetch = (
            "fetch",
            "--quiet",
            "--no-tags",
            "--update-shallow",
            str(self._folder),
            "refs/heads/work",
        )
        await self._run(*fetch, tree=self._work)
        await self._run("checkout", "--quiet", "--no-track", "-B", branch, commit, tree=self._work)

    async def record_files(self, commit: str) -> str:
        """Return the id of a tree with the files of the checkout as they are now,
        without ignored ones.
        """
        # The index starts from the commit, so that ignored files which the commit
        # has stay part of the tree.
        await self._run_with_git_dir("read-tree", commit)
        await self._run_with_git_dir(*self._work_tree_options, "add", "--all", ".")
        return await self._run_with_git_dir("write-tree")

    async def apply_changes(self, tree: str, *changes: tuple[str, str]) -> str:
        """Return a tree with changes applied. A change is given by two trees,
        before and after it.
        """
        await self._run_with_git_dir("read-tree", tree)
        for before, after in changes:
            await self._copy_changes_to_index(before, after)
        return await self._run_with_git_dir("write-tree")

    async def add_new_files(self, tree: str, before: str, after: str) -> str:
        """Return a tree with the files added that `after` has and `before` has not."""
        await self._run_with_git_dir("read-tree", tree)
        await self._copy_changes_to_index(before, after, "--diff-filter=A")
        return await self._run_with_git_dir("write-tree")

    async def restore_files(self, tree: str) -> None:
        """Replace the files of the checkout by those of a tree; ignored files stay."""
        await self._run_with_git_dir(*self._work_tree_options, "add", "--all", ".")
        await self._run_with_git_dir(*self._work_tree_options, "read-tree", "--reset", "-u", tree)

    async def commit(
        self, parent: str, before: str, after: str, message: str, author: Author
    ) -> str | None:
        """Commit the change between two trees on top of `parent`;
        return the commit, None if nothing changed.
        """
        if before == after:
            return None
        tree = await self.apply_changes(parent, (before, after))
        identity = {"NAME": author.name, "EMAIL": author.email}
        variables = {
            f"GIT_{role}_{key}": value
            for role in ("AUTHOR", "COMMITTER")
            for key, value in identity.items()
        }
        return await self._run_with_git_dir(
            "commit-tree", tree, "-p", parent, "-F", "-", stdin=message, variables=variables
        )

    async def push(self, commit: str, branch: str) -> None:
        """Push a commit to a branch of the remote, whose last commit must be its ancestor.
        Raises PushRejected.
        """
        await self._run_online("push", "--quiet", self._remote, f"{commit}:refs/heads/{branch}")

    async def find_request_commit(self, key: str, commit: str, base: str) -> RequestCommit | None:
        """Return the commit for the request with this key; None if the branch has none.

        The branch is the commits from `base`, without it, to `commit`;
        of these, the last 200 are looked at.
        """
        # Git separates these by a NUL, and ends each entry with a byte 1: a message has line
        # breaks. Git says which lines are trailers: one of this form elsewhere
        # in a message is text.
        trailers = f"%(trailers:key={REQUEST_TRAILER},valueonly)"
        log_format = f"--format=%H%x00{trailers}%x00%B%x01"
        log = await self._run_with_git_dir("log", log_format, "--max-count=200", commit, f"^{base}")
        for entry in log.split("\x01")[:-1]:
            sha, keys, message = entry.strip("\n").split("\0", 2)
            if key in keys.splitlines():
                return RequestCommit(sha, message.strip())
        return None

    async def list_changed_lines(self, base: str, head: str) -> Mapping[str, frozenset[int]]:
        """Return the lines that `head` adds or changes compared with its common
        ancestor with `base`.

        By path: the numbers of the lines in the file at `head`, from 1.
        """
        text = await self._run_with_git_dir(
            "diff", "--no-ext-diff", "--no-textconv", "--no-color", "-U0", f"{base}...{head}"
        )
        return _parse_added_lines(text)

    async def find_merge_base(self, base: str, head: str) -> str:
        """Return the common ancestor of two commits."""
        return await self._run_with_git_dir("merge-base", base, head)

    async def read_file_lines(self, commit: str, path: str) -> list[str]:
        """Return the lines of a file of a commit; [] if the commit has no such file."""
        text = await self._run_or_none("show", f"{commit}:{path}", folder=self._folder)
        # Not `splitlines`, for which a form feed ends a line, too: the numbers of lines are git's.
        return [line.removesuffix("\r") for line in text.split("\n")] if text else []

    async def make_patch(self, before: str, after: str) -> str:
        """Return the difference of two trees as a patch that `git apply` takes."""
        return (
            await self._run_with_git_dir(
                "diff-tree", "-p", "--binary", "--no-color", "--no-ext-diff", before, after
            )
            + "\n"
        )

    async def _copy_changes_to_index(self, before: str, after: str, *options: str) -> None:
        """Apply the difference of two trees to the index.
        `options`: of `git diff-tree`, to take only a part of it.
        """
        changes = await self._run_with_git_dir(
            "diff-tree", "-r", "-z", "--no-renames", "--no-abbrev", *options, before, after
        )
        if changes:
            await self._run_with_git_dir(
                "update-index", "-z", "--index-info", stdin=_make_index_rows(changes)
            )

    async def _run_with_git_dir(
        self, *arguments: str, stdin: str = "", variables: Mapping[str, str] | None = None
    ) -> str:
        return await self._run(*arguments, folder=self._folder, stdin=stdin, variables=variables)

    async def _run_online(self, *arguments: str) -> str:
        """Run a command that talks to the remote, and repeat it when it fails.
        Raises GitProblem and PushRejected.
        """
        # Fewer than for the host's API: a try of git may itself take minutes.
        tries = min(CI_TRIES.value, 4)
        for attempt in range(tries):
            try:
                return await self._run(
                    *arguments, folder=self._folder, variables=self._credential_variables
                )
            # The server would reject the next try as well.
            except PushRejected:
                raise
            except GitProblem:
                if attempt + 1 == tries:
                    raise
                await asyncio.sleep(CI_RETRY.seconds * 2**attempt)
        raise GitProblem("git could not reach the remote.")

    async def _run_or_none(self, *arguments: str, folder: Path) -> str | None:
        try:
            return await self._run(*arguments, folder=folder)
        except GitProblem:
            return None

    async def _run(
        self,
        *arguments: str,
        tree: Path | None = None,
        folder: Path | None = None,
        stdin: str = "",
        variables: Mapping[str, str] | None = None,
    ) -> str:
        """Run git, and return its stdout without the last newline.
        Raises GitProblem and PushRejected.
        """
        environment = {**_make_git_environment(), **(variables or {})}
        words = (*_GIT_OPTIONS, *arguments)
        with open_git_call(
            *words, environment=environment, tree=tree, folder=folder, uses_filters=self._has_lfs
        ) as call:
            launch = Launch(
                call.command,
                "/",
                call.environment,
                stdin=stdin.encode("utf-8", "surrogateescape"),
                seconds=CI_GIT.seconds,
                max_bytes=_MAX_OUTPUT_BYTES,
            )
            result = await run_program(launch)
        command = _find_subcommand(arguments)
        if result.stop_reason == "time":
            raise GitProblem(f"git {command} took more than {CI_GIT.seconds:g} s.")
        if result.stop_reason:
            raise GitProblem(f"git {command} printed more than {_MAX_OUTPUT_BYTES:,} bytes.")
        if result.code == 0:
            return result.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")
        message = one_line(result.error_text.strip(), 400)
        if command == "push" and re.search(_REJECTION_PATTERN, message):
            raise PushRejected(f"The push was rejected: {message}")
        raise GitProblem(f"git {command} failed: {message}")


def _make_git_environment() -> dict[str, str]:
    """Return the environment of git: without the user's and the machine's configuration,
    and without questions.
    """
    environment = {
        name: value
        for name, value in make_safe_environment(os.environ).items()
        if re.fullmatch(_PASSED_VARIABLES, name)
    }
    quiet = {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    return {
        **environment,
        **quiet,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
    }


def make_credential_variables(remote: str, credential: str) -> dict[str, str]:
    """Return the variables that give git the Authorization header for the remote;
    none for SSH and paths.
    """
    # As arguments, all users of the machine could read them.
    if not credential or not remote.startswith(("https://", "http://")):
        return {}
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"http.{remote}.extraheader",
        "GIT_CONFIG_VALUE_0": f"Authorization: {credential}",
    }


def _find_subcommand(arguments: tuple[str, ...]) -> str:
    """Return git's subcommand, such as `push`, from its arguments."""
    # The path after `-C` is not the subcommand: `-C FOLDER push --quiet`.
    for previous, word in pairwise(("", *arguments)):
        if not word.startswith("-") and previous != "-C":
            return word
    return ""


def _make_index_rows(changes: str) -> str:
    """Convert the output of `diff-tree -z` into the input of `update-index --index-info`."""
    # `:100644 100644 OLD_SHA NEW_SHA M\0PATH\0` for each change;
    # after the last one `split` finds an empty field.
    fields, rows = changes.split("\0"), list[str]()
    for description, path in zip(fields[::2], fields[1::2], strict=False):
        _, mode, _, sha, status = description.removeprefix(":").split(" ")
        # Mode 0 removes a path from the index.
        rows.append(f"{'0' * 6 if status == 'D' else mode} {sha}\t{path}\0")
    return "".join(rows)


def _parse_added_lines(diff: str) -> dict[str, frozenset[int]]:
    """Return the numbers of the added lines of each file, from a diff without context lines."""
    # For each file the diff has a head, which names it, and then its changes:
    #     diff --git a/app.py b/app.py
    #     +++ b/app.py
    #     @@ -3,0 +4,2 @@
    # Only the head is searched for the name: an added line `++ x` looks like `+++ x` in the diff.
    lines: dict[str, set[int]] = {}
    path, is_head = "", False
    for line in diff.split("\n"):
        if line.startswith("diff --git "):
            path, is_head = "", True
        elif is_head and line.startswith("+++ "):
            name = _read_name(line[4:])
            path = name.removeprefix("b/") if name != "/dev/null" else ""
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            is_head = False
            start, count = int(hunk[1]), int(hunk[2] or 1)
            if path:
                lines.setdefault(path, set()).update(range(start, start + count))
    return {name: frozenset(numbers) for name, numbers in lines.items() if numbers}


def _read_name(text: str) -> str:
    """Return the name of a file from the head of a diff: `b/NAME`, or quoted as in C."""
    # A name with a blank has a tab after it.
    name = text.partition("\t")[0]
    if not name.startswith('"'):
        return name
    return re.sub(
        _ESCAPE_SEQUENCE,
        lambda match: (
            chr(int(match[1], 8))
            if len(match[1]) == 3
            else _ESCAPED_CHARACTERS.get(match[1], match[1])
        ),
        name[1:-1],
    )
