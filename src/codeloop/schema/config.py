"""The configuration as the program uses it: one frozen struct, each section a small one of its own
(that of providers is in `provider_config.py`).

The names are those of OpenCode's configuration files, so that people can switch without changing
one. Those files have both spellings: a struct with `rename=None` has keys with underscores, the
others have keys in camel case.
"""

from typing import Annotated, Literal

import msgspec

from codeloop.schema.permission import PermissionRule, ProfileName
from codeloop.schema.provider_config import ProviderConfig
from codeloop.schema.wire import JSON, Natural, Wire

Dollars = Annotated[float, msgspec.Meta(ge=0)]


class AgentConfig(Wire, rename=None):
    """`agent.<name>`; `permission` is normalised to rules in their order.
    `restrictions`: as in Config.

    `only`: the permissions of the tools that it has; None: all. `fallback`: as in Config;
    None: that one counts.
    """

    model: str | None = None
    variant: str | None = None
    prompt: str | None = None
    description: str | None = None
    mode: Literal["primary", "subagent", "all"] | None = None
    temperature: float | None = None
    top_p: float | None = None
    steps: int | None = None
    fallback: list[str] | None = None
    color: str | None = None
    hidden: bool = False
    disable: bool = False
    only: list[str] | None = None
    permission: list[PermissionRule] = []
    restrictions: list[PermissionRule] = []
    options: JSON = {}


class CommandConfig(Wire):
    """`command.<name>`."""

    template: str
    description: str | None = None
    agent: str | None = None
    model: str | None = None
    variant: str | None = None
    subtask: bool | None = None


class ServerConfig(Wire):
    """`server`."""

    port: int | None = None
    hostname: str | None = None
    cors: list[str] = []


class CompactionConfig(Wire):
    """`compaction`. `reserved` in tokens."""

    auto: bool = True
    prune: bool = True
    reserved: int | None = None


class ProjectSpendingConfig(Wire):
    """`budget.project`: dollars that a project may spend in a day and in a month."""

    day: Dollars | None = None
    month: Dollars | None = None


class SpendingConfig(Wire):
    """`budget`: dollars that all projects may spend in a day and in a month of the calendar,
    and each of them.
    """

    day: Dollars | None = None
    month: Dollars | None = None
    project: ProjectSpendingConfig = ProjectSpendingConfig()


class SubagentsConfig(Wire):
    """`subagents`. `model`: of those whose agent names none.
    `ask`: how many one turn starts without a question.

    `most`: how many subagents a session and those below it may ever start. `cost`: how many dollars
    they and the session may ever use together.
    """

    model: str | None = None
    ask: Natural = 4
    most: Natural | None = None
    cost: Dollars | None = None


# By the rule for names, the first would be `baseUrl`.
class SearchConfig(
    Wire, rename={"base_url": "baseURL", "api_key": "apiKey", "code_url": "codeURL"}
):
    """`search`: the service behind websearch and codesearch; `none`: no search of the web.

    `provider`: None: the one whose key or address is in the environment. `code`: the service of
    codesearch, instead of that of `provider`; `code_url`: another address of it.
    """

    provider: Literal["exa", "tavily", "brave", "searxng", "none"] | None = None
    base_url: str | None = None
    api_key: str | None = None
    code: Literal["grep_app"] | None = None
    code_url: str | None = None


class ProgramSandboxConfig(Wire):
    """`sandbox` of a server, a formatter or extensions: what the program may do in
    its sandbox beyond the usual.

    Paths as in SandboxConfig. `network`: left out, what programs of this kind have; `hosts`:
    reached in the network mode `hosts`, beside the usual registries.
    """

    writable: list[str] = []
    readable: list[str] = []
    network: Literal["off", "on", "hosts"] | None = None
    hosts: list[str] = []


class SandboxConfig(Wire):
    """`sandbox`: a mode, or an object. `hosts`: also reached beside the usual registries
    in network mode `hosts`.

    `writable`, `readable` and `hidden`: paths, from the project's root unless absolute or with
    `~/`. `variables`: names of environment variables, with `*` for any text, that programs get
    although they look like secrets. `ports`: whether the user's browser reaches the ports that
    background commands listen on. `extensions`:
    where the user's own extensions and hooks run: True: in this sandbox; False: in none; left out,
    or an object with what they may do beyond the usual: in one of their own.
    Those of a project always run in this one.
    """

    mode: Literal["auto", "off", "required"] = "auto"
    network: Literal["off", "on", "hosts"] = "hosts"
    hosts: list[str] = []
    writable: list[str] = []
    readable: list[str] = []
    hidden: list[str] = []
    variables: list[str] = []
    ports: bool = True
    extensions: bool | ProgramSandboxConfig | None = None


class LspServerConfig(Wire):
    """`lsp.<name>`: changes a language server that we know,
    or adds one by `command` and `extensions` (`.py`).
    """

    disabled: bool = False
    command: list[str] | None = None
    extensions: list[str] | None = None
    env: dict[str, str] = {}
    initialization: JSON | None = None
    settings: JSON = {}
    warnings: bool | None = None
    sandbox: bool | ProgramSandboxConfig = True


class ToolOutputConfig(Wire, rename=None):
    """`tool_output`: where a tool's output is cut."""

    max_lines: int | None = None
    max_bytes: int | None = None


class CommandsConfig(Wire, rename=None):
    """`commands`: in ms, the timeout of a command that names none,
    and the longest that one may name.
    """

    timeout: Annotated[int, msgspec.Meta(gt=0)] | None = None
    max_timeout: Annotated[int, msgspec.Meta(gt=0)] | None = None


class FormatterConfig(Wire):
    """`formatter.<name>`: changes a formatter that we know,
    or adds one by `command` and `extensions` (`.py`).

    In `command`, `$FILE` is the path of the file, which the program changes in place.
    """

    disabled: bool = False
    command: list[str] | None = None
    environment: dict[str, str] = {}
    extensions: list[str] | None = None
    sandbox: bool | ProgramSandboxConfig = True


class HookConfig(Wire):
    """One row of `hooks`, from whichever file. `timeout` in seconds;
    `policy`: if the hook fails, the call is refused.

    `type`: what is asked: a `command` with its `args`; the `url`, with `headers` that may contain
    the variables `allowed_env_vars`; a model (`prompt`) or a subagent (`agent`), by its `prompt`.
    `condition`: the calls that it is about, such as `Bash(git *)`.
    `sandbox`: of a command: False: it has none; or what it may do beyond the usual;
    left out: as `sandbox.extensions`.
    `may_allow`: its `allow` counts, because the project, whose files the model edits,
    is hidden from it.
    `place`: the file and line of the row. `is_project`: the row is the project's, not the user's.
    `plugin_root`: the folder of the plugin that has the row.
    """

    event: str
    type: Literal["command", "http", "prompt", "agent"] = "command"
    command: str = ""
    args: list[str] | None = None
    url: str = ""
    headers: dict[str, str] = {}
    allowed_env_vars: list[str] = []
    prompt: str = ""
    model: str | None = None
    continue_on_block: bool = False
    # `if` is a keyword of Python.
    condition: str = msgspec.field(default="", name="if")
    matcher: str = ""
    timeout: float | None = None
    policy: bool = False
    sandbox: bool | ProgramSandboxConfig | None = None
    may_allow: bool = False
    place: str = ""
    is_project: bool = False
    plugin_root: str = ""


class WatcherConfig(Wire):
    """`watcher`. `ignore`: patterns, as in `.gitignore`, of further files that are not watched."""

    ignore: list[str] = []


class WorktreeConfig(Wire):
    """`worktree`: what a new work tree of the repository gets.

    `setup`: shell lines that are run there. `copy`: by pattern (`.env`, `config/*.json`), whether
    ignored files are copied; the last pattern that matches counts. `sparse`: the only folders that
    are checked out; empty: all.
    """

    setup: list[str] = []
    copy: dict[str, Literal["allow", "ask", "deny"]] = {}
    sparse: list[str] = []


class Config(Wire, rename=None):
    """Everything that can be configured. `permission` holds the rules of all trusted
    layers in their order.

    `fallback`: models (`provider/model`) that take over, one after the other,
    where a model's service fails.
    `mcp_share`: how many percent of a model's window the tools of MCP servers may take.
    `lsp_warnings`: the result of an edit has new warnings of language servers, too,
    not only errors.
    `hooks` holds the rows of all trusted layers in their order; `hook_timeout` (ms) is for an
    extension's answers. `restrictions` holds the rules of layers that may only restrict, such as an
    untrusted project's: they are a list of their own, which every call has to pass besides the
    others (`permission.rules.restrict`).
    """

    model: str | None = None
    small_model: str | None = None
    fallback: list[str] = []
    default_agent: str | None = None
    username: str | None = None
    shell: str | None = None
    share: Literal["manual", "auto", "disabled"] | None = None
    log_level: str | None = None
    snapshot: bool = True
    autoupdate: bool | str = False
    instructions: list[str] = []
    provider: dict[str, ProviderConfig] = {}
    enabled_providers: list[str] | None = None
    disabled_providers: list[str] = []
    agent: dict[str, AgentConfig] = {}
    command: dict[str, CommandConfig] = {}
    permission: list[PermissionRule] = []
    restrictions: list[PermissionRule] = []
    profile: ProfileName | None = None
    mcp: dict[str, JSON] = {}
    mcp_share: Annotated[int, msgspec.Meta(ge=0, le=100)] | None = None
    plugin: list[JSON | str | list[JSON | str]] = []
    formatter: bool | dict[str, FormatterConfig] | None = None
    lsp: bool | dict[str, LspServerConfig] | None = None
    lsp_warnings: bool = False
    skills: JSON = {}
    watcher: WatcherConfig = WatcherConfig()
    search: SearchConfig | None = None
    server: ServerConfig = ServerConfig()
    compaction: CompactionConfig = CompactionConfig()
    budget: SpendingConfig = SpendingConfig()
    subagents: SubagentsConfig = SubagentsConfig()
    tool_output: ToolOutputConfig = ToolOutputConfig()
    commands: CommandsConfig = CommandsConfig()
    sandbox: SandboxConfig = SandboxConfig()
    worktree: WorktreeConfig = WorktreeConfig()
    experimental: JSON = {}
    hooks: list[HookConfig] = []
    hook_timeout: Annotated[int, msgspec.Meta(gt=0)] | None = None
