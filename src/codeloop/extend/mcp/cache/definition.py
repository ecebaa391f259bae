"""Definitions of MCP servers: the `mcp` table of the reference's configuration, with further keys of ours."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, cast

import msgspec
from msgspec import Struct

from codeloop.schema.config import ProgramSandboxConfig
from codeloop.schema.wire import JSON, Wire

_OTHER_KEYS = {
    "args": "part of `command`, a list of all words",
    "env": "`environment`",
    "disabled": "`enabled`",
    "serverUrl": "`url`",
    "httpUrl": "`url`",
}
"""Keys of other programs' entries -> our keys."""
_CONTAINERS = frozenset(("docker", "podman", "nerdctl"))
"""Container programs, whose service is unreachable from a sandbox."""
Protocol = Literal["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
Timeout = Annotated[int, msgspec.Meta(ge=1, le=86_400_000)]


class OAuthSettings(Wire):
    """How to sign in when a server requires it. Omitted values are discovered and registered automatically."""

    client_id: str = msgspec.field(default="", name="clientId")
    client_secret: str = ""
    scope: str = ""
    callback_port: int = 0
    redirect_uri: str = ""


class LocalDefinition(Wire, tag_field="type", tag="local"):
    """A program that is started and spoken to over its stdin and stdout. `timeout` in ms, of each request.

    `tools`: wildcards of the tools that are wanted; one that begins with `!` leaves tools out.
    `protocol`: the version that is offered; left out, the newest one that the server speaks.
    `sandbox`: False for none, or what it may do besides.
    """

    command: Annotated[list[str], msgspec.Meta(min_length=1)]
    cwd: str | None = None
    environment: dict[str, str] = {}
    enabled: bool = True
    timeout: Timeout | None = None
    tools: list[str] = []
    protocol: Protocol | None = None
    sandbox: bool | ProgramSandboxConfig | None = None

    @property
    def is_boxed(self) -> bool | ProgramSandboxConfig:
        """Whether it runs in a sandbox, or in which; by default all but container programs do."""
        if self.sandbox is None:
            return Path(self.command[0]).name not in _CONTAINERS
        return self.sandbox


class RemoteDefinition(Wire, tag_field="type", tag="remote"):
    """A server at an address, spoken to over HTTP; the rest as in LocalDefinition."""

    url: Annotated[str, msgspec.Meta(pattern="^https?://")]
    headers: dict[str, str] = {}
    oauth: OAuthSettings | Literal[False] | None = None
    enabled: bool = True
    timeout: Timeout | None = None
    tools: list[str] = []
    protocol: Protocol | None = None


class ServerDefinition(Struct, frozen=True):
    """One entry. `problem`: why it can't be used ("": it can); `scope`: the project that brought it, "" for none."""

    name: str
    how: LocalDefinition | RemoteDefinition | None
    scope: str = ""
    problem: str = ""

    @property
    def is_enabled(self) -> bool:
        """Return whether it may be started."""
        return self.how is not None and self.how.enabled

    @property
    def digest(self) -> str:
        """The hash of everything that defines the server: its program or address, and its inputs."""
        match self.how:
            case LocalDefinition(command=command, cwd=cwd, environment=environment):
                what: JSON = {"command": command, "cwd": cwd, "environment": environment, **_describe_sandbox(self.how)}
            case RemoteDefinition(url=url, headers=headers, oauth=oauth):
                what = {"url": url, "headers": headers, "client": oauth.client_id if oauth else oauth}
            case _:
                what = {}
        return hashlib.sha256(msgspec.json.encode(what, order="sorted")).hexdigest()[:32]

    @property
    def listing_key(self) -> str:
        """The name under which the server's listing is stored: in another version it may offer other things."""
        protocol = self.how.protocol if self.how is not None else None
        return self.digest if protocol is None else f"{self.digest}-{protocol}"

    @property
    def text(self) -> str:
        """The entry for display, a value a line, with hashes of variables and headers, so that a change shows."""
        match self.how:
            case LocalDefinition(command=command, cwd=cwd, environment=environment):
                lines = ["command:", *(f"  {word}" for word in command), *([f"cwd: {cwd}"] if cwd else [])]
                lines += [
                    f"sandbox: {msgspec.json.encode(each).decode()}" for each in _describe_sandbox(self.how).values()
                ]
                return "\n".join([*lines, *_hash_values("environment", environment)]) + "\n"
            case RemoteDefinition(url=url, headers=headers):
                return "\n".join([f"url: {url}", *_hash_values("header", headers)]) + "\n"
            case _:
                return ""


def _describe_sandbox(how: LocalDefinition) -> JSON:
    return {} if how.sandbox is None else {"sandbox": msgspec.to_builtins(how.sandbox)}


def _hash_values(kind: str, values: Mapping[str, str]) -> list[str]:
    return [
        f"{kind} {name}: sha256 {hashlib.sha256(value.encode()).hexdigest()[:12]}" for name, value in values.items()
    ]


def definition_of(name: str, entry: object, scope: str = "") -> ServerDefinition:
    """Parse one entry. Never fails: an error becomes its `problem`."""
    if isinstance(entry, dict) and entry.keys() <= {"enabled"}:
        is_off = entry == {"enabled": False}
        return ServerDefinition(name, None, scope, "" if is_off else "it has neither a command nor a url")
    if wrong := _find_mistake(cast("object", entry)):
        return ServerDefinition(name, None, scope, f"mcp.{name} is not a server: {wrong}")
    try:
        how = msgspec.convert(entry, LocalDefinition | RemoteDefinition)
    except msgspec.ValidationError as error:
        return ServerDefinition(name, None, scope, f"mcp.{name} is not a server: {error}")
    return ServerDefinition(name, how, scope)


def _find_mistake(entry: object) -> str:
    """Return the key to write instead of another program's; "" when there is none."""
    if not isinstance(entry, dict):
        return ""
    data = cast("JSON", entry)
    if isinstance(data.get("command"), str):
        return "its `command` is one text, and has to be a list of words"
    if wrong := next((key for key in _OTHER_KEYS if key in data), None):
        return f"`{wrong}` is another program's key; here that is {_OTHER_KEYS[wrong]}"
    return "" if data.get("type") in {"local", "remote"} else 'its `type` has to be "local" or "remote"'


def definitions_of(mcp: Mapping[str, object], scopes: Mapping[str, str]) -> dict[str, ServerDefinition]:
    """Return the configured servers by name. `scopes`: the project of those defined by a project."""
    return {name: definition_of(name, entry, scopes.get(name, "")) for name, entry in mcp.items()}
