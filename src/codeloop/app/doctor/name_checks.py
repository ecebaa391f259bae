"""Checks whether the names in a configuration stand for something: agents, models, skills, tools,
servers, providers, formatters, language servers, programs of hooks and files of homes.
Nothing is started.
"""

import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from codeloop.app.doctor.finding import Finding
from codeloop.app.models.open_models import make_providers
from codeloop.app.settings import ProjectSettings
from codeloop.app.toolbox import BUILTIN_TOOLS
from codeloop.extend.agents import build_agents
from codeloop.extend.homes import find_homes
from codeloop.extend.hooks.configured.matchers import matches_name
from codeloop.kit.programs import find_program
from codeloop.kit.text.suggest import find_similar, format_suggestion
from codeloop.kit.wildcard import ANY_TEXT, covers, matches, overlaps
from codeloop.lsp.servers.server_row import load_server_rows
from codeloop.model.errors import ModelUnavailable
from codeloop.model.providers import Providers
from codeloop.schema.config import Config, HookConfig
from codeloop.schema.permission import PERMISSION_NAMES
from codeloop.workspace.format.formatter_rows import FORMATTER_ROWS

_GROUP = "effect"
_MATCHED_VALUES = {
    "SessionStart": ("startup", "resume", "clear", "compact"),
    "SessionEnd": ("other",),
    "PreCompact": ("manual", "auto"),
    "Notification": ("permission_prompt", "elicitation_dialog"),
}
"""What the matchers of events without a call are compared with."""
_PAGE_FOLDERS = frozenset({"agent", "agents", "command", "commands"})
_SKILL_FOLDERS = frozenset({"skill", "skills"})
# Matches a first word that is a program and nothing that a shell replaces: `./check.sh`, `ruff`.
_PROGRAM_WORD = r"[\w./+-]+(?=\s|$)"
# Matches what `compgen -bk` of bash lists: builtins, those of POSIX among them, and keywords.
_SHELL_WORD = r"""(?x)
    \.|alias|bg|bind|break|builtin|caller|case|cd|command|compgen|complete|compopt|continue|
    coproc|declare|dirs|disown|do|done|echo|elif|else|enable|esac|eval|exec|exit|export|false|fc|
    fg|fi|for|function|getopts|hash|help|history|if|in|jobs|kill|let|local|logout|mapfile|popd|
    printf|pushd|pwd|read|readarray|readonly|return|select|set|shift|shopt|source|suspend|test|
    then|time|times|trap|true|type|typeset|ulimit|umask|unalias|unset|until|wait|while
"""


def examine_names(settings: ProjectSettings, commands: Collection[str] = ()) -> list[Finding]:
    """Return findings on the names that stand for nothing.

    `commands`: the slash commands of the program, which come before the user's.
    """
    config, providers = settings.config, make_providers(settings)
    return [
        *_examine_agents(settings),
        *_examine_models(config, providers),
        *_examine_providers(config, providers),
        *_examine_tools(settings),
        *_examine_exact_rules(settings, "skill", "skill", settings.skills.by_name),
        *_examine_helpers(settings),
        *_examine_commands(config, commands),
        *_examine_files(settings),
    ]


def is_for_all(matcher: str) -> bool:
    """Return whether the matcher of a hook matches whatever it is compared with: `*`, `.*`."""
    return matches_name(matcher, ("a name that nothing has",))


def examine_matcher(row: HookConfig, settings: ProjectSettings) -> Iterator[Finding]:
    """Yield findings on a hook whose matcher means nothing."""
    matcher = row.matcher.strip()
    values = _MATCHED_VALUES.get(row.event)
    if not is_for_all(matcher) and row.event in {"Stop", "SubagentStop", "UserPromptSubmit"}:
        text = f"{row.place}: {row.event} takes no matcher: it runs each time."
        yield warn("hooks", text, f"Remove {matcher!r}.")
    elif values and not matches_name(matcher, values):
        text = f"{row.place}: {row.event} with the matcher {matcher!r} matches nothing."
        yield warn("hooks", text, f"It is compared with {', '.join(values)}.")
    server = re.fullmatch(r"mcp__([\w-]+?)__.*", matcher)
    known = settings.config.mcp
    # A hook of the user's own may be for a server that another project has.
    if (
        server is not None
        and server[1] not in known
        and (row.is_project or find_similar(server[1], known))
    ):
        text = f"{row.place}: the matcher {matcher!r} names no MCP server."
        yield warn("hooks", text, _list_names(known))


def examine_program(row: HookConfig, settings: ProjectSettings) -> Iterator[Finding]:
    """Yield a finding on a hook whose program is not there."""
    if problem := _find_program_problem(row, settings):
        yield warn("hooks", f"{row.place}: {problem}: it can't be started.", "Correct its command.")


def warn(name: str, text: str, fix: str) -> Finding:
    """Return a warning of the group of effects."""
    return Finding(_GROUP, name, "warning", text, fix)


def _find_program_problem(row: HookConfig, settings: ProjectSettings) -> str:
    """Return why the program of a hook can't be started; "": nothing is known against it."""
    word = re.match(_PROGRAM_WORD, row.command.strip())
    if row.type != "command" or word is None or re.fullmatch(_SHELL_WORD, word[0]):
        return ""
    if "/" not in word[0]:
        found = find_program(word[0], settings.environment.get("PATH"), in_project=True)
        return "" if found is not None else f"{word[0]} is not on the PATH"
    path = settings.project_root.directory / word[0]
    if not path.is_file():
        return f"{path} does not exist"
    return "" if os.access(path, os.X_OK) else f"{path} is not executable"


def _list_names(names: Collection[str]) -> str:
    return f"There are: {', '.join(sorted(names))}." if names else "There is none."


def _explain_unknown(kind: str, where: str, name: str, known: Collection[str]) -> Finding:
    """Return the finding that a name stands for nothing of its kind."""
    similar = format_suggestion(find_similar(name, sorted(known)))
    return warn(
        "names", f"{where} names no {kind}: {name}.{similar}", f"Correct or remove {where}."
    )


def _examine_agents(settings: ProjectSettings) -> Iterator[Finding]:
    config = settings.config
    agents = build_agents(config, ())
    default = config.default_agent
    if default and (default not in agents or agents[default].mode == "subagent"):
        yield _explain_unknown("agent that you can talk to", "default_agent", default, agents)
    for name, command in config.command.items():
        if command.agent and command.agent not in agents:
            yield _explain_unknown("agent", f"command.{name}.agent", command.agent, agents)
    yield from _examine_exact_rules(settings, "task", "agent", {*agents, *config.agent})


def _examine_models(config: Config, providers: Providers) -> Iterator[Finding]:
    agents, commands = config.agent.items(), config.command.items()
    named = {
        **{f"agent.{name}.model": each.model for name, each in agents if not each.disable},
        **{f"command.{name}.model": each.model for name, each in commands},
        "subagents.model": config.subagents.model,
    }
    for where, model in named.items():
        # A short name (`sonnet`) stands for the newest one, or else for the session's model.
        # A project shortens the list of providers, and the user's agents are for all projects.
        if model and "/" in model and providers.is_enabled(model.partition("/")[0]):
            try:
                providers.find_model(model)
            except ModelUnavailable as error:
                yield warn("names", f"{where}: {error}", f"Correct or remove {where}.")


def _examine_providers(config: Config, providers: Providers) -> Iterator[Finding]:
    all_providers = {each.id: each for each in providers.list_all()}
    for where in ("enabled_providers", "disabled_providers"):
        for name in getattr(config, where) or ():
            if name not in all_providers:
                yield _explain_unknown("provider", where, name, all_providers)
    for name, own in config.provider.items():
        where, provider = f"provider.{name}", all_providers.get(name)
        if not providers.is_enabled(name):
            text = f"{where} is switched off by enabled_providers or disabled_providers."
            yield warn("names", text, f"Remove it there, or remove {where}.")
        # A server with an address is asked for its models.
        elif provider is None or not (
            own.options.get("baseURL") or providers.list_all_models(provider)
        ):
            yield warn("names", f"{where} has no model.", f"Name one in {where}.models.")
        elif providers.is_unsupported(provider):
            text = f"{where}: codeloop speaks no protocol of {provider.npm}."
            yield warn("names", text, "docs/models.md lists those that it speaks.")


def _examine_tools(settings: ProjectSettings) -> Iterator[Finding]:
    """Yield findings on rules for tools that are not there, and on servers whose tools are denied
    as a whole.
    """
    config = settings.config
    known = PERMISSION_NAMES | {*BUILTIN_TOOLS}
    servers = [re.sub(r"[^\w-]", "_", name) for name in config.mcp]
    told = " ".join(settings.loaded.warnings)
    for index, rule in enumerate(config.permission):
        name = rule.permission
        is_known = any(matches(each, name) for each in known) or any(
            overlaps(f"{server}_{ANY_TEXT}", name) for server in servers
        )
        # Which tools extensions bring is known once they run; a name such as `notes_list` may be of
        # a server that another project has.
        if (
            not is_known
            and "_" not in name
            and not settings.extensions
            and f".{name} means nothing" not in told
            and _is_mistake(settings, index, name.strip("*"), {*known, *servers})
        ):
            yield warn(
                "rules",
                f"{name} {rule.pattern}: {rule.action} is about no tool and no MCP server that is here.",
                "Is it misspelt?",
            )
    denied = [
        each.permission
        for each in config.permission
        if each.action == "deny" and each.pattern == "*"
    ]
    for server in servers:
        if any(covers(f"{server}_{ANY_TEXT}", each) and each != "*" for each in denied):
            text = f"mcp.{server}: a rule denies all its tools, so no model is offered one."
            yield warn("servers", text, "Remove the rule, or the server.")


def _examine_exact_rules(
    settings: ProjectSettings, permission: str, kind: str, known: Collection[str]
) -> Iterator[Finding]:
    """Yield findings on the rules for one agent or skill that is not there."""
    for index, rule in enumerate(settings.config.permission):
        # A pattern such as `review-*` is meant for those that may come.
        is_one = rule.permission == permission and not {"*", "?"} & {*rule.pattern}
        if (
            is_one
            and rule.pattern not in known
            and _is_mistake(settings, index, rule.pattern, known)
        ):
            yield _explain_unknown(kind, f"permission.{permission}", rule.pattern, known)


def _is_mistake(settings: ProjectSettings, index: int, name: str, known: Collection[str]) -> bool:
    """Return whether the unknown name in a rule is a mistake. Rules of the user's own are for all
    projects: what one of them names may be there in another.
    """
    origin = settings.loaded.provenance.get(f"permission[{index}]")
    is_project = origin is not None and origin.layer.is_project
    return is_project or bool(find_similar(name, sorted(known)))


def _examine_helpers(settings: ProjectSettings) -> Iterator[Finding]:
    """Yield findings on the formatters and language servers that never run."""
    config, search_path = settings.config, settings.environment.get("PATH")
    formatters = config.formatter if isinstance(config.formatter, dict) else {}
    known = {row.name for row in FORMATTER_ROWS}
    for name, own in formatters.items():
        where = f"formatter.{name}"
        if name not in known and not own.command:
            yield _explain_unknown("formatter", where, name, known)
        elif name not in known and not own.extensions:
            yield warn("names", f"{where} is for no file.", f"Name some in {where}.extensions.")
        elif own.command and not own.disabled:
            program = own.command[0]
            if find_program(program, search_path, in_project=True) is None and "/" not in program:
                text = f"{where}: {program} is not on the PATH."
                yield warn("names", text, f"Install it, or correct {where}.command.")
    servers = config.lsp if isinstance(config.lsp, dict) else {}
    known = {row.name for row in load_server_rows()}
    for name, server in servers.items():
        if name not in known and not server.command:
            yield _explain_unknown("language server", f"lsp.{name}", name, known)


def _examine_commands(config: Config, commands: Collection[str]) -> Iterator[Finding]:
    for name in sorted({*config.command} & {*commands}):
        text = f"The command {name} can't be called: /{name} is one of the program's."
        yield warn("commands", text, "Give it another name.")


def _examine_files(settings: ProjectSettings) -> Iterator[Finding]:
    """Yield findings on files in the folders of a home that are not read, by their name or mode."""
    for home in find_homes(settings.project_root, settings.paths):
        for folder in sorted(home.names & (_PAGE_FOLDERS | _SKILL_FOLDERS | {"tool", "tools"})):
            for entry in _list_entries(home.path / folder):
                if problem := _find_file_problem(folder, entry):
                    yield warn("files", f"{entry} is not read: {problem[0]}", problem[1])


def _list_entries(folder: Path) -> Sequence[Path]:
    try:
        return sorted(each for each in folder.iterdir() if not each.name.startswith((".", "_")))
    except OSError:
        return ()


def _find_file_problem(folder: str, entry: Path) -> tuple[str, str] | None:
    """Return why an entry of a home's folder is not read, and what to do; None: it may be."""
    if folder in _PAGE_FOLDERS:
        if entry.is_file() and entry.suffix != ".md":
            return "agents and commands are Markdown files.", f"Rename it to {entry.stem}.md."
    elif folder in _SKILL_FOLDERS:
        if not entry.exists():
            return "it is a link to nothing.", "Correct or remove the link."
        if entry.is_file():
            return "a skill is a folder.", f"Move it to {entry.with_suffix('') / 'SKILL.md'}."
        if not any(entry.rglob("SKILL.md")):
            return "there is no SKILL.md in it.", "Name its page SKILL.md, in capitals."
    # Other files may belong to tools, which may read them.
    elif entry.suffix in {"", ".sh"} and entry.is_file() and not os.access(entry, os.X_OK):
        return "it is not executable.", f"chmod +x {entry}"
    return None
