"""The agents of a project: the built-in ones with what the configuration changes, and the configured ones."""

from typing import Literal

from codeloop.config.tighten import configured_rules
from codeloop.permission.defaults import agent_rules
from codeloop.schema.agent import Agent
from codeloop.schema.config import AgentConfig, Config
from codeloop.schema.message import ModelRef
from codeloop.schema.rules import Ruleset

Mode = Literal["primary", "subagent", "all"]

DESCRIPTIONS: dict[str, str] = {
    "build": "Does the work: reads, edits and runs.",
    "general": "A helper for a question or a task of several steps that can be described in full.",
    "explore": "A helper that only searches and reads: finds where things are and how they work.",
}
MODES: dict[str, Mode] = {"build": "primary", "general": "subagent", "explore": "subagent"}


def agents_of(config: Config, base: Ruleset) -> dict[str, Agent]:
    """Give the agents by name, each with the rules that follow `base`: its own, then what is configured."""
    names = [*MODES, *(name for name in config.agent if name not in MODES)]
    found = {name: _agent(name, config, base) for name in names}
    return {name: agent for name, agent in found.items() if name not in config.agent or not config.agent[name].disable}


def _agent(name: str, config: Config, base: Ruleset) -> Agent:
    own = config.agent.get(name, AgentConfig())
    native = MODES.get(name)
    return Agent(
        name=name,
        mode=own.mode or native or "all",
        permission=list(configured_rules(config, name, base, agent_rules(name))),
        options=own.options,
        description=own.description or DESCRIPTIONS.get(name),
        native=True if native else None,
        hidden=own.hidden or None,
        model=parse_ref(own.model) if own.model else None,
        variant=own.variant,
        prompt=own.prompt,
        temperature=own.temperature,
        top_p=own.top_p,
        color=own.color,
        steps=own.steps,
    )


def parse_ref(ref: str) -> ModelRef:
    """Read `provider/model`; the model's part may hold further slashes."""
    provider_id, _, model_id = ref.partition("/")
    return ModelRef(provider_id=provider_id, model_id=model_id)
