"""Checks of the machine: versions, programs, terminal, sandbox, folders, disk space, proxies,
certificates.
"""

import asyncio
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from codeloop import __version__
from codeloop.app.doctor.finding import Finding
from codeloop.config.files import describe_os_error
from codeloop.config.paths import Paths
from codeloop.config.project_root import ProjectRoot
from codeloop.config.redact import redact_address
from codeloop.kit.programs import find_program, make_child_environment
from codeloop.kit.remove_tree import temporary_folder
from codeloop.schema.bounds.doctor import (
    DOCTOR_PROGRAM,
    DOCTOR_PROXY,
    DOCTOR_SPACE,
    DOCTOR_SPACE_LEAST,
)
from codeloop.schema.config import SandboxConfig
from codeloop.workspace.sandbox.policy import PolicyInput
from codeloop.workspace.sandbox.sandbox_report import make_report
from codeloop.workspace.search.grep_query import SearchFailed
from codeloop.workspace.search.ripgrep import Ripgrep

_GROUP = "this machine"
_PROXY_VARIABLES = (
    "https_proxy",
    "http_proxy",
    "all_proxy",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "ALL_PROXY",
)
_PROXY_PORTS = {"http": 80, "https": 443, "socks4": 1080, "socks5": 1080, "socks5h": 1080}
"""The schemes of proxies that can be used, each with the port of an address that names none."""
_CERTIFICATE_VARIABLES = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "CODELOOP_CLIENT_CERT",
    "CODELOOP_CLIENT_KEY",
)
_OPTIONAL_PROGRAMS = {
    "node": "only JavaScript plugins and MCP servers of npm need it",
    "uv": "only MCP servers that `uvx` starts need it",
}
"""Optional programs, each with the explanation for a user who does not have it."""


def examine_versions() -> Iterator[Finding]:
    """Yield the versions of codeloop, Python and the operating system."""
    yield Finding("codeloop", "version", "ok", f"{__version__} in {Path(__file__).parents[2]}")
    python = f"{platform.python_version()} ({sys.executable}) on {platform.system()} {platform.release()}"
    yield Finding("codeloop", "Python", "ok", f"{python}, {platform.machine()}")


async def examine_terminal(
    environment: Mapping[str, str], columns: int, rows: int
) -> list[Finding]:
    """Return findings on the terminal, the encoding and tmux, as the terminal UI needs them.

    `columns`: 0 if stdout is not a terminal.
    """
    findings: list[Finding] = []
    term = environment.get("TERM", "")
    if not columns:
        findings.append(Finding(_GROUP, "terminal", "ok", "none here: stdout is a pipe or a file"))
    elif term in {"", "dumb"}:
        fix = "Use a terminal that sets TERM, such as xterm-256color; without one the conversation is line by line."
        findings.append(Finding(_GROUP, "terminal", "warning", f"TERM is {term or 'not set'}", fix))
    else:
        colours = environment.get("COLORTERM") or ("256 colours" if "256" in term else "16 colours")
        program = environment.get("TERM_PROGRAM")
        text = f"{term}{f' ({program})' if program else ''}, {columns}x{rows}, {colours}"
        findings.append(Finding(_GROUP, "terminal", "ok", text))
    encoding = sys.getfilesystemencoding()
    if encoding.lower() != "utf-8":
        fix = "Set LANG to a UTF-8 locale, such as C.UTF-8."
        findings.append(Finding(_GROUP, "encoding", "warning", f"{encoding}, not UTF-8", fix))
    if environment.get("TMUX"):
        setting = await _read_output(["tmux", "show-options", "-sqv", "extended-keys"], environment)
        if setting.strip() in {"", "off"}:
            fix = "Put into ~/.tmux.conf: set -s extended-keys on"
            text = "tmux has extended-keys off, so shift+enter is enter"
            findings.append(Finding(_GROUP, "tmux", "warning", text, fix))
    return findings


async def examine_programs(environment: Mapping[str, str]) -> list[Finding]:
    """Return findings on the programs that codeloop starts."""
    names = ("git", *_OPTIONAL_PROGRAMS)
    git, *versions = await asyncio.gather(*(_read_version(name, environment) for name in names))
    missing = "not on the PATH: no branch, no diff of the work tree"
    findings = [
        Finding(_GROUP, "git", "ok", git)
        if git
        else Finding(_GROUP, "git", "warning", missing, "Install git.")
    ]
    try:
        ripgrep = await Ripgrep().find_executable(environment)
        findings.append(
            Finding(_GROUP, "rg", "ok", await _read_version(ripgrep, environment) or ripgrep)
        )
    except SearchFailed:
        fix = "Install ripgrep 13 or newer (apt install ripgrep, brew install ripgrep)."
        findings.append(
            Finding(_GROUP, "rg", "problem", "no ripgrep 13 or newer: nothing can be searched", fix)
        )
    for name, version in zip(_OPTIONAL_PROGRAMS, versions, strict=True):
        findings.append(
            Finding(_GROUP, name, "ok", version or f"not on the PATH; {_OPTIONAL_PROGRAMS[name]}")
        )
    return findings


async def examine_sandbox(
    project_root: ProjectRoot, paths: Paths, config: SandboxConfig, environment: Mapping[str, str]
) -> Finding:
    """Try the sandbox, and return a finding on whether it confines commands on this machine."""
    if config.mode == "off":
        fix = 'Remove "sandbox": "off" from the configuration; commands are asked about instead.'
        return Finding(_GROUP, "sandbox", "warning", "switched off by the configuration", fix)
    try:
        with temporary_folder("codeloop-doctor-") as scratch:
            policy_input = PolicyInput(
                project_root.root,
                project_root.directory,
                scratch,
                dict(environment),
                paths.private_folders,
            )
            report = await make_report(policy_input, config, is_brief=True)
    except OSError as error:
        return Finding(
            _GROUP,
            "sandbox",
            "problem",
            f"could not be tried: {describe_os_error(error)}",
            "See: codeloop debug sandbox",
        )
    if report.holds:
        refused = [f"not {kind} ({reason})" for kind, reason in report.refused.items()]
        clauses = (
            f"{report.backend}, tried: it holds",
            f"network {report.network}",
            *refused,
            *report.shortcomings,
        )
        if report.variables:
            clauses = (*clauses, f"hidden variables: {', '.join(report.variables)}")
        is_weak = report.backend == "landlock"
        fix = (
            "Allow user namespaces and mounts in them, or install bubblewrap (docs/sandbox.md)."
            if is_weak
            else ""
        )
        return Finding(_GROUP, "sandbox", "warning" if is_weak else "ok", "; ".join(clauses), fix)
    if report.backend:
        failed_attempts = ", ".join(attempt.what for attempt in report.attempts if not attempt.ok)
        text = f"{report.backend} does not hold: {failed_attempts}"
        return Finding(_GROUP, "sandbox", "problem", text, "See: codeloop debug sandbox")
    reasons = "; ".join(f"{kind}: {reason}" for kind, reason in report.refused.items())
    fix = "Install bubblewrap, or allow user namespaces (docs/sandbox.md); until then each command is asked about."
    return Finding(_GROUP, "sandbox", "problem", f"none can be had here ({reasons})", fix)


_CONTENTS = {
    "data": "sessions and keys",
    "state": "logs and records",
    "cache": "copies of what can be fetched again",
}


def examine_folders(paths: Paths) -> Iterator[Finding]:
    """Yield findings on codeloop's folders: whether they can be written, have room,
    and hide the keys.
    """
    for name in ("data", "state", "cache"):
        folder: Path = getattr(paths, name)
        # A folder that does not exist yet is made at the first use, in the nearest one that does.
        existing = next(each for each in (folder, *folder.parents) if each.exists())
        problem = _find_write_problem(existing)
        if problem:
            fix = f"Make {existing} writable for you (chown, chmod), or set CODELOOP_HOME to another folder."
            yield Finding(
                "folders",
                name,
                "problem",
                f"{folder}, where {_CONTENTS[name]} are kept, can't be written: {problem}",
                fix,
            )
            continue
        free = shutil.disk_usage(existing).free
        text = f"{folder}, {free / 1024**3:.1f} GB free"
        if free < DOCTOR_SPACE.value:
            state = "problem" if free < DOCTOR_SPACE_LEAST.value else "warning"
            yield Finding("folders", name, state, text, "Make room: sessions and undo need it.")
        else:
            yield Finding("folders", name, "ok", text)
    key_file = paths.credentials_file
    if key_file.exists() and key_file.stat().st_mode & 0o077:
        text = f"others can read {key_file}, which holds your keys"
        yield Finding("folders", "keys", "problem", text, f"chmod 600 {key_file}")


async def examine_proxies(environment: Mapping[str, str]) -> list[Finding]:
    """Return findings on the proxies of the environment: whether something listens there."""
    variables = [name for name in _PROXY_VARIABLES if environment.get(name)]
    return await asyncio.gather(*(_try_proxy(name, environment[name]) for name in variables))


async def _try_proxy(name: str, value: str) -> Finding:
    """Return a finding on the proxy that the variable `name` names by `value`,
    an address with or without a scheme.
    """
    url = value if "://" in value else f"http://{value}"
    address, fix = redact_address(url), f"Set {name} to http://HOST:PORT, or unset it."
    parts = urlsplit(url)
    if parts.scheme not in _PROXY_PORTS:
        return Finding(
            "network", name, "problem", f"{address}: a {parts.scheme} proxy can't be used", fix
        )
    try:
        host, port = parts.hostname or "", parts.port or _PROXY_PORTS[parts.scheme]
    except ValueError as error:
        return Finding("network", name, "problem", f"{address} is not an address: {error}", fix)
    try:
        async with asyncio.timeout(DOCTOR_PROXY.seconds):
            _, writer = await asyncio.open_connection(host, port)
    except TimeoutError:
        reason = f"no answer in {DOCTOR_PROXY.seconds:.0f} s"
    except OSError as error:
        # asyncio puts the address in place of the system's words;
        # what resolves names has numbers below 0.
        number = error.errno or 0
        reason = os.strerror(number) if number > 0 else error.strerror or str(error)
    else:
        writer.close()
        return Finding("network", name, "ok", address)
    fix = f"Start it, correct {name}, or unset it: until then nothing in the network is reached."
    return Finding("network", name, "problem", f"{address} can't be reached: {reason}", fix)


def examine_network(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield findings on what else the environment sets for requests: exceptions from proxies,
    and certificates.
    """
    if not any(environment.get(name) for name in _PROXY_VARIABLES):
        yield Finding("network", "proxy", "ok", "none in the environment")
    elif bypass := environment.get("no_proxy") or environment.get("NO_PROXY"):
        yield Finding("network", "no_proxy", "ok", bypass)
    for name in _CERTIFICATE_VARIABLES:
        if (path := environment.get(name)) and not Path(path).exists():
            yield Finding(
                "network",
                name,
                "problem",
                f"{path} does not exist",
                f"Correct {name}, or unset it.",
            )


def _find_write_problem(folder: Path) -> str:
    """Return the reason why a folder can't be written in, "" if it can."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".codeloop-doctor-"):
            return ""
    except OSError as error:
        return describe_os_error(error)


async def _read_version(name: str, environment: Mapping[str, str]) -> str:
    """Return a program's version and path, "" if it is missing or does not start."""
    path = find_program(name, environment.get("PATH")) if not name.startswith("/") else name
    if path is None:
        return ""
    match = re.search(r"\d+\.\d[\w.]*", await _read_output([path, "--version"], environment))
    return f"{match[0]} ({path})" if match else ""


async def _read_output(command: list[str], environment: Mapping[str, str]) -> str:
    """Return a program's output, "" if it does not start or takes too long."""

    def run() -> str:
        process = subprocess.run(
            command,
            env=make_child_environment(environment, os.sep),
            # Not in the project, whose files might select another version through
            # a version manager.
            cwd=os.sep,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DOCTOR_PROGRAM.seconds,
            check=False,
        )
        return process.stdout.decode("utf-8", "replace")

    try:
        return await asyncio.to_thread(run)
    except (OSError, subprocess.TimeoutExpired):
        return ""
