"""Runs git for the user's repository, bounded in time and output, and reads branches,
commits and files with it.

git is never given the repository's own git directory: each call has one of ours over
its objects (`own_folder.py`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from codeloop.kit.child_process import Launch
from codeloop.kit.git import (
    GitCall,
    explain_refused_folder,
    find_blocking_file,
    find_git,
    find_git_folder,
    make_git_call,
)
from codeloop.kit.git.own_folder import (
    RealFolder,
    UnusableRepository,
    open_own_folder,
    read_real_folder,
)
from codeloop.kit.git.user_filters import make_filter_variables
from codeloop.kit.program import run_program
from codeloop.kit.text.undecodable import escape_path
from codeloop.schema.bounds.program import PROGRAM_MEMORY
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import VCS_TIME

_HEADS = "refs/heads/"
_OUTPUT_BYTES = 1 << 20
_USUAL_DEFAULT_BRANCHES = ("main", "master")


class GitFailed(CodeloopError):
    """Git gave no answer: it is missing, it failed, or it took too long."""

    def __init__(self, message: str) -> None:
        super().__init__(escape_path(message))


class GitOutput(Struct, frozen=True):
    """The result of a git command. `data`: its output; `is_complete`: False when `data` was cut;
    then `code` is 0.
    """

    code: int
    data: bytes
    is_complete: bool
    stderr: str

    @property
    def lines(self) -> list[str]:
        """The output as lines; bytes that are not UTF-8 are kept as surrogates."""
        return (
            self.data.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n")
            if self.data
            else []
        )


class DefaultBranch(Struct, frozen=True):
    """A default branch: its name, and the reference that points to its commit."""

    name: str
    ref: str


class Git(Struct, frozen=True):
    """The repository of a work tree; `root` is the work tree's top, which holds `.git`.

    But for `run_trusting`, git reads no configuration but codeloop's.
    What the repository's says is data.
    """

    root: Path
    environment: Mapping[str, str]

    async def read_branch(self) -> str | None:
        """Return the branch that is checked out, even one without commits;
        None: HEAD is detached.
        """
        output = await self.run("symbolic-ref", "-q", "HEAD")
        name = "".join(output.lines[:1])
        return name.removeprefix(_HEADS) if output.code == 0 and name.startswith(_HEADS) else None

    async def find_default_branch(self) -> DefaultBranch | None:
        """Return the default branch: a remote's HEAD (origin's first),
        or one with the configured or a usual name.
        """
        configured = self.open_folder().get("init.defaultbranch")
        names = (*filter(None, (configured,)), *_USUAL_DEFAULT_BRANCHES)
        patterns = ("refs/remotes/*/HEAD", *(_HEADS + name for name in names))
        names_output = await self.run("for-each-ref", "--format=%(refname)\t%(symref)", *patterns)
        rows = dict(line.split("\t", 1) for line in names_output.lines if "\t" in line)
        remote_heads = {
            ref: target
            for ref, target in rows.items()
            if target and ref.startswith("refs/remotes/")
        }
        for ref in sorted(remote_heads, key=lambda ref: (ref != "refs/remotes/origin/HEAD", ref)):
            prefix, target = ref.removesuffix("HEAD"), remote_heads[ref]
            # HEAD of a remote could name a reference elsewhere, such as a tag.
            if target.startswith(prefix):
                return DefaultBranch(target.removeprefix(prefix), target)
        for name in names:
            if _HEADS + name in rows:
                return DefaultBranch(name, _HEADS + name)
        return None

    async def resolve_commit(self, revision: str) -> str | None:
        """Return the id of a revision's commit; None: it does not exist (yet). Raises GitFailed."""
        output = await self.run(
            "rev-parse", "-q", "--verify", "--end-of-options", f"{revision}^{{commit}}"
        )
        # With `-q`, 1 says that there is no such commit; when git itself fails, it is 128.
        if output.code > 1:
            raise GitFailed(
                f"git can't read the repository of {self.root}: {' '.join(output.stderr.split())}"
            )
        return output.lines[0] if output.code == 0 and output.lines else None

    async def find_merge_base(self, first: str, second: str) -> str | None:
        """Return the last commit that two commits have in common;
        None: they have none, or one does not exist.
        """
        output = await self.run("merge-base", first, second)
        return output.lines[0] if output.code == 0 and output.lines else None

    async def read_blob(self, commit: str, path: str, max_bytes: int) -> bytes | None:
        """Read a file of a commit or tree (by its path there);
        None: there is none, or it is over `max_bytes`.
        """
        output = await self.run("cat-file", "blob", f"{commit}:{path}", max_bytes=max_bytes)
        return output.data if output.code == 0 and output.is_complete else None

    async def run(
        self,
        *arguments: str,
        max_bytes: int = _OUTPUT_BYTES,
        index: Path | None = None,
        seconds: float = VCS_TIME.seconds,
    ) -> GitOutput:
        """Run git in the repository; the output is cut at `max_bytes` bytes. Raises GitFailed.

        `index`: a file used instead of the repository's index. `seconds`: the time limit.
        """
        return await self._execute(arguments, max_bytes, index=index, seconds=seconds)

    async def run_trusting(
        self, *arguments: str, index: Path | None = None, seconds: float = VCS_TIME.seconds
    ) -> GitOutput:
        """Like `run`, with the user's own configuration and the filters that it names:
        for trusted projects only.
        """
        return await self._execute(
            arguments, _OUTPUT_BYTES, is_trusting=True, index=index, seconds=seconds
        )

    async def create(self) -> None:
        """Create a repository in `root`, which has none. Raises GitFailed."""
        folder = self.root / ".git"
        try:
            # What lies there would count as its configuration.
            folder.mkdir()
        except OSError as error:
            raise GitFailed(f"{folder} can't be made: {error.strerror}.") from error
        # Without templates: those of the user may have hooks, which are programs.
        arguments = ("init", "--quiet", "--template=")
        output = await self._start(
            self._make_call(folder, *arguments), arguments, _OUTPUT_BYTES, VCS_TIME.seconds
        )
        if output.code != 0:
            raise GitFailed(
                f"git can't make a repository in {self.root}: {' '.join(output.stderr.split())}"
            )

    def open_folder(self) -> RealFolder:
        """Return the git directory of the work tree, with its settings as data.
        Raises GitFailed.
        """
        folder = find_git_folder(self.root)
        if folder is None:
            reason = explain_refused_folder(self.root)
            raise GitFailed(reason or f"{self.root} is in no git repository; `git init` makes one.")
        real = read_real_folder(folder, self.environment)
        for each in (real.folder, real.common):
            if blocking := find_blocking_file(each):
                raise GitFailed(
                    f"git would wait for {blocking}, which is not a regular file. Remove it, then try again."
                )
        return real

    async def _execute(
        self,
        arguments: tuple[str, ...],
        max_bytes: int,
        *,
        is_trusting: bool = False,
        index: Path | None = None,
        seconds: float,
    ) -> GitOutput:
        """Run git with a git directory of ours, in the work tree.
        The parameters are as in `run`.
        """
        real = self.open_folder()
        try:
            with open_own_folder(real, self.environment) as own:
                call = self._make_call(
                    own, f"--work-tree={self.root}", *arguments, is_trusting=is_trusting
                )
                environment = (
                    make_filter_variables(real, call.environment)
                    if is_trusting
                    else call.environment
                )
                if index is not None:
                    environment = {**environment, "GIT_INDEX_FILE": str(index)}
                return await self._start(
                    GitCall(call.command, environment), arguments, max_bytes, seconds
                )
        except UnusableRepository as error:
            raise GitFailed(str(error)) from error
        except OSError as error:
            raise GitFailed(f"A folder for git can't be made: {error}.") from error

    def _make_call(self, folder: Path, *arguments: str, is_trusting: bool = False) -> GitCall:
        program = find_git(self.environment)
        if program is None:
            raise GitFailed("git was not found on the PATH. Install it, then try again.")
        return make_git_call(
            folder,
            *arguments,
            environment=self.environment,
            uses_user_settings=is_trusting,
            program=program,
        )

    async def _start(
        self, call: GitCall, arguments: Sequence[str], max_bytes: int, seconds: float
    ) -> GitOutput:
        """Start git. `arguments`: those of the call that an error may name."""
        launch = Launch(
            call.command,
            self.root,
            call.environment,
            max_memory_bytes=PROGRAM_MEMORY.value,
            seconds=seconds,
            max_bytes=max_bytes,
        )
        try:
            result = await run_program(launch)
        except (OSError, ValueError) as error:
            raise GitFailed(f"git can't be run in {self.root}: {error}.") from error
        if result.stop_reason == "time":
            subcommand = next((word for word in arguments if not word.startswith("-")), "")
            raise GitFailed(
                f"`git {subcommand}` in {self.root} was stopped after {seconds:g} seconds. Try it in a shell."
            )
        # If it was stopped at `max_bytes`, it did not fail, and its exit code means nothing.
        code = 0 if result.stop_reason else result.code
        return GitOutput(code, result.stdout[:max_bytes], not result.stop_reason, result.error_text)
