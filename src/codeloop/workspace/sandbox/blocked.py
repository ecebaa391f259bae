"""What the sandbox kept a command from, found in the command's own words, as the model is told."""

import os
import re
from contextlib import suppress
from pathlib import Path

from codeloop.schema.limits import SANDBOX_BLOCKED
from codeloop.workspace.sandbox.policy import SandboxPolicy
from codeloop.workspace.sandbox.surroundings import is_below_any

_REFUSAL = re.compile(
    r"read-only file system|permission denied|operation not permitted|device or resource busy|EROFS|EACCES|EPERM|EBUSY",
    re.IGNORECASE,
)
_MISSING = re.compile(r"No such file or directory|ENOENT|not found|does not exist|cannot find", re.IGNORECASE)
_PATH = re.compile(r"""(?:["'`(\u2018\u201c]|(?<=[\s:=])|^)([~.\w@%+-]*/?[^\s"'`():;,\u2018\u2019\u201c\u201d]+)""")
_NETWORK = re.compile(
    r"could not resolve|name resolution|network is unreachable|ENOTFOUND|EAI_AGAIN|ENETUNREACH|no such host|"
    r"failed to lookup address|temporary failure resolving|nodename nor servname",
    re.IGNORECASE,
)
_UNREACHED = re.compile(r"connection refused|ECONNREFUSED|couldn't connect|failed to connect", re.IGNORECASE)
_PORT = re.compile(r"(?:localhost|127\.0\.0\.1|::1)[^\d\n]{0,20}?(\d{2,5})(?!\d|\.\d)")
_LISTENS = "0A"  # in /proc/net/tcp
_SERVICES = (
    (
        r"gpg failed to sign|no (?:default )?secret key",
        "signing with your keys, which are hidden from sandboxed commands",
    ),
    (
        r"\(publickey|host key verification failed|connection to your authentication agent",
        "your SSH keys and their agent, which sandboxed commands can't reach",
    ),
    (
        r"could not read (?:username|password) for|terminal prompts disabled",
        "your passwords for git, which are hidden from sandboxed commands",
    ),
    (
        r"connect to the docker daemon|podman socket|docker\.sock",
        "the service that runs containers, which sandboxed commands can't reach",
    ),
)
"""What tools say that lack a secret or a socket, and what that is."""
_TAIL = 20_000  # characters
_LINES = 400
_OFF = "the network, which is off for sandboxed commands"
_DIRECT = "a direct connection; programs reach hosts through the proxy that HTTPS_PROXY names, or not at all"
_NAME_IT = "To write there, name the path in the command itself, or use `outside` with the reason."
ASK_OUTSIDE = "If it must be done, call bash again with `outside` and the reason."


def blocked(
    output: str, policy: SandboxPolicy, directory: Path, home: Path, refused: list[str] | None = None
) -> list[str]:
    """Return a note for each place that the output says was refused, and that the policy does not allow.

    `refused`: the connections that the proxy refused, a line each; None where there is no proxy.
    """
    found: dict[str, None] = {}
    for line in output.splitlines()[-_LINES:]:
        if len(line) >= 2000:
            continue
        if _MISSING.search(line):
            for named in _PATH.findall(line):
                found |= dict.fromkeys(_missing(named, policy, directory, home))
        if _REFUSAL.search(line):
            for named in _PATH.findall(line):
                # git names its own files as seen from the top.
                for place in (directory, policy.writable[0]):
                    found |= dict.fromkeys(_refused(named, policy, place, home))
    places = list(found)[: SANDBOX_BLOCKED.value]
    places += [line.removeprefix("blocked: ") for line in (refused or ())[: SANDBOX_BLOCKED.value]]
    end = output[-_TAIL:]
    places += [what for words, what in _SERVICES if re.search(words, end, re.IGNORECASE)]
    if policy.network != "on" and not refused and _NETWORK.search(end):
        places.append(_OFF if refused is None else _DIRECT)
    places += [f"connection to localhost:{port}, a service outside the sandbox" for port in _unreached(end, policy)]
    return [f"blocked: {place}. {ASK_OUTSIDE}" if place is places[-1] else f"blocked: {place}." for place in places]


def find_strayed_writes(home: Path, since: int) -> list[str]:
    """Return a note when something was written below a private home that the user would look for in the real one.

    `since`: a time of files, in ns. What tools write there has a name with a dot, and is of no interest.
    """
    try:
        with os.scandir(home) as entries:
            rows = [(entry.name, entry.stat(follow_symlinks=False).st_mtime_ns) for entry in entries]
    except OSError:
        return []
    names = sorted(name for name, changed in rows if changed > since and not name.startswith("."))
    if not names:
        return []
    shown = ", ".join(f"~/{name}" for name in names[: SANDBOX_BLOCKED.value])
    return [f"blocked: write to {shown} in the user's home: only sandboxed commands see it. {_NAME_IT}"]


def _unreached(output: str, policy: SandboxPolicy) -> list[int]:
    """Return the ports of this machine that a command did not reach, and where something listens outside."""
    if policy.network == "on":
        return []
    rows = [line[:2000] for line in output.splitlines()[-_LINES:] if _UNREACHED.search(line[:2000])]
    named = dict.fromkeys(int(port) for row in rows for port in _PORT.findall(row))
    named = {port: None for port in named if f"localhost:{port}" not in policy.hosts}
    outside = _listening() if named else set[int]()
    return [port for port in named if port in outside][: SANDBOX_BLOCKED.value]


def _listening() -> set[int]:
    """Return the ports of this machine at which something listens; none where that can't be seen."""
    found: set[int] = set()
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            rows = [row.split() for row in Path("/proc/net", name).read_text(encoding="ascii").splitlines()[1:]]
            found |= {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == _LISTENS}
    return found


def _refused(named: str, policy: SandboxPolicy, directory: Path, home: Path) -> list[str]:
    """Return the policy's reasons against a path, in words; empty when it has none, or it is no path at all."""
    path = _named(named, directory, home)
    if path is None:
        return []
    shown = _shown(path, home)
    if is_below_any(path, policy.hidden):
        return [f"read of {shown}, which is hidden from sandboxed commands"]
    if any(path.is_relative_to(each) for each in policy.protected):
        return [f"write to {shown}, which is protected"]
    if path in policy.writable and path.is_file():
        return [f"replacing {shown}, which may be written here, but not be renamed or removed"]
    if any(path.is_relative_to(each) for each in policy.writable) or not os.access(path.parent, os.F_OK):
        return []
    return [f"write to {shown}, outside the project"]


def _missing(named: str, policy: SandboxPolicy, directory: Path, home: Path) -> list[str]:
    """Return that a path is out of sight, in words, when it is there and the sandbox does not show it."""
    path = _named(named, directory, home)
    if path is None or not is_below_any(path, policy.replaced) or policy.shows(path) or not os.path.lexists(path):
        return []
    return [f"read of {_shown(path, home)}, which sandboxed commands don't see"]


def _named(named: str, directory: Path, home: Path) -> Path | None:
    """Resolve a word of a message to a path; None when it is none."""
    if "/" not in named and not os.path.lexists(directory / named):
        return None
    try:
        return (directory / (home / named[2:] if named.startswith("~/") else Path(named))).resolve()
    except (OSError, RuntimeError):
        return None


def _shown(path: Path, home: Path) -> str:
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) and path != home else str(path)
