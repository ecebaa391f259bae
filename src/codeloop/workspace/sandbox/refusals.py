"""Finds refusals of the sandbox in a command's output, and explains them to the model.

A failure of the project must not be taken for a refusal: the model would ask to leave the sandbox,
and fail again. So only the exact words that tools print for a refusal count, and only if the policy
really forbids the access.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from codeloop.schema.limits import SANDBOX_BLOCKED
from codeloop.workspace.git.private.units import is_supported
from codeloop.workspace.sandbox.network.proxy_variables import PROXY_VARIABLES
from codeloop.workspace.sandbox.paths.linked_paths import is_below_any
from codeloop.workspace.sandbox.paths.restricted_paths import TEMPORARY_FOLDERS
from codeloop.workspace.sandbox.policy import SandboxPolicy
from codeloop.workspace.sandbox.sandbox import Sandbox

_REFUSAL_WORDS = (
    r"\b(?:[Rr]ead-only file ?system|[Pp]ermission denied|[Oo]peration not permitted|[Dd]evice or resource busy"
    r"|[Aa]ccess to the path .{1,300} is denied|AccessDeniedException|EROFS|EACCES|EPERM|EBUSY)\b"
)
_MISSING_WORDS = (
    r"\b(?:[Nn]o such file or directory|ENOENT|[Nn]ot found|does not exist|[Cc]annot find)\b"
)
# A word of a message that may be a path, with what is before it: `cat: /etc/shadow: ...`,
# `open 'a/b'`.
_PATH = (
    r"""(?:["'`(\u2018\u201c]|(?<=[\s:=])|^)([~.\w@%+-]*/?[^\s"'`():;,\u2018\u2019\u201c\u201d]+)"""
)
_ARGUMENT = r"""["']((?:~|/)[^"'\n]+)["']|(?:^|[\s=<>(:;&|])((?:~/|/)[^\s"'()<>;&|`:]+)"""
"""A path in a command line that starts at the root or the home, in quotes or without."""
# Package managers "resolve" versions and bundlers modules: only the resolution
# of host names counts.
_NETWORK_ERRORS = (
    r"\b(?:[Cc]ould not resolve (?:(?:host|hostname|proxy)\b|'[\w-]+(?:\.[\w-]+)+'(?! (?:from|imported)))"
    r"|[Ff]ailure in name resolution|NameResolutionError|[Nn]ame or service not known|nodename nor servname"
    r"|[Nn]etwork is unreachable|lookup \S+: no such host|No such host is known|UnknownHostException"
    r"|[Ff]ailed to lookup address|[Tt]emporary failure resolving|getaddrinfo failed"
    r"|(?:getaddrinfo|connect|code|errno|network)\W{1,3}(?:ENOTFOUND|EAI_AGAIN|ENETUNREACH)\b)"
)
_CONNECTION_REFUSED = (
    r"\b(?:[Cc]onnection refused|ECONNREFUSED|[Cc]ouldn't connect|[Ff]ailed to connect)\b"
)
# A port of this machine in a message: `localhost:5432`, `127.0.0.1, port 5432`.
_PORT = r"(?:localhost|127\.0\.0\.1|::1)[^\d\n]{0,20}?(\d{2,5})(?!\d|\.\d)"
# The state TCP_LISTEN in /proc/net/tcp.
_LISTENING_STATE = "0A"
_SERVICE_ERRORS = (
    (
        r"^error: gpg failed to sign|^gpg: .*\b[Nn]o (?:default )?secret key",
        "signing with your keys, which are hidden from sandboxed commands",
    ),
    (
        r"\(publickey|^Host key verification failed|^Could not open a connection to your authentication agent",
        "your SSH keys and their agent, which sandboxed commands can't reach",
    ),
    (
        r"\bcould not read (?:Username|Password) for '|\bterminal prompts disabled$",
        "your passwords for git, which are hidden from sandboxed commands",
    ),
    (
        r"[Cc]onnect to (?:the Docker daemon|Podman)|unix:/\S*docker\.sock|podman socket:",
        "the service that runs containers, which sandboxed commands can't reach",
    ),
)
"""Pairs of a pattern that a tool prints when it lacks a secret or a socket,
and a description of the missing thing.
"""
# Only the end of the output is searched: tools print the reason of a failure there.
_TAIL_CHARS = 20_000
_TAIL_LINES = 400
# Longer lines (bundled code, for example) may contain anything.
_MAX_LINE_CHARS = 2_000
# The shell's exit code for a file that is not a program.
# It prints "Permission denied" then, which is not a refusal.
_NOT_EXECUTABLE_CODE = 126
_NETWORK_OFF_TEXT = "the network, which is off for sandboxed commands"
_NO_DIRECT_CONNECTION_TEXT = (
    "a direct connection; programs reach hosts through the proxy that "
    "HTTPS_PROXY names, or not at all"
)
# What git prints, in C or English.
_CONFIG_ERROR = re.compile(
    r"^.{0,200}?could not (?:write|lock) config file (\S*?\.git/\S*config\S*?): ", re.MULTILINE
)
_UNKEPT_SETTINGS_NOTE = (
    "Settings of git were not changed ({}): commands in the sandbox only read them. A branch to follow, a remote, a "
    "submodule or a renamed section is not recorded. Where it is needed, run that one line by itself (`git config ...`,"
    " `git remote add ...`, `git branch --set-upstream-to ...`, `git submodule add ...`): it asks for the file."
)
ASK_OUTSIDE = "If it must be done, call bash again with `outside` and the reason."


_REFUSED_NETWORK_NOTE = (
    "blocked: the network, which the command tried to use: sandboxed commands have none on this machine, not even "
    f"localhost. {ASK_OUTSIDE}"
)
_FAILURE_WORDS = (
    r"(?i)\b(?:errors?|err!|fail(?:ed|s|ures?)?|fatal|exception|traceback|warn(?:ing)?|unable|could not|couldn't|cannot"
    r"|can't|no matching|not found|denied|unreachable|refused|offline|giving up|retry(?:ing)?|timed out|no such host"
    r"|(?-i:E[A-Z]{5,}))"
)


class SandboxedStart(NamedTuple):
    """The start of a command of a session in a sandbox.
    `hidden`: the names of the variables hidden from it.

    `since`: its time, as a file time in ns.
    """

    session: str
    sandbox: Sandbox
    command: str
    directory: Path
    environment: Mapping[str, str]
    hidden: Collection[str]
    since: int


def find_all_refusals(
    start: SandboxedStart,
    output: str,
    code: int | None,
    connections: list[str] | None,
    private_home: Path | None,
    *,
    was_refused_network: bool,
) -> list[str]:
    """Return a note for each refusal, found in the output, the private home and the proxy.
    See `find_refusals`.

    `was_refused_network`: the sandbox itself refused the network to a program of the command.
    """
    home = Path(start.environment.get("HOME") or "/nonexistent")
    policy = start.sandbox.policy
    notes = find_refusals(output, code, policy, start.directory, home, connections, start.command)
    notes += find_refused_network(output, code, notes) if was_refused_network else []
    if private_home:
        # Imported here: only a command needs it, not a text answer.
        from codeloop.workspace.sandbox.strayed_writes import find_strayed_writes

        notes += find_strayed_writes(private_home, start.since)
    notes += _explain_unkept_settings(output[-_TAIL_CHARS:])
    # There is a proxy, and it refused nothing: the mention of its address must have another cause.
    return notes + (
        find_proxy_mention(output, code, start.environment) if connections == [] else []
    )


def _explain_unkept_settings(output: str) -> list[str]:
    """Return a note if git said that it could not write its settings,
    which it may do and succeed all the same.
    """
    files = dict.fromkeys(_CONFIG_ERROR.findall(output))
    return [_UNKEPT_SETTINGS_NOTE.format(", ".join(files))] if files else []


def find_refusals(
    output: str,
    code: int | None,
    policy: SandboxPolicy,
    directory: Path,
    home: Path,
    connections: list[str] | None = None,
    command: str = "",
) -> list[str]:
    """Return a note for each refusal: of a path, a host, a port of this machine, or a service.

    The last one ends with what the model can do.
    `code`: the exit code; the output of a command that succeeded is not searched.
    None: it runs, or was ended.
    `connections`: a line for each one that the proxy refused; None where there is no proxy.
    `command`: the command line, which is searched for paths: programs may
    print these in other forms.
    """
    notes = [] if code == 0 else list(_find_refused_paths(output, code, policy, directory, home))
    notes += _explain_unseen_arguments(command, output, policy, home) if code else []
    notes += (
        _explain_secret_files(f"{command}\n{output[-_TAIL_CHARS:]}", policy, home) if code else []
    )
    notes = list(dict.fromkeys(notes))[: SANDBOX_BLOCKED.value]
    notes += [
        line.removeprefix("blocked: ") for line in (connections or ())[: SANDBOX_BLOCKED.value]
    ]
    if code != 0:
        end = output[-_TAIL_CHARS:]
        notes += [
            missing for words, missing in _SERVICE_ERRORS if re.search(words, end, re.MULTILINE)
        ]
        if policy.network != "on" and not connections and re.search(_NETWORK_ERRORS, end):
            notes.append(_NETWORK_OFF_TEXT if connections is None else _NO_DIRECT_CONNECTION_TEXT)
        ports = _find_unreached_ports(end, policy)
        notes += [
            f"connection to localhost:{port}, a service outside the sandbox" for port in ports
        ]
    return [
        f"blocked: {each}. {ASK_OUTSIDE}" if each is notes[-1] else f"blocked: {each}."
        for each in notes
    ]


def find_refused_network(output: str, code: int | None, notes: list[str]) -> list[str]:
    """Return a note for a command that was refused the network, if it may have failed for that,
    and `notes` are silent.

    `code`: the exit code, which is that of the last program in a pipe; None: it runs, or was ended.
    """
    # What a program prints tells nothing more than that something failed: it was certainly refused.
    may_have_failed = code or not output.strip() or re.search(_FAILURE_WORDS, output[-_TAIL_CHARS:])
    is_said = any(_NETWORK_OFF_TEXT in note for note in notes)
    return [_REFUSED_NETWORK_NOTE] if may_have_failed and not is_said else []


def _find_refused_paths(
    output: str, code: int | None, policy: SandboxPolicy, directory: Path, home: Path
) -> Iterator[str]:
    """Yield the policy's reasons against the paths in lines about a refusal or a missing file."""
    for line in output.splitlines()[-_TAIL_LINES:]:
        if len(line) >= _MAX_LINE_CHARS:
            continue
        if re.search(_MISSING_WORDS, line):
            for word in re.findall(_PATH, line):
                yield from _explain_missing(word, policy, directory, home)
        if code != _NOT_EXECUTABLE_CODE and re.search(_REFUSAL_WORDS, line):
            for word in re.findall(_PATH, line):
                # git prints paths relative to the top of the work tree.
                for folder in (directory, policy.writable[0]):
                    yield from _explain_refusal(word, policy, folder, home)


def _explain_unseen_arguments(
    command: str, output: str, policy: SandboxPolicy, home: Path
) -> Iterator[str]:
    """Yield a note for each path of a command line that the output calls missing,
    although it exists outside.
    """
    last_lines = output.splitlines()[-_TAIL_LINES:]
    lines = [
        line
        for line in last_lines
        if len(line) < _MAX_LINE_CHARS and re.search(_MISSING_WORDS, line)
    ]
    if not lines:
        return
    for quoted, plain in re.findall(_ARGUMENT, command):
        word = quoted or plain
        name = re.compile(rf"(?<![\w.-]){re.escape(word.rstrip('/').rpartition('/')[2])}(?![\w-])")
        if not any(name.search(line) for line in lines):
            continue
        path = _resolve_word(word, home, home)
        # The shell passes on a pattern that nothing matches,
        # so a match is looked for outside of the sandbox.
        if path is not None and plain and re.search(r"[*?\[]", path.name):
            with suppress(OSError):
                path = next(path.parent.glob(re.sub(r"\*+", "*", path.name)), path)
        shown = (*policy.writable, *policy.visible, *policy.layered)
        if (
            path is None
            or is_below_any(path, shown)
            or path in TEMPORARY_FOLDERS
            or not os.path.lexists(path)
        ):
            continue
        if is_below_any(path, (*policy.replaced, *TEMPORARY_FOLDERS)):
            yield _describe_unseen(path, home)


def _explain_secret_files(text: str, policy: SandboxPolicy, home: Path) -> Iterator[str]:
    """Yield a note for each hidden file of the project that a command or its output names."""
    # They look empty to commands, so a program fails with a message of its own
    # that mentions no refusal.
    for path in policy.hidden:
        if not path.is_relative_to(policy.writable[0]) or path.is_dir():
            continue
        name = path.name if "." in path.name else f"{path.parent.name}/{path.name}"
        if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", text):
            yield _describe_hidden(path, home)


def _describe_hidden(path: Path, home: Path) -> str:
    return f"read of {_abbreviate(path, home)}, which is hidden from sandboxed commands: it looks empty to them"


def find_proxy_mention(output: str, code: int | None, variables: Mapping[str, str]) -> list[str]:
    """Return a note if the output of a failed command names the sandbox's proxy.
    `variables`: the command's.
    """
    address = variables.get("HTTP_PROXY", "").removeprefix("http://")
    if not code or not re.fullmatch(r"127\.0\.0\.1:\d+", address):
        return []
    port = address.rpartition(":")[2]
    if not re.search(rf"(?<![\d.])127\.0\.0\.1:{port}(?!\d)", output[-_TAIL_CHARS:]):
        return []
    names = [name for name in PROXY_VARIABLES if variables.get(name) == f"http://{address}"]
    options = " ".join(f"-u {name}" for name in names)
    note = f"{address} is the proxy to which the sandbox sets HTTP_PROXY and the like. Where they are in the way, "
    note += f"as in tests, `env {options} COMMAND` runs without them; other machines can't be reached then."
    return [note]


def _find_unreached_ports(output: str, policy: SandboxPolicy) -> list[int]:
    """Return the ports of this machine that a command could not reach,
    although a server listens there.
    """
    if policy.network == "on":
        return []
    last_lines = (line[:_MAX_LINE_CHARS] for line in output.splitlines()[-_TAIL_LINES:])
    lines = [line for line in last_lines if re.search(_CONNECTION_REFUSED, line)]
    ports = dict.fromkeys(int(port) for line in lines for port in re.findall(_PORT, line))
    refused_ports = [port for port in ports if f"localhost:{port}" not in policy.hosts]
    open_ports = _list_open_ports() if refused_ports else set[int]()
    return [port for port in refused_ports if port in open_ports][: SANDBOX_BLOCKED.value]


def _list_open_ports() -> set[int]:
    """Return the ports of this machine on which a server listens; none where there is no /proc."""
    ports: set[int] = set()
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            # A heading, then for each socket its number, its address, the other address,
            # the state and more.
            rows = [
                row.split()
                for row in Path("/proc/net", name).read_text(encoding="ascii").splitlines()[1:]
            ]
            addresses = [address for _, address, _, state, *_ in rows if state == _LISTENING_STATE]
            ports |= {int(address.rpartition(":")[2], 16) for address in addresses}
    return ports


def _explain_refusal(word: str, policy: SandboxPolicy, directory: Path, home: Path) -> list[str]:
    """Return a note if the policy refuses a path;
    none if it does not, or the word is not a path.
    """
    path = _resolve_word(word, directory, home)
    if path is None:
        return []
    path_shown = _abbreviate(path, home)
    if is_below_any(path, policy.hidden):
        return [
            _describe_hidden(path, home)
            if path.is_file()
            else f"read of {path_shown}, which is hidden from sandboxed commands"
        ]
    if any(path.is_relative_to(each) for each in policy.protected):
        return [f"write to {path_shown}, which is protected"]
    if any(path.is_relative_to(each) and not is_supported(each) for each in policy.git_folders):
        reason = "since it keeps references in reftables or leads elsewhere by a link"
        return [
            f"write to {path_shown}: commands can only read this repository's git folder, {reason}"
        ]
    if path in policy.writable and path.is_file():
        return [f"replacing {path_shown}, which may be written here, but not be renamed or removed"]
    if any(path.is_relative_to(each) for each in policy.writable) or not os.access(
        path.parent, os.F_OK
    ):
        return []
    # Landlock refuses paths that the other backends hide.
    if not policy.shows(path) and os.path.lexists(path):
        return [_describe_unseen(path, home)]
    # If the user may not write the path either, it is refused outside the sandbox as well.
    may_write = os.access(path if os.path.lexists(path) else path.parent, os.W_OK)
    return [f"write to {path_shown}, outside the project"] if may_write else []


def _explain_missing(word: str, policy: SandboxPolicy, directory: Path, home: Path) -> list[str]:
    """Return a note if a path exists but the sandbox hides it."""
    path = _resolve_word(word, directory, home)
    if (
        path is None
        or not is_below_any(path, policy.replaced)
        or policy.shows(path)
        or not os.path.lexists(path)
    ):
        return []
    return [_describe_unseen(path, home)]


def _describe_unseen(path: Path, home: Path) -> str:
    return f"read of {_abbreviate(path, home)}, which sandboxed commands don't see"


def _resolve_word(word: str, directory: Path, home: Path) -> Path | None:
    """Resolve a word of a message to a path; None if it is not a path."""
    if "/" not in word and not os.path.lexists(directory / word):
        return None
    try:
        return (directory / (home / word[2:] if word.startswith("~/") else Path(word))).resolve()
    except (OSError, RuntimeError):
        return None


def _abbreviate(path: Path, home: Path) -> str:
    """Return a path as text, below the home with `~`."""
    return (
        f"~/{path.relative_to(home)}" if path.is_relative_to(home) and path != home else str(path)
    )
