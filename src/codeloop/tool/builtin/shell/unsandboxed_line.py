"""Checks a line that a permission rule allows to run without the sandbox.

It must not start a program that sandboxed commands could have written. Besides what starts no
program at all, such as `echo`, a few git commands pass, and only if the hooks, settings and remotes
of the repository start no other program.
"""

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from codeloop.kit.git import find_common_folder, find_git_folder, is_led_elsewhere
from codeloop.kit.git.settings import GitSetting
from codeloop.kit.small_files import read_start
from codeloop.shell.options import Option
from codeloop.shell.program_table import find_row
from codeloop.workspace.git.head import read_head_commit
from codeloop.workspace.git.index import list_submodule_paths, read_tracked_files
from codeloop.workspace.git.objects import GitObjects
from codeloop.workspace.git.planted.configured_files import (
    expand_config_path,
    list_user_config_files,
    read_settings_with_includes,
)
from codeloop.workspace.git.planted.layout import list_entries
from codeloop.workspace.git.planted.repository_finder import has_git_layout

_HOOKS_BY_COMMAND = {
    "push": ("pre-push", "reference-transaction"),
    "fetch": ("reference-transaction", "pre-auto-gc"),
    # A pull merges, rebases and checks out, which run most hooks.
    "pull": None,
    "ls-remote": (),
}
"""The git commands that a rule may allow unsandboxed, with the hooks that each runs;
None: it may run any.
"""
_PROGRAM_SETTINGS = (
    r"credential\..*|core\.(sshcommand|askpass|fsmonitor|gitproxy|editor|alternaterefscommand)|sequence\.editor"
    r"|filter\..*|merge\..*\.driver|gpg\..*|remote\..*\.(receivepack|uploadpack|vcs)"
    r"|push\.recursesubmodules|gc\.recentobjectshook"
)
"""Settings by which these commands run programs."""
_CODE_RUNNERS = (
    r"npm|npx|pnpm|yarn|bunx?|deno|node|python[\d.]*|uvx?|poetry|pipx?|ruby|bundle|perl|php|make"
    r"|just|task|gradle|mvn|cargo"
    r"|go|sh|bash|zsh|env|eval|source|\."
)
"""Matches programs that may load code from the project."""
# The hooks that `git lfs install` writes consist of such lines.
_LFS_HOOK_LINE = r"\s*(#.*|command -v git-lfs\b.*|git lfs [a-z-]+ \"\$@\"\s*|)\s*"
_LFS_SETTINGS = ".lfsconfig"
"""The file of a project in which Git LFS reads settings,
such as the address that it sends files to.
"""
_PROGRAM_VARIABLES = (
    *(
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_ASKPASS",
        "SSH_ASKPASS",
        "GIT_EXEC_PATH",
        "GIT_PROXY_COMMAND",
    ),
    # An interactive rebase of `git pull` starts one of these, even without a terminal.
    *("GIT_SEQUENCE_EDITOR", "GIT_EDITOR", "VISUAL", "EDITOR"),
)
"""Variables that name a program for git to run."""
_REPOSITORY_VARIABLES = ("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_CONFIG_PARAMETERS")
"""Variables that lead git to another repository, or to settings that are not looked at."""
_HELPER_PROGRAMS = r"ssh|ssh-askpass|gpg2?|git-.*"
"""Programs that git finds on the PATH and runs."""
_SETTING_VARIABLE = "GIT_CONFIG_KEY_"
"""The start of the variables with names of settings;
their values are in `GIT_CONFIG_VALUE_0` and so on.
"""
# Of a hook, or of ssh's configuration.
_MAX_FILE_BYTES = 64 * 1024


class UnsandboxedLineCheck:
    """Checks lines in one project. `root`: its work tree.
    `writable`: the paths that sandboxed commands may write.
    """

    def __init__(
        self, root: Path, environment: Mapping[str, str], writable: Iterable[Path]
    ) -> None:
        self._root = root
        self._environment = environment
        self._writable = tuple(writable)
        self._home = Path(environment.get("HOME") or "/nonexistent")

    def find_doubt(self, commands: Sequence[str]) -> str:
        """Return why a rule can't allow a line with these simple commands to run unsandboxed;
        "": it can.

        The line is proved already (`shell/proof.py`),
        which means that git finds the project's repository.
        """
        for command in commands:
            words = _split_words(command)
            if words is None or not words:
                return "it can't be read"
            if _starts_nothing(words[0]):
                continue
            if words[0] != "git" or len(words) < 2 or words[1] not in _HOOKS_BY_COMMAND:
                return f"only git {', '.join(_HOOKS_BY_COMMAND)} are known to run nothing that sandboxed commands wrote"
            if reason := self._find_git_doubt(words[1], words[2:]):
                return reason
        return ""

    def _find_other_repository_doubt(self) -> str:
        """Return why git may use another repository if a command breaks that of the project;
        "": there is no other.
        """
        # git then takes the top of the work tree for one, or goes on to the folders above.
        for folder in (self._root, *self._root.parents):
            if self._is_writable(".", folder):
                names = {path.name for path in list_entries(folder)}
                if has_git_layout(names) or (folder != self._root and ".git" in names):
                    return f"git may use the repository in {folder}, which sandboxed commands may write"
        return ""

    def _find_git_doubt(self, subcommand: str, words: Sequence[str]) -> str:
        """Return why a git command, given by its name and arguments, may run other programs;
        "": it does not.
        """
        # Few lines run outside the sandbox.
        from codeloop.tool.builtin.shell.remote_doubts import (
            find_default_remote_doubt,
            find_remote_doubt,
        )

        known_options = find_row("git").subcommands[subcommand].known_options
        options, operands = _split_options(words, known_options)
        unknown = [word for word in options if word.partition("=")[0] not in known_options]
        if unknown:
            return f"`git {subcommand} {unknown[0]}` may run a program"
        folder = find_git_folder(self._root)
        if folder is None or is_led_elsewhere(folder):
            return "the repository is not known"
        common = find_common_folder(folder)
        own_files = [common / "config", folder / "config.worktree"]
        files = [*list_user_config_files(self._home, self._environment, self._root), *own_files]
        settings_with_includes = [
            *self._list_environment_settings(),
            *read_settings_with_includes(files, self._home),
        ]
        settings = [setting for setting, _ in settings_with_includes]
        runs_hooks = subcommand != "push" or "--no-verify" not in options
        doubts = [
            self._find_hook_doubt(subcommand, common, settings) if runs_hooks else "",
            self._find_file_doubt(files, own_files),
            *(
                self._find_setting_doubt(setting, included)
                for setting, included in settings_with_includes
            ),
            find_remote_doubt(operands[0], settings, self._is_writable)
            if operands
            else find_default_remote_doubt(subcommand, common, settings, self._is_writable),
            self._find_submodule_doubt(subcommand, options, folder),
            self._find_environment_doubt(),
            self._find_other_repository_doubt(),
        ]
        return next(filter(None, doubts), "")

    def _list_environment_settings(self) -> Iterator[tuple[GitSetting, None]]:
        """Yield the settings in variables, without the files that they include."""
        for variable, key in self._environment.items():
            if variable.startswith(_SETTING_VARIABLE):
                section, _, rest = key.partition(".")
                subsection, _, name = rest.rpartition(".")
                full_name = ".".join(filter(None, (section.lower(), subsection, name.lower())))
                value = self._environment.get(variable.replace("_KEY_", "_VALUE_"), "")
                yield GitSetting(0, full_name, value), None

    def _find_file_doubt(self, files: Iterable[Path], own_files: Iterable[Path]) -> str:
        """Return why one of git's configuration files may be written by sandboxed commands;
        "": none may.

        `own_files`: those of the repository, which are protected from them where they are.
        """
        protected = {os.path.realpath(file.parent) + os.sep + file.name for file in own_files}
        for file in files:
            if os.path.realpath(file) not in protected and self._is_writable(str(file)):
                return f"git's settings in {file} lie where sandboxed commands may write"
        return ""

    def _find_setting_doubt(self, setting: GitSetting, included_file: Path | None) -> str:
        """Return why a setting may start a planted program, or include settings that were planted;
        "": it does not.
        """
        if not setting.name:
            return "a setting of git can't be understood"
        if setting.name.startswith(("include.", "includeif.")):
            if included_file is None:
                return f"{setting.name} can't be followed"
            is_writable = self._is_writable(str(included_file))
            return (
                f"{setting.name} leads to {setting.value}, where sandboxed commands may write"
                if is_writable
                else ""
            )
        if not re.fullmatch(_PROGRAM_SETTINGS, setting.name) or setting.is_harmless:
            return ""
        if setting.name == "push.recursesubmodules" and setting.value not in {
            "check",
            "no",
            "false",
        }:
            return "it pushes submodules, too, with their own hooks"
        words = _split_words(setting.value.lstrip("!"))
        if words is None:
            return f"{setting.name} can't be understood"
        programs = [word for word in words if re.fullmatch(_CODE_RUNNERS, word.rpartition("/")[2])]
        if programs:
            return f"{setting.name} runs `{programs[0]}`, which may load what lies in the project"
        path = next((word for word in words if "/" in word and self._is_writable(word)), None)
        return f"{setting.name} leads to {path}, where sandboxed commands may write" if path else ""

    def _find_hook_doubt(
        self, subcommand: str, common: Path, settings: Sequence[GitSetting]
    ) -> str:
        """Return why a hook of a git command may run what lies in the project; "": none does."""
        set_paths = [setting.value for setting in settings if setting.name == "core.hookspath"]
        # Which of them counts depends on the order of includes and on their conditions.
        folders = [self._root / expand_config_path(path, self._home) for path in set_paths]
        paths = [path for folder in (*folders, common / "hooks") for path in list_entries(folder)]
        hooks = _HOOKS_BY_COMMAND[subcommand]
        for path in paths:
            folder = path.parent
            if path.suffix == ".sample" or (hooks is not None and path.name not in hooks):
                continue
            if folder in folders and self._is_writable(str(folder)):
                return f"its {path.name} hook lies in {folder}, where sandboxed commands may write"
            if not os.access(path, os.X_OK) or path.is_dir():
                continue
            lines = _read_text(path).splitlines()
            if not all(re.fullmatch(_LFS_HOOK_LINE, line) for line in lines):
                return f"its {path.name} hook may run what lies in the project"
            if any("git lfs" in line for line in lines) and (
                reason := self._find_lfs_doubt(common)
            ):
                return reason
        return ""

    def _find_lfs_doubt(self, common: Path) -> str:
        """Return why Git LFS may send files, and the user's keys, where the project says;
        "": it does not.
        """
        file = self._root / _LFS_SETTINGS
        if os.path.lexists(file):
            leads_away = "url" in _read_text(file).casefold() or not file.is_file()
            return f"{_LFS_SETTINGS} may say where Git LFS sends files" if leads_away else ""
        # Where the file is missing, Git LFS reads what is staged, or else committed.
        folder = find_git_folder(self._root) or common
        commit = read_head_commit(folder, common)
        tree = GitObjects(common).read_tree_id(commit) if commit else None
        entries = GitObjects(common).read_tree(tree) if tree else None
        is_committed = commit != b"" and (entries is None or _LFS_SETTINGS in entries)
        if is_committed or _LFS_SETTINGS in read_tracked_files(self._root).get("", {}):
            return (
                f"a {_LFS_SETTINGS} that is committed or staged may say where Git LFS sends files"
            )
        return ""

    def _find_submodule_doubt(self, subcommand: str, options: Sequence[str], folder: Path) -> str:
        """Return why a command reaches submodules, each of which has settings of its own;
        "": it does not.
        """
        if subcommand not in {"fetch", "pull"} or "--no-recurse-submodules" in options:
            return ""
        return (
            "it fetches submodules, too, with their own settings"
            if list_submodule_paths(folder / "index")
            else ""
        )

    def _find_environment_doubt(self) -> str:
        """Return why git's variables, the PATH or ssh's configuration may start a planted program;
        "": they do not.
        """
        if name := next(filter(self._environment.get, _REPOSITORY_VARIABLES), None):
            return f"{name} leads git to other settings than those of the project"
        for name in _PROGRAM_VARIABLES:
            words = _split_words(self._environment.get(name, "")) or ()
            if any("/" in word and self._is_writable(word) for word in words):
                return f"{name} leads to where sandboxed commands may write"
        for folder in self._environment.get("PATH", "").split(os.pathsep):
            if self._is_writable(folder or "."):
                try:
                    names = [
                        path.name
                        for path in Path(folder or ".").iterdir()
                        if re.fullmatch(_HELPER_PROGRAMS, path.name)
                    ]
                except OSError:
                    continue
                if names:
                    return f"{names[0]} on the PATH lies where sandboxed commands may write"
        for word in _read_text(self._home / ".ssh/config").replace("=", " ").split():
            if "/" in word and self._is_writable(word.strip('"')):
                return f"~/.ssh/config leads to {word}, where sandboxed commands may write"
        return ""

    def _is_writable(self, text: str, folder: Path | None = None) -> bool:
        """Return whether sandboxed commands may write a path below a folder;
        None: below the project's.

        It may be absolute, too, a `file://` URL, or begin with `~`.
        """
        path = expand_config_path(text.removeprefix("file://"), self._home)
        real = Path(os.path.realpath((folder or self._root) / path))
        return any(real.is_relative_to(each) for each in self._writable)


def _starts_nothing(name: str) -> bool:
    """Return whether a program of a proved line is the shell's own, or uses no files."""
    row = find_row(name)
    return (row.builtin is not None and row.builtin.only_reads) or (
        row.reads is not None and row.operands == "-"
    )


def _split_options(
    words: Iterable[str], known_options: Mapping[str, Option]
) -> tuple[list[str], list[str]]:
    """Return the options and the operands among the arguments of a git command,
    without the values of options.
    """
    options, operands = list[str](), list[str]()
    remaining = iter(words)
    for word in remaining:
        if word.startswith("-"):
            options.append(word)
            if word in known_options and known_options[word].takes_next_word:
                # Whatever the value looks like, git reads it neither as an option
                # nor as the remote.
                next(remaining, None)
        else:
            operands.append(word)
    return options, operands


def _split_words(text: str) -> list[str] | None:
    """Return the words of a shell text; None when its quotes don't match."""
    try:
        return shlex.split(text)
    except ValueError:
        return None


def _read_text(path: Path) -> str:
    """Return the start of a file; "" when it can't be read."""
    try:
        return read_start(path, _MAX_FILE_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
