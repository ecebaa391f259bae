"""Rows of programs that run other programs: by an option, or as a word anywhere among theirs.

`wrappers.py` unwraps the programs whose command can be found for certain; these are the others.
"""

import re
from collections.abc import Sequence

from codeloop.shell.word import Word

# Options by which a program that is otherwise no wrapper runs another one, whole or shortened (`_is_one_of`).
_EXEC_OPTIONS = {
    "ag": ("--pager",),
    "bat": ("--pager",),
    "clush": ("-o", "--options", "-R", "--worker"),
    "dsh": ("-r", "--remoteshell", "-o", "--remoteshellopt"),
    "git-grep": ("-O",),
    "less": ("+!", "-k", "--lesskey-file", "--lesskey-src"),
    "man": ("-P", "-H", "--pager", "--html", "--preprocessor"),
    "mussh": ("-o", "-po"),
    **dict.fromkeys(("pdsh", "pdcp", "rpdcp"), ("-R",)),
    "rg": ("--pre", "--hostname-bin"),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    "scp": ("-S", "-o"),
    "sftp": ("-S", "-o"),
    "sort": ("--compress-program",),
    "split": ("--filter",),
    "ssh": ("-o",),
    "tar": (
        *("-I", "-F", "--checkpoint-action", "--info-script", "--new-volume-script", "--rmt-command", "--rsh-command"),
        *("--to-command", "--use-compress-program"),
    ),
    "wget": ("-e", "--execute", "--use-askpass"),
    "zip": ("-TT", "--unzip-command"),
    # Options of the ssh that they start on each host.
    **dict.fromkeys(
        (
            *("pssh", "pscp", "prsync", "pslurp", "pnuke"),
            *("parallel-ssh", "parallel-scp", "parallel-rsync", "parallel-slurp", "parallel-nuke"),
        ),
        ("-O", "--option", "-x", "--extra-args", "-X", "--extra-arg", "-S", "--ssh-args"),
    ),
}

# Options and words by which a subcommand of git runs a program. In lower case where git reads any case.
_GIT_EXEC_OPTIONS: dict[str, tuple[str, ...]] = {
    "rebase": ("-x", "--exec"),
    "grep": ("-O", "--open-files-in-pager"),
    "difftool": ("-x", "--extcmd"),
    # Any word of it: each filter is a script.
    "filter-branch": ("",),
    "clone": ("-u", "--upload-pack", "-c", "--config"),
    "fetch": ("--upload-pack",),
    "fetch-pack": ("--upload-pack", "--exec"),
    "send-pack": ("--receive-pack", "--exec"),
    "pull": ("--upload-pack",),
    "push": ("--receive-pack", "--exec"),
    "ls-remote": ("--upload-pack", "--exec"),
    "archive": ("--exec",),
    "config": ("alias.", "core.pager", "core.editor", "core.sshcommand", "core.hookspath", "core.fsmonitor"),
}

_RUNNER_NAMES = """
arch at batch bwrap caffeinate capsh catchsegv cgexec choom chpst cpulimit cross-env daemon daemonize
dbus-launch dbus-run-session direnv distrobox dotenv dtach eatmydata envdir expect faketime fakechroot firejail
flatpak-spawn gdb gosu hyperfine i386 ip lldb machinectl mosh multitime newgrp nodemon nq numactl openvt
parallel perf pgrphack pkexec please proot proxychains proxychains4 rlwrap run-parts run0 runcon runscript
schroot scl screen sem setarch setpriv setuidgid sg socat softlimit ssh-agent sshpass start-stop-daemon su-exec
systemd-inhibit systemd-nspawn tmux toolbox torify torsocks tsocks uftrace uname26 unshare valgrind watchexec
wine x86_64
"""
# Programs that run any of their words as a command, or a shell.
_RUNNER_PROGRAMS = frozenset(_RUNNER_NAMES.split())
# Programs that read commands from elsewhere than their words, or take a script as one word.
_SHELL_RUNNERS = frozenset({"at", "batch", "expect", "newgrp", "screen", "sg", "ssh-agent", "tmux", "machinectl"})
# The dynamic loader and emulators run the program that their first operand names.
_LOADER_NAME = re.compile(r"ld-(linux|musl).*|ld(64)?\.so.*|qemu-[\w-]+")
# Programs that run a command of a project or a container by one of their subcommands.
_RUNNER_SUBCOMMANDS = frozenset(
    {"asdf exec", "bundle exec", "conda run", "hatch run", "mise exec", "mise x", "nix run", "nix shell", "npm exec"}
    | {"npm x", "nvm exec", "pdm run", "pipenv run", "pnpm dlx", "pnpm exec", "poetry run", "pyenv exec", "rbenv exec"}
    | {"rustup run", "rye run", "uv run", "uv tool", "yarn dlx", "yarn exec", "bun x", "docker run", "docker exec"}
    | {"podman run", "podman exec", "kubectl exec", "git bisect", "git submodule"}
)


def has_exec_option(words: Sequence[Word]) -> bool:
    """Return whether a command is given an option by which it runs another program."""
    name = words[0].value
    # `tar xIf PROGRAM a.tar`: letters without a dash, where `I` names a filter and `F` a script.
    if name == "tar" and len(words) > 1 and re.fullmatch(r"[A-Za-z]*[IF][A-Za-z]*", words[1].value):
        return True
    return name in _EXEC_OPTIONS and any(_is_one_of(word.value, _EXEC_OPTIONS[name]) for word in words[1:])


def has_git_exec_option(words: Sequence[str]) -> bool:
    """Return whether a subcommand of git, the first of the words, is given what makes it run a program."""
    flags = _GIT_EXEC_OPTIONS.get(words[0], ()) if words else ()
    # The names of settings, such as `core.sshCommand`, are the same in any case.
    options = [word.lower() for word in words[1:]] if words[:1] == ["config"] else words[1:]
    return any(_is_one_of(option, flags) for option in options)


def is_runner(name: str) -> bool:
    """Return whether a program runs a command that stands somewhere among its words."""
    return name in _RUNNER_PROGRAMS or _LOADER_NAME.fullmatch(name) is not None


def may_run_script(words: Sequence[Word]) -> bool:
    """Return whether a runner may run more than the commands that are spelled out in its words."""
    name = words[0].value
    is_script = any(re.search(r"[\s;|&]", word.value) or not word.is_known for word in words[1:])
    # Without a program, `i386` and `unshare` start a shell, which may read commands from stdin.
    is_shell = all(word.value.startswith("-") for word in words[1:])
    return name in _SHELL_RUNNERS or (is_runner(name) and (is_script or is_shell))


def runs_later_word(words: Sequence[Word]) -> bool:
    """Return whether a command runs another one somewhere among its words."""
    name = words[0].value
    second = f"{name} {words[1].value}" if len(words) > 1 else ""
    return is_runner(name) or name == "npx" or second in _RUNNER_SUBCOMMANDS


def _is_one_of(option: str, flags: Sequence[str]) -> bool:
    """Return whether an option is one of the flags: a long one may be shortened, a short one combined with others."""
    name = option.partition("=")[0]
    for flag in flags:
        if option.startswith(flag) or (name.startswith("--") and len(name) > 2 and flag.startswith(name)):
            return True
        if len(flag) == 2 and re.match(rf"-[A-Za-z0-9]*{re.escape(flag[1])}", option):
            return True
    return False
