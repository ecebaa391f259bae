"""The user's repository, read by running git: its branches, commits and their files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from codeloop.kit.git import find_blocking_file, make_git_call
from codeloop.kit.processes import find_program
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import VCS_TIME
from codeloop.workspace.process.run_program import run_program
from codeloop.workspace.search.ripgrep import printable

_HEADS = "refs/heads/"
_OUTPUT_BYTES = 1 << 20
_USUAL_BRANCHES = ("main", "master")


class GitFailed(CodeloopError):
    """Git gave no answer: it is missing, it failed, or it took too long."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class GitOutput(Struct, frozen=True):
    """The result of a git command. `data`: its output; `whole`: False when that was cut; `errors`: its stderr."""

    code: int
    data: bytes
    whole: bool
    errors: str

    @property
    def lines(self) -> list[str]:
        """The output as lines; bytes that are not UTF-8 are kept as surrogates."""
        return self.data.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n") if self.data else []


class DefaultBranch(Struct, frozen=True):
    """A branch: its name, and the reference that points to its commit."""

    name: str
    ref: str


class Git(Struct, frozen=True):
    """The repository of a work tree; `root` is the work tree's top, which holds `.git`.

    Git reads only the repository configuration that it needs; no program named there is run.
    """

    root: Path
    environment: Mapping[str, str]

    async def branch(self) -> str | None:
        """Return the branch that is checked out, also one without commits; None: HEAD is detached."""
        output = await self.ask("symbolic-ref", "-q", "HEAD")
        name = "".join(output.lines[:1])
        return name.removeprefix(_HEADS) if output.code == 0 and name.startswith(_HEADS) else None

    async def default_branch(self) -> DefaultBranch | None:
        """Return the default branch: a remote's HEAD (origin's first), else a branch with a usual name."""
        configured = await self.setting("--get", "init.defaultBranch")
        names = (*configured.lines[:1], *_USUAL_BRANCHES)
        patterns = ("refs/remotes/*/HEAD", *(_HEADS + name for name in names))
        names_output = await self.ask("for-each-ref", "--format=%(refname)\t%(symref)", *patterns)
        rows = dict(line.split("\t", 1) for line in names_output.lines if "\t" in line)
        remote = {ref: target for ref, target in rows.items() if target and ref.startswith("refs/remotes/")}
        for ref in sorted(remote, key=lambda ref: (ref != "refs/remotes/origin/HEAD", ref)):
            start = ref.removesuffix("HEAD")
            if remote[ref].startswith(start):  # HEAD of a remote could name a reference of something else
                return DefaultBranch(remote[ref].removeprefix(start), remote[ref])
        for name in names:
            if _HEADS + name in rows:
                return DefaultBranch(name, _HEADS + name)
        return None

    async def commit(self, revision: str) -> str | None:
        """Return the full name of a commit; None: it does not exist (yet). Raises GitFailed."""
        output = await self.ask("rev-parse", "-q", "--verify", "--end-of-options", f"{revision}^{{commit}}")
        if output.code > 1:  # 1 is "no such commit", by `-q`; git fails with 128
            raise GitFailed(f"git can't read the repository of {self.root}: {' '.join(output.errors.split())}")
        return output.lines[0] if output.code == 0 and output.lines else None

    async def merge_base(self, first: str, second: str) -> str | None:
        """Return the last commit that two commits have in common."""
        output = await self.ask("merge-base", first, second)
        return output.lines[0] if output.code == 0 and output.lines else None

    async def blob(self, commit: str, path: str, cap: int) -> bytes | None:
        """Read a file of a commit (path relative to the work tree); None: no file, or one larger than `cap`."""
        output = await self.ask("cat-file", "blob", f"{commit}:{path}", cap=cap)
        return output.data if output.code == 0 and output.whole else None

    async def ask(
        self, *arguments: str, cap: int = _OUTPUT_BYTES, index: Path | None = None, seconds: float = VCS_TIME.seconds
    ) -> GitOutput:
        """Run git in the repository; returns at most `cap` bytes of what it prints. Raises GitFailed.

        `index`: a file used instead of the repository's index. `seconds`: its time limit.
        """
        return await self._run(self._folder, arguments, cap, index=index, seconds=seconds)

    async def setting(self, *arguments: str) -> GitOutput:
        """Run `git config`, which reads the user's own configuration too. Raises GitFailed."""
        return await self._run(self._folder, ("config", *arguments), _OUTPUT_BYTES, own_settings=True)

    async def ask_trusting(
        self, *arguments: str, index: Path | None = None, seconds: float = VCS_TIME.seconds
    ) -> GitOutput:
        """Like `ask`, with the user's own configuration and the filters that it names: for trusted projects only."""
        return await self._run(self._folder, arguments, _OUTPUT_BYTES, own_settings=True, index=index, seconds=seconds)

    async def ask_for_other_folder(
        self, folder: Path, options: Sequence[str], arguments: Sequence[str], cap: int
    ) -> GitOutput:
        """Run git for the work tree with another git directory, with these options and no configuration."""
        return await self._run(folder, (f"--work-tree={self.root}", *options, *arguments), cap)

    @property
    def _folder(self) -> Path:
        return self.root / ".git"

    async def _run(
        self,
        folder: Path,
        arguments: Sequence[str],
        cap: int,
        *,
        own_settings: bool = False,
        index: Path | None = None,
        seconds: float = VCS_TIME.seconds,
    ) -> GitOutput:
        program = find_program("git", self.environment.get("PATH"))
        if program is None:
            raise GitFailed("git was not found on the PATH. Install it, then try again.")
        call = make_git_call(
            folder, *arguments, environment=self.environment, own_settings=own_settings, program=program
        )
        if blocking := find_blocking_file(folder):
            raise GitFailed(f"git would wait for {blocking}, which is not a regular file. Remove it, then try again.")
        environment = call.environment if index is None else {**call.environment, "GIT_INDEX_FILE": str(index)}
        data = bytearray()

        def feed(chunk: bytes) -> bool:
            data.extend(chunk[: cap - len(data) + 1])  # one byte more shows that there is more
            return len(data) > cap

        try:
            program_result = await run_program(call.command, self.root, environment, feed, seconds)
        except (OSError, ValueError) as error:
            raise GitFailed(f"git can't be run in {self.root}: {error}.") from error
        if program_result.stopped == "time":
            what = next((word for word in arguments if not word.startswith("-")), "")
            raise GitFailed(f"`git {what}` in {self.root} was stopped after {seconds:g} seconds. Try it in a shell.")
        return GitOutput(
            0 if program_result.stopped else program_result.code,  # we stopped it at `cap`: it had not failed
            bytes(data[:cap]),
            not program_result.stopped,
            program_result.errors,
        )
