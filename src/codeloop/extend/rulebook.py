"""The permission rules of a project's agents under each profile,
and the place in the configuration of each rule.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from codeloop.config.load import LoadedConfig
from codeloop.config.sources import format_keys
from codeloop.extend.agents import build_agents, build_rules, list_restrictions
from codeloop.kit.jsonc import KeyPath
from codeloop.permission.defaults import (
    make_agent_rules,
    make_base_rules,
    make_fixed_agent_rules,
    make_fixed_rules,
)
from codeloop.permission.rules import RuleLayer, RuleLayers, restrict
from codeloop.schema.api.agents import Agent
from codeloop.schema.config import AgentConfig
from codeloop.schema.message import ModelRef
from codeloop.schema.permission import Profile, Ruleset, parse_profile

_RESTRICTIONS_ORIGIN = "the project, which is not trusted"


class Rulebook:
    """Builds and caches the rules of agents from a configuration, which `set_config` replaces.

    `scratch` and `readable`: see `make_base_rules`.
    """

    def __init__(
        self, loaded: LoadedConfig, scratch: Path, readable: tuple[Path, ...] = ()
    ) -> None:
        self._folders = (scratch, *readable)
        self._cache: dict[tuple[str, Profile], RuleLayers] = {}
        self.set_config(loaded)

    def set_config(self, loaded: LoadedConfig) -> None:
        """Replace the configuration, and forget the rules built from the old one."""
        self._loaded = loaded
        self.profile: Profile = parse_profile(loaded.config.profile) or "auto"
        # Rules are built once for each agent and profile, since every tool call asks for them.
        self._cache.clear()

    def build_agents(
        self, find_newest_model: Callable[[str], ModelRef | None] = lambda _: None
    ) -> dict[str, Agent]:
        """Return the agents by name, with their rules under the configured profile;
        see the function `build_agents`.
        """
        return build_agents(
            self._loaded.config, make_base_rules(self.profile, *self._folders), find_newest_model
        )

    def explain_missing(self, agent: str) -> str:
        """Return why there is no agent of a name, if its page can't be read; else ""."""
        from codeloop.extend.pages.page_layers import describe_unreadable

        reason = describe_unreadable(agent)
        return next((each for each in self._loaded.warnings if each.endswith(reason)), "")

    def get_layers(self, agent: str, profile: Profile) -> RuleLayers:
        """Return the rules of an agent in order: the profile's, then its own with the user's."""
        rule_layers = self._cache.get((agent, profile))
        if rule_layers is None:
            base = make_base_rules(profile, *self._folders)
            rules = build_rules(self._loaded.config, agent, base, make_agent_rules(agent))
            # Once here, since each decision asks where its rule is written.
            locate = partial(
                self._describe_rule_origin, agent, RuleLayer(f"profile {profile}", base), rules
            )
            agent_layer = RuleLayer(f"agent {agent}", rules, locate)
            rule_layers = self._cache[agent, profile] = (
                RuleLayer(f"profile {profile}", base),
                agent_layer,
            )
        return rule_layers

    def list_fixed_rules(self, agent: str, profile: Profile) -> tuple[RuleLayers, ...]:
        """Return the further lists that its calls must pass: the fixed rules of a
        profile and a built-in agent.

        An agent's fixed rules yield to its own rules in the configuration. The last list is that of
        all that may only restrict.
        """
        lists: list[RuleLayers] = []
        if fixed := make_fixed_rules(profile):
            lists.append((RuleLayer(f"profile {profile}", fixed),))
        if fixed := make_fixed_agent_rules(agent):
            own_rules = tuple(self._get_agent_config(agent).permission)
            keys = ("agent", agent, "permission")
            agent_layer = RuleLayer(
                f"agent {agent}", own_rules, lambda index: self._describe_origin((*keys, index))
            )
            lists.append((RuleLayer(f"agent {agent} (built-in)", fixed), agent_layer))
        config = self._loaded.config
        restrictions = RuleLayer(
            _RESTRICTIONS_ORIGIN,
            list_restrictions(config, agent),
            partial(self._describe_restriction_origin, agent),
        )
        return restrict(lists, restrictions)

    def _describe_restriction_origin(self, agent: str, index: int) -> str:
        """Return where a rule of `list_restrictions` is written."""
        general_count = len(self._loaded.config.restrictions)
        keys: KeyPath = (
            ("restrictions",) if index < general_count else ("agent", agent, "restrictions")
        )
        origin = self._loaded.provenance.get(
            format_keys((*keys, index if index < general_count else index - general_count))
        )
        return (
            _RESTRICTIONS_ORIGIN
            if origin is None or origin.layer.is_project
            else f"{origin.layer.name} ({origin})"
        )

    def _get_agent_config(self, agent: str) -> AgentConfig:
        return self._loaded.config.agent.get(agent, AgentConfig())

    def _describe_rule_origin(self, agent: str, base: RuleLayer, rules: Ruleset, index: int) -> str:
        """Return where a rule of `build_rules` is written.
        `index`: its position among all `rules` of the agent.
        """
        # The sections follow each other in the order in which `build_rules` joins them.
        sections = (
            (len(make_agent_rules(agent)), ()),
            (len(self._loaded.config.permission), ("permission",)),
            (len(self._get_agent_config(agent).permission), ("agent", agent, "permission")),
        )
        own_rules = rules[: sum(size for size, _ in sections)]
        # `only` repeats earlier rules behind its general denial: such a rule is
        # written where it came first.
        if index >= len(own_rules):
            rule = rules[index]
            if rule in own_rules:
                index = own_rules.index(rule)
            elif rule in base.rules:
                return base.name
        for size, keys in sections:
            if index < size:
                return (
                    self._describe_origin((*keys, index)) if keys else f"agent {agent} (built-in)"
                )
            index -= size
        return self._describe_origin(("agent", agent, "only"))

    def _describe_origin(self, keys: KeyPath) -> str:
        origin = self._loaded.provenance.get(format_keys(keys))
        return f"{origin.layer.name} ({origin})" if origin is not None else "the configuration"
