"""Composes the permission rules that a tool call must pass: those of its session, agent,
profile and parents.

A *layer* is the rules of one origin. A *list* is layers of which the last matching rule decides. A
call must pass each of its lists; the strictest verdict counts. The first list is that of its own
agent and session, the others are:

- the guards: built-in rules that no blanket permission lifts;
- the fixed rules of the profile and of a built-in agent;
- for each ceiling (a parent, or the session that a session was copied from) the
  same lists of that session.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from codeloop.agent.engine import Engine
from codeloop.permission.defaults import make_guard_rules
from codeloop.permission.gate import CallRules
from codeloop.permission.rules import RuleLayer, RuleLayers, judge_patterns, list_denied_patterns
from codeloop.schema.api.agents import Agent
from codeloop.schema.errors import SessionNotFound
from codeloop.schema.message import Session
from codeloop.schema.permission import (
    PROFILE_KEY,
    Action,
    Need,
    PermissionRule,
    Profile,
    ProfileName,
    Ruleset,
    parse_profile,
)
from codeloop.schema.wire import JSON, Wire, replace
from codeloop.workspace.workspace import Workspace

CEILINGS_KEY = "within"
"""The key of the ceilings in a session's metadata."""


class Ceiling(Wire):
    """An agent with the rules of a session: a call below the ceiling is never
    allowed more than they allow.

    `agent` None: no agent was chosen. `profile` None: the profile of the session
    that the ceiling is for. `is_from_client`: a client has set it, and may change it.
    """

    agent: str | None = None
    permission: tuple[PermissionRule, ...] = ()
    profile: ProfileName | None = None
    is_from_client: bool = False


DENY_ALL = Ceiling(permission=(PermissionRule(permission="*", pattern="*", action="deny"),))


def read_ceilings(session: Session) -> tuple[Ceiling, ...]:
    """Return a session's stored ceilings: of the agent that called it,
    and of the session that it was copied from.
    """
    try:
        return msgspec.convert((session.metadata or {}).get(CEILINGS_KEY, []), tuple[Ceiling, ...])
    except msgspec.ValidationError:
        # Unreadable ceilings must not widen what the session may do.
        return (DENY_ALL,)


def keep_ceilings(ceilings: Iterable[Ceiling]) -> tuple[Ceiling, ...]:
    """Return ceilings as a copy of their session has them: no client changes them."""
    return tuple(replace(each, is_from_client=False) for each in ceilings)


def set_ceilings(metadata: JSON | None, ceilings: tuple[Ceiling, ...]) -> JSON | None:
    """Return a session's metadata with these ceilings."""
    other_metadata = {
        name: value for name, value in (metadata or {}).items() if name != CEILINGS_KEY
    }
    return (
        {**other_metadata, CEILINGS_KEY: msgspec.to_builtins([*ceilings])}
        if ceilings
        else other_metadata or None
    )


def collect_ceilings(
    lineage: Sequence[Session], find_profile: Callable[[Sequence[Session]], Profile]
) -> Iterator[Ceiling]:
    """Yield every ceiling of a session: its own, and its parents with theirs.

    `lineage`: the session and its parents, the nearest first. `find_profile`: returns the profile
    of the first session of a lineage.
    """
    for number, session in enumerate(lineage):
        if number:
            rules = tuple(session.permission or ())
            yield Ceiling(
                agent=session.agent, permission=rules, profile=find_profile(lineage[number:])
            )
        yield from read_ceilings(session)


def make_call_rules(engine: Engine, session_id: str, agent: Agent) -> CallRules:
    """Make the rules that decide a call of a session.

    A child is never allowed more than its parents are. The agent's rules are the current ones, even
    if they changed during the step. Raises SessionNotFound.
    """
    lineage = tuple(engine.store.walk_ancestors(session_id))
    if not lineage:
        raise SessionNotFound(session_id)
    profile = _find_lineage_profile(engine, lineage)
    # The directories of the turn belong to nobody else: neither later turns nor copies
    # of the session have them.
    rules = (
        *(lineage[0].permission or ()),
        *_make_directory_rules(engine.turn_settings.directories),
    )
    session_layer = RuleLayer(f"session {session_id}", rules)
    lists = _make_lists(engine, session_layer, agent, profile)
    ceilings = _collect_lineage_ceilings(engine, lineage)
    for ceiling in ceilings:
        lists += _make_ceiling_lists(engine, ceiling, profile)
    lists_with_rules = tuple(layers for layers in lists if any(layer.rules for layer in layers))
    # The profile `yolo` answers every question, but a child of a stricter session still asks.
    approves_questions = profile == "yolo" and all(
        each.profile in {None, "yolo"} for each in ceilings
    )
    find_barrier = partial(_find_tree_barrier, engine.workspace)
    return CallRules(
        lists_with_rules, approves_questions=approves_questions, find_barrier=find_barrier
    )


def _make_directory_rules(directories: Sequence[str]) -> Iterator[PermissionRule]:
    """Yield the rules that let tools use directories without asking."""
    for directory in directories:
        for pattern in (directory, f"{directory.rstrip('/')}/*"):
            yield PermissionRule(permission="external_directory", pattern=pattern, action="allow")


def list_rulesets(engine: Engine, session_id: str, agent: Agent) -> tuple[tuple[Ruleset, ...], ...]:
    """Return the lists of `make_call_rules`, each as its rulesets: the call's own list first."""
    return _list_rulesets(make_call_rules(engine, session_id, agent).lists)


def make_lists_of_new_session(engine: Engine, agent: Agent) -> list[RuleLayers]:
    """Return the lists that decide a call in a new session,
    which has no rules or ceilings of its own.
    """
    return _make_lists(engine, RuleLayer("session", ()), agent, engine.rulebook.profile)


class ProjectRules:
    """The rules of a new session with an agent: they bind the programs that serve all
    sessions (a `DenyRules`).
    """

    def __init__(self, engine: Engine, agent: str) -> None:
        self._engine = engine
        self._agent = agent

    def list_denials(self, permission: str, /) -> tuple[str, ...]:
        """Return the patterns of the rules that deny particular needs of a permission."""
        return list_denied_patterns(permission, self._list_rules())

    def judge(self, permission: str, patterns: Sequence[str], /) -> dict[str, Action]:
        """Return the action of the rules on each pattern, judged alone;
        allowed patterns are left out.
        """
        return judge_patterns(permission, patterns, self._list_rules())

    def _list_rules(self) -> list[RuleLayers]:
        agents = self._engine.agents
        # A default agent that does not exist is reported where a session begins.
        return make_lists_of_new_session(
            self._engine, agents.get(self._agent) or next(iter(agents.values()))
        )


def list_rulesets_of_new_session(engine: Engine, agent: Agent) -> tuple[tuple[Ruleset, ...], ...]:
    """Return the lists of `make_lists_of_new_session`, each as its rulesets."""
    return _list_rulesets(make_lists_of_new_session(engine, agent))


def _list_rulesets(lists: Iterable[RuleLayers]) -> tuple[tuple[Ruleset, ...], ...]:
    return tuple(tuple(layer.rules for layer in layers) for layers in lists)


def list_ceilings(engine: Engine, session_id: str) -> tuple[Ceiling, ...]:
    """Return the ceilings of a session: those stored with it, and its parents with theirs."""
    return _collect_lineage_ceilings(engine, tuple(engine.store.walk_ancestors(session_id)))


def _collect_lineage_ceilings(engine: Engine, lineage: tuple[Session, ...]) -> tuple[Ceiling, ...]:
    return tuple(collect_ceilings(lineage, partial(_find_lineage_profile, engine)))


def find_profile(engine: Engine, session_id: str) -> Profile:
    """Return the profile of a session: its own, a parent's, or the configured one."""
    return _find_lineage_profile(engine, engine.store.walk_ancestors(session_id))


def _find_lineage_profile(engine: Engine, lineage: Iterable[Session]) -> Profile:
    """Return the profile of the first session with one in `lineage`: a session, then its parents,
    nearest first.
    """
    for session in lineage:
        profile = parse_profile((session.metadata or {}).get(PROFILE_KEY))
        if profile is not None:
            return profile
    return engine.rulebook.profile


def _make_ceiling_lists(engine: Engine, ceiling: Ceiling, profile: Profile) -> list[RuleLayers]:
    """Return the lists of a ceiling. An agent that no longer exists allows nothing."""
    profile = parse_profile(ceiling.profile) or profile
    ceiling_layer = RuleLayer(f"above, agent {ceiling.agent or 'none'}", ceiling.permission)
    if ceiling.agent is None:
        return [(*engine.rulebook.get_layers("", profile), ceiling_layer)]
    agent = engine.agents.get(ceiling.agent)
    if agent is None:
        return [(RuleLayer(f"agent {ceiling.agent}, which does not exist", DENY_ALL.permission),)]
    return _make_lists(engine, ceiling_layer, agent, profile)


def _make_lists(
    engine: Engine, session_layer: RuleLayer, agent: Agent, profile: Profile
) -> list[RuleLayers]:
    """Return the list of an agent in a session, the guards, and the fixed rules."""
    profile_layer, *agent_layers = engine.rulebook.get_layers(agent.name, profile)
    # The configuration names no such agent (any more): the rules that it came with apply.
    if agent.name not in engine.agents:
        agent_layers = [RuleLayer(f"agent {agent.name}", tuple(agent.permission))]
    own_layers = (*agent_layers, session_layer)
    # A profile's rules can't lift a guard; those of the user, the agent and the session can.
    guards = RuleLayer("built-in", make_guard_rules(*(layer.rules for layer in own_layers)))
    return [
        (profile_layer, *own_layers),
        (guards,),
        *engine.rulebook.list_fixed_rules(agent.name, profile),
    ]


def _find_tree_barrier(workspace: Workspace, need: Need) -> str:
    """Return why a need that would change another work tree is denied;
    "": it changes none, or this is the main tree.

    The names of files are those that rules match: relative to the work tree,
    absolute outside of it.
    """
    if need.permission != "edit" or not workspace.other_trees.exist:
        return ""
    for name in (*need.patterns, *need.possible):
        # An unknown part of a name has a mark in it,
        # which leaves the folders before it as they are.
        tree = workspace.other_trees.find_tree(Path(os.path.normpath(workspace.root / name)))
        if tree is not None:
            return (
                f"This session works in the work tree {workspace.root} and changes nothing in another one, here {tree}"
                f" ({name}). Change the file of this work tree; `codeloop worktree merge` brings it over. To work "
                f"there instead, the user starts codeloop in it: `codeloop --dir {tree}`."
            )
    return ""
