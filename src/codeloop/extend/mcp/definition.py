"""Definitions of MCP servers: parses the entries of the configuration's `mcp` table.

The table has the keys that OpenCode documents, and further ones of ours: `tools`,
`protocol` and `sandbox`.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, cast

import msgspec
from msgspec import Struct

from codeloop.schema.config import ProgramSandboxConfig
from codeloop.schema.provider_config import OwnEntry
from codeloop.schema.wire import JSON, Wire, replace

# Keys that other programs use in such entries -> what to write instead, for the error message.
_FOREIGN_KEYS = {
    "args": "part of `command`, a list of all words",
    "env": "`environment`",
    "disabled": "`enabled`",
    "serverUrl": "`url`",
    "httpUrl": "`url`",
}
CONTAINER_PROGRAMS = frozenset(("docker", "podman", "nerdctl"))
"""Programs that run a server in a container: they can't reach their service from a sandbox,
so they get none.
"""
# Programs that download what they start, if they don't have it yet; those of the second line
# only by these subcommands.
_DOWNLOADERS = frozenset(("npx", "bunx", "uvx", "pipx"))
_RUNNERS = frozenset(("npm", "pnpm", "yarn", "bun", "uv", *CONTAINER_PROGRAMS))
_RUNS = frozenset(("exec", "dlx", "x", "run"))
ProtocolVersion = Literal["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
TimeoutMs = Annotated[int, msgspec.Meta(ge=1, le=86_400_000)]


class OAuthSettings(Wire):
    """The OAuth settings of a remote server. Those that are left out are discovered and
    registered when signing in.
    """

    client_id: str = msgspec.field(default="", name="clientId")
    client_secret: str = ""
    issuer: str = ""
    """The address of the provider that gets the client secret;
    "": only the server itself gets it.
    """
    scope: str = ""
    callback_port: int = 0
    redirect_uri: str = ""


class LocalDefinition(Wire, tag_field="type", tag="local"):
    """A server that is a program: it is started, and speaks MCP over its stdin and stdout.

    `timeout`: of each request, in ms. `tools`: wildcards of the tools to use;
    one with a leading `!` leaves tools out.
    `protocol`: the MCP version to offer; None: the newest one that the server speaks. `sandbox`:
    False for none, or further permissions in it. `env_file`: a file of further variables, a line
    each.
    """

    command: Annotated[list[str], msgspec.Meta(min_length=1)]
    cwd: str | None = None
    environment: dict[str, str] = {}
    enabled: bool = True
    timeout: TimeoutMs | None = None
    tools: list[str] = []
    protocol: ProtocolVersion | None = None
    sandbox: bool | ProgramSandboxConfig | None = None
    env_file: str = msgspec.field(default="", name="envFile")

    @property
    def effective_sandbox(self) -> bool | ProgramSandboxConfig:
        """Whether the program runs in a sandbox, or its settings.
        By default all but container programs do.
        """
        if self.sandbox is None:
            return Path(self.command[0]).name not in CONTAINER_PROGRAMS
        return self.sandbox

    @property
    def downloader(self) -> str:
        """The program that may have to download the server before it starts it; "": none."""
        program = Path(self.command[0]).name.removesuffix(".cmd")
        # `uv run`, `pnpm dlx`, `docker run`: other subcommands are as quick as any program.
        is_runner = program in _RUNNERS and any(word in _RUNS for word in self.command[1:3])
        return program if program in _DOWNLOADERS or is_runner else ""


class RemoteDefinition(Wire, tag_field="type", tag="remote"):
    """A server at a URL, which speaks MCP over HTTP; the other fields are as in LocalDefinition."""

    url: Annotated[str, msgspec.Meta(pattern="^https?://")]
    headers: dict[str, str] = {}
    oauth: OAuthSettings | Literal[False] | None = None
    enabled: bool = True
    timeout: TimeoutMs | None = None
    tools: list[str] = []
    protocol: ProtocolVersion | None = None


class ServerDefinition(Struct, frozen=True):
    """One entry of the table. `config` is None for an entry that can't be used,
    or that only switches a server off.

    `problem`: why the entry can't be used, "" when it can. `scope`: the project whose configuration
    has the entry, "" for the user's own.
    """

    name: str
    config: LocalDefinition | RemoteDefinition | None
    scope: str = ""
    problem: str = ""

    @property
    def is_enabled(self) -> bool:
        """Whether the server may be started."""
        return self.config is not None and self.config.enabled

    @property
    def digest(self) -> str:
        """The hash of everything that defines the server: its program or address,
        and its inputs.
        """
        match self.config:
            case LocalDefinition(command=command, cwd=cwd, environment=environment):
                identity: JSON = {
                    "command": command,
                    "cwd": cwd,
                    "environment": environment,
                    **_describe_more(self.config),
                }
            case RemoteDefinition(url=url, headers=headers, oauth=oauth):
                # Of the OAuth settings only the client decides which server this is; the others may
                # change without a new consent.
                identity = {
                    "url": url,
                    "headers": headers,
                    "client": oauth.client_id if oauth else oauth,
                }
            case _:
                identity = {}
        return hashlib.sha256(msgspec.json.encode(identity, order="sorted")).hexdigest()[:32]

    @property
    def listing_key(self) -> str:
        """The key under which the server's tools are cached;
        they may differ from one protocol version to another.
        """
        protocol = self.config.protocol if self.config is not None else None
        return self.digest if protocol is None else f"{self.digest}-{protocol}"

    @property
    def text(self) -> str:
        """The entry as text, a value a line, to which the user agrees before a
        project's server is started.

        Variables and headers are shown as hashes, so that a change is visible and a secret is not.
        """
        match self.config:
            case LocalDefinition(command=command, cwd=cwd, environment=environment):
                lines = [
                    "command:",
                    *(f"  {word}" for word in command),
                    *([f"cwd: {cwd}"] if cwd else []),
                ]
                lines += [
                    f"{key}: {msgspec.json.encode(each).decode()}"
                    for key, each in _describe_more(self.config).items()
                ]
                return "\n".join([*lines, *_hash_values("environment", environment)]) + "\n"
            case RemoteDefinition(url=url, headers=headers):
                return "\n".join([f"url: {url}", *_hash_values("header", headers)]) + "\n"
            case _:
                return ""


def _describe_more(config: LocalDefinition) -> JSON:
    """Return the keys `sandbox` and `envFile` with their values, if the definition has them."""
    sandbox = {} if config.sandbox is None else {"sandbox": msgspec.to_builtins(config.sandbox)}
    return {**sandbox, **({"envFile": config.env_file} if config.env_file else {})}


def _hash_values(kind: str, values: Mapping[str, str]) -> list[str]:
    return [
        f"{kind} {name}: sha256 {hashlib.sha256(value.encode()).hexdigest()[:12]}"
        for name, value in values.items()
    ]


def parse_definition(name: str, entry: object, scope: str = "") -> ServerDefinition:
    """Parse one entry. An invalid entry raises nothing: the error becomes the
    definition's `problem`.
    """
    if isinstance(entry, dict) and entry.keys() <= {"enabled"}:
        is_off = entry == {"enabled": False}
        return ServerDefinition(
            name, None, scope, "" if is_off else "it has neither a command nor a url"
        )
    if mistake := _find_mistake(cast("object", entry)):
        return ServerDefinition(name, None, scope, f"mcp.{name} is not a server: {mistake}")
    try:
        config = msgspec.convert(entry, LocalDefinition | RemoteDefinition)
    except msgspec.ValidationError as error:
        return ServerDefinition(name, None, scope, f"mcp.{name} is not a server: {error}")
    return ServerDefinition(name, config, scope)


def _find_mistake(entry: object) -> str:
    """Describe the mistake in an entry that has the form of another program, and its correction;
    "": it has none.
    """
    if not isinstance(entry, dict):
        return ""
    data = cast("JSON", entry)
    if isinstance(data.get("command"), str):
        return "its `command` is one text, and has to be a list of words"
    if foreign_key := next((key for key in _FOREIGN_KEYS if key in data), None):
        return (
            f"`{foreign_key}` is another program's key; here that is {_FOREIGN_KEYS[foreign_key]}"
        )
    return (
        ""
        if data.get("type") in {"local", "remote"}
        else 'its `type` has to be "local" or "remote"'
    )


def parse_definitions(
    mcp: Mapping[str, object], scopes: Mapping[str, str], own_entries: Mapping[str, OwnEntry]
) -> dict[str, ServerDefinition]:
    """Return the definitions of all entries by name.
    `scopes`: the project of each entry that a project brought.

    `own_entries`: see LoadedConfig. A server at an address of a project does not
    get a secret of the user.
    """
    definitions = {
        name: parse_definition(name, entry, scopes.get(name, "")) for name, entry in mcp.items()
    }
    for name, definition in definitions.items():
        own_entry = own_entries.get(f"mcp.{name}")
        if own_entry is not None and isinstance(definition.config, RemoteDefinition):
            problem = _refuse_address(name, definition.config.url, own_entry)
            definitions[name] = (
                replace(definition, config=None, problem=problem) if problem else definition
            )
    return definitions


def _refuse_address(name: str, url: str, own_entry: OwnEntry) -> str:
    # Imported late: few projects name another address.
    from codeloop.model.base_url import redact_url
    from codeloop.model.key_origins import refuse_foreign_address

    own_url = own_entry.values.get("url")
    setting = f'{{"mcp": {{"{name}": {{"url": "{redact_url(url)}"}}}}}}'
    own_urls = [own_url] if isinstance(own_url, str) else []
    return refuse_foreign_address(
        f"Your `{own_entry.secret}` in mcp.{name}", url, own_urls, setting
    )
