"""Checks that a command which a rule lets out of the sandbox depends on nothing that sandboxed commands can write."""

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from codeloop.kit.git import common_folder, git_folder
from codeloop.kit.small_files import read_start
from codeloop.workspace.git.index import list_submodules
from codeloop.workspace.git.planted.configured_files import expand_home, list_user_files, read_with_includes
from codeloop.workspace.git.settings import GitSetting

_HARMLESS = frozenset(("cd", "echo", "exit", "printf", "pwd", "sleep", "true"))
_PUSH = """
--all --atomic --branches --delete -d --dry-run -n --follow-tags --force -f --force-if-includes --force-with-lease
--mirror --no-atomic --no-progress --no-recurse-submodules --no-verify --porcelain --progress --prune --push-option -o
--quiet -q --set-upstream -u --tags --verbose -v -4 -6
"""
_FETCH = """
--all --append -a --atomic --deepen --depth --dry-run --force -f --jobs -j --no-recurse-submodules --no-tags
-n --progress --prune -p --prune-tags -P --quiet -q --refetch --set-upstream --shallow-since --tags -t --unshallow
--update-shallow --verbose -v -4 -6
"""
_PULL = """
--autostash --commit --ff --ff-only --no-autostash --no-commit --no-edit --no-ff --no-rebase --rebase -r --squash --stat
"""
_LS_REMOTE = "--branches --exit-code --get-url --heads -h --quiet -q --refs --sort --symref --tags -t"
_OPTIONS = {
    "push": frozenset(_PUSH.split()),
    "fetch": frozenset(_FETCH.split()),
    "pull": frozenset((_FETCH + _PULL).split()),
    "ls-remote": frozenset(_LS_REMOTE.split()),
}
"""Commands that a rule may let out, with their options that name no program."""
_HOOKS = {
    "push": ("pre-push", "reference-transaction"),
    "fetch": ("reference-transaction", "pre-auto-gc"),
    "pull": (),  # any: it merges, rebases and checks out
    "ls-remote": ("none",),
}
_RUN = re.compile(
    r"credential\..*|core\.(sshcommand|askpass|fsmonitor|gitproxy|editor)|filter\..*|merge\..*\.driver|gpg\..*"
    r"|remote\..*\.(receivepack|uploadpack|vcs)|include\.path|includeif\..*|push\.recursesubmodules"
)
"""Settings by which these commands run programs, or read more settings."""
_RUNNERS = re.compile(
    r"npm|npx|pnpm|yarn|bunx?|deno|node|python[\d.]*|uvx?|poetry|pipx?|ruby|bundle|perl|php|make|just|task|gradle|mvn|cargo"
    r"|go|sh|bash|zsh|env|eval|source|\."
)
_LFS = re.compile(r"\s*(#.*|command -v git-lfs\b.*|git lfs [a-z-]+ \"\$@\"\s*|)\s*")
_URL = re.compile(r"(https?|ssh|git)://.*|[\w.-]+@[\w.-]+:.*|[\w.-]+:(?!:|//).*")
_STEERING = ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_EXEC_PATH", "GIT_PROXY_COMMAND")
_HELPERS = re.compile(r"ssh|ssh-askpass|gpg2?|git-.*")
_MOST = 64 * 1024  # bytes of a hook or of the settings of ssh


class UnsandboxedLine:
    """A line that is to run unsandboxed. `writable`: what sandboxed commands may write."""

    def __init__(self, root: Path, environment: Mapping[str, str], writable: Iterable[Path]) -> None:
        self._root = root
        self._environment = environment
        self._writable = tuple(writable)
        self._home = Path(environment.get("HOME") or "/nonexistent")

    def doubt(self, commands: Sequence[str]) -> str:
        """Return why a rule can't let a line with these simple commands out; "": it can."""
        for command in commands:
            words = _words(command)
            if words is None or not words:
                return "it can't be read"
            if words[0] in _HARMLESS:
                continue
            if words[0] != "git" or len(words) < 2 or words[1] not in _OPTIONS:
                return f"only git {', '.join(_OPTIONS)} are known to run nothing that sandboxed commands wrote"
            if reason := self._git_doubt(words[1], words[2:]):
                return reason
        return ""

    def _git_doubt(self, name: str, words: Sequence[str]) -> str:
        options = [word for word in words if word.startswith("-")]
        unknown = [word for word in options if word.partition("=")[0] not in _OPTIONS[name]]
        if unknown:
            return f"`git {name} {unknown[0]}` may run a program"
        folder = git_folder(self._root)
        if folder is None:
            return "the repository is not known"
        common = common_folder(folder)
        settings = list(self._settings(common / "config", folder / "config.worktree"))
        operands = [word for word in words if not word.startswith("-")]
        hooks = "" if "--no-verify" in options and name == "push" else self._hook_doubt(name, common, settings)
        return (
            hooks
            or next((reason for setting in settings if (reason := self._setting_doubt(setting))), "")
            or self._remote_doubt(operands[:1], settings)
            or self._submodule_doubt(name, options, folder)
            or self._surroundings_doubt()
        )

    def _settings(self, *own: Path) -> Iterator[GitSetting]:
        files = [*list_user_files(self._home, self._environment), *own]
        return (setting for setting, _ in read_with_includes(files, self._home))

    def _setting_doubt(self, setting: GitSetting) -> str:
        if not setting.name:
            return "a setting of git can't be understood"
        if not _RUN.fullmatch(setting.name) or setting.is_plain:
            return ""
        if setting.name == "push.recursesubmodules" and setting.value not in {"check", "no", "false"}:
            return "it pushes submodules, too, with their own hooks"
        words = _words(setting.value.lstrip("!"))
        if words is None:
            return f"{setting.name} can't be understood"
        programs = [word for word in words if _RUNNERS.fullmatch(word.rpartition("/")[2])]
        if programs and "include" not in setting.name:
            return f"{setting.name} runs `{programs[0]}`, which may load what lies in the project"
        start = ".git/" if setting.name.startswith("include") else ""  # where the file lies that says so
        path = next((word for word in words if "/" in word and self._is_writable(start + word)), None)
        return f"{setting.name} leads to {path}, where sandboxed commands may write" if path else ""

    def _hook_doubt(self, name: str, common: Path, settings: Sequence[GitSetting]) -> str:
        own = [setting.value for setting in settings if setting.name == "core.hookspath"]
        folder = Path(os.path.realpath(self._root / expand_home(own[-1], self._home))) if own else common / "hooks"
        try:
            paths = [path for path in folder.iterdir() if path.suffix != ".sample"]
        except OSError:
            return ""
        for path in paths:
            if _HOOKS[name] and path.name not in _HOOKS[name]:
                continue
            if own and self._is_writable(str(folder)):
                return f"its {path.name} hook lies in {folder}, where sandboxed commands may write"
            if not os.access(path, os.X_OK) or path.is_dir():
                continue
            if not all(_LFS.fullmatch(line) for line in _text(path).splitlines()):
                return f"its {path.name} hook may run what lies in the project"
        return ""

    def _remote_doubt(self, remotes: Sequence[str], settings: Sequence[GitSetting]) -> str:
        urls = {
            setting.name.split(".", 1)[1].rpartition(".")[0]: setting.value
            for setting in settings
            if re.fullmatch(r"remote\..*\.(url|pushurl)", setting.name)
        }
        for name in remotes:
            if name not in urls and not _URL.fullmatch(name):
                return f"{name} is not a remote of the repository, so it may be a folder whose hooks would run"
        for url in [*remotes, *urls.values()] if remotes else urls.values():
            is_name = url in urls
            if not is_name and not _URL.fullmatch(url) and ("::" in url or self._is_writable(url)):
                return f"the remote {url} lies where sandboxed commands may write"
        return ""

    def _submodule_doubt(self, name: str, options: Sequence[str], folder: Path) -> str:
        if name not in {"fetch", "pull"} or "--no-recurse-submodules" in options:
            return ""
        return "it fetches submodules, too, with their own settings" if list_submodules(folder / "index") else ""

    def _surroundings_doubt(self) -> str:
        for name in _STEERING:
            if any("/" in word and self._is_writable(word) for word in _words(self._environment.get(name, "")) or ()):
                return f"{name} leads to where sandboxed commands may write"
        for folder in self._environment.get("PATH", "").split(os.pathsep):
            if self._is_writable(folder or "."):
                try:
                    names = [path.name for path in Path(folder or ".").iterdir() if _HELPERS.fullmatch(path.name)]
                except OSError:
                    continue
                if names:
                    return f"{names[0]} on the PATH lies where sandboxed commands may write"
        for word in _text(self._home / ".ssh/config").replace("=", " ").split():
            if "/" in word and self._is_writable(word.strip('"')):
                return f"~/.ssh/config leads to {word}, where sandboxed commands may write"
        return ""

    def _is_writable(self, text: str) -> bool:
        text = text.removeprefix("file://")
        text = text.removeprefix(".git/") if text.startswith((".git/~", ".git//")) else text
        real = Path(os.path.realpath(self._root / expand_home(text, self._home)))
        return any(real.is_relative_to(each) for each in self._writable)


def _words(text: str) -> list[str] | None:
    try:
        return shlex.split(text)
    except ValueError:
        return None


def _text(path: Path) -> str:
    """Return the start of a file; nothing when it can't be read."""
    try:
        return read_start(path, _MOST).decode("utf-8", "replace")
    except OSError:
        return ""
