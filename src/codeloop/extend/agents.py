"""Builds the agents of a project from the built-in ones and the configuration."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from codeloop.kit.text.terminal_text import one_line
from codeloop.kit.wildcard import matches
from codeloop.permission.defaults import make_agent_rules
from codeloop.permission.rule_patterns import find_last_match
from codeloop.schema.api.agents import Agent
from codeloop.schema.config import AgentConfig, Config
from codeloop.schema.limits import SUBAGENT_LISTING
from codeloop.schema.message import ModelRef, parse_model_ref
from codeloop.schema.permission import PermissionRule, Ruleset
from codeloop.schema.wire import replace
from codeloop.tool.tool import DescriptionBuilder

Mode = Literal["primary", "subagent", "all"]
# Characters of a subagent's description in the list: it is part of a tool's description,
# so every request pays for it.
MAX_SUBAGENT_CHARS = 300


class BuiltInAgent(Struct, frozen=True):
    """A built-in agent; its rules are in `permission.defaults`,
    its prompt in `agent/request/prompts`.
    """

    mode: Mode
    description: str
    hidden: bool = False


BUILT_IN_AGENTS: dict[str, BuiltInAgent] = {
    "build": BuiltInAgent("primary", "Does the work: reads, edits and runs."),
    "plan": BuiltInAgent(
        "primary",
        "Reads and thinks, changes nothing but its plan: agrees with you on what to do first.",
    ),
    "general": BuiltInAgent("subagent", "Does a task of several steps, edits too."),
    "explore": BuiltInAgent(
        "subagent", "Only reads and searches: where things are, how they work."
    ),
    "compaction": BuiltInAgent(
        "primary", "Summarises a conversation that grew too long.", hidden=True
    ),
    "summary": BuiltInAgent("primary", "Says what a turn did.", hidden=True),
    "sampling": BuiltInAgent(
        "subagent", "Answers an MCP server that asks for a model's words.", hidden=True
    ),
    "title": BuiltInAgent("primary", "Names a session.", hidden=True),
}


def build_agents(
    config: Config,
    base: Ruleset,
    find_newest_model: Callable[[str], ModelRef | None] = lambda _: None,
) -> dict[str, Agent]:
    """Return the agents by name, each with its permission rules,
    which follow the rules `base` of the profile.

    `find_newest_model` resolves a short name such as `sonnet`;
    if it returns None, the agent uses the session's model.
    """
    names = [
        *BUILT_IN_AGENTS,
        *(
            name
            for name, own in config.agent.items()
            if name not in BUILT_IN_AGENTS and not _only_restricts(own)
        ),
    ]
    agents = {name: _build_agent(name, config, base) for name in names}
    for name, agent in agents.items():
        # A page may name a model without its provider, as Claude Code does (`sonnet`): the short
        # name is in `provider_id` then.
        if agent.model is not None and not agent.model.model_id:
            agents[name] = replace(agent, model=find_newest_model(agent.model.provider_id))
    return {
        name: agent
        for name, agent in agents.items()
        if name not in config.agent or not config.agent[name].disable
    }


def build_rules(config: Config, agent: str, base: Ruleset, built_in: Ruleset = ()) -> Ruleset:
    """Return the rules of an agent that follow `base`: built-in ones, general ones of the
    configuration, then its own.

    Those of `only` come last. The restrictions of what may only restrict are a list of
    their own: `list_restrictions`.
    """
    own = config.agent.get(agent, AgentConfig())
    rules = (*built_in, *config.permission, *own.permission)
    return rules if own.only is None else (*rules, *_deny_all_but((*base, *rules), own.only))


def list_restrictions(config: Config, agent: str) -> Ruleset:
    """Return the rules for an agent of all that may only restrict,
    such as a project that is not trusted.
    """
    return (*config.restrictions, *config.agent.get(agent, AgentConfig()).restrictions)


TOOL_INDEPENDENT_PERMISSIONS = [
    *(
        "external_directory",
        "webfetch_private",
        "sandbox",
        "mcp_changed",
        "mcp_sampling",
        "mcp_write",
        "doom_loop",
        "subagents",
    )
]
"""An agent with a list of tools keeps these permissions: calls of any tool may need
them besides the tool's own.
"""


def _deny_all_but(rules: Sequence[PermissionRule], only: Iterable[str]) -> Iterator[PermissionRule]:
    """Yield rules to follow `rules`: all permissions are denied, except those in `only`,
    whose verdicts stay.

    A name in `only` may be a wildcard.
    """
    # Rules that come before the general denial are repeated behind it, as the last match counts.
    names = dict.fromkeys((*only, *TOOL_INDEPENDENT_PERMISSIONS))
    yield PermissionRule(permission="*", pattern="*", action="deny")
    for rule in rules:
        for name in names:
            if matches(name, rule.permission):
                yield rule if name == rule.permission else replace(rule, permission=name)
            elif matches(rule.permission, name):
                yield rule


def _only_restricts(own: AgentConfig) -> bool:
    """Return whether an entry only restricts an agent: an untrusted project may name
    one that the user lacks.
    """
    restricting = AgentConfig(restrictions=own.restrictions, steps=own.steps, disable=own.disable)
    return own == restricting and own != AgentConfig(steps=own.steps)


def _build_agent(name: str, config: Config, base: Ruleset) -> Agent:
    own = config.agent.get(name, AgentConfig())
    built_in = BUILT_IN_AGENTS.get(name)
    return Agent(
        name=name,
        mode=own.mode or (built_in.mode if built_in else "all"),
        permission=list(build_rules(config, name, base, make_agent_rules(name))),
        options=own.options,
        description=own.description or (built_in.description if built_in else None),
        native=True if built_in else None,
        hidden=own.hidden or (built_in is not None and built_in.hidden) or None,
        model=parse_model_ref(own.model) if own.model else None,
        variant=own.variant,
        prompt=own.prompt,
        temperature=own.temperature,
        top_p=own.top_p,
        color=own.color,
        steps=own.steps,
        fallback=(config.fallback if own.fallback is None else own.fallback) or None,
    )


def make_subagent_description(description: str, agents: dict[str, Agent]) -> DescriptionBuilder:
    """Return a builder of the description of the tool `task`: it lists the subagents
    that the rules don't deny.
    """
    subagents = [
        agents[name]
        for name in sorted(agents)
        if agents[name].mode != "primary" and not agents[name].hidden
    ]

    def describe(*rulesets: Ruleset) -> str | None:
        rules = [rule for ruleset in rulesets for rule in ruleset]
        lines: list[str] = []
        bytes_left = SUBAGENT_LISTING.value
        for agent in subagents:
            rule = find_last_match("task", agent.name, rules)
            if rule is not None and rule.action == "deny":
                continue
            line = f"- {agent.name}: {one_line(agent.description or 'an agent of this project', MAX_SUBAGENT_CHARS)}"
            # Agents beyond the limit are listed by name only, so that each can still be called.
            bytes_left -= len(line.encode()) + 1
            lines.append(line if bytes_left > 0 else f"- {agent.name}")
        return "\n".join((description, "Subagents:", *lines)) if lines else None

    return describe
