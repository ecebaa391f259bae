"""Makes the policy of a turn, its limits and models, from the prompt, the agent and the configuration."""

from collections.abc import Iterable
from contextlib import suppress

from codeloop.agent.engine import Policy, model_ref
from codeloop.agent.moves import count_used_tokens
from codeloop.agent.request.shared_budget import SharedBudget
from codeloop.agent.request.window import compute_room
from codeloop.app.project import Project
from codeloop.model.chat import ModelInfo
from codeloop.schema.api.session_inputs import RunLimits
from codeloop.schema.api.session_requests import BudgetUse
from codeloop.schema.config import SpendingConfig
from codeloop.schema.errors import CodeloopError
from codeloop.schema.message import Session, UserMessage
from codeloop.store.subagent_state import walk_ancestors


async def make_policy(limits: RunLimits | None, message: UserMessage, project: Project) -> Policy:
    """Return the policy of a prompt's turn. Raises CodeloopError when the model is not available."""
    limits = limits or RunLimits()
    agent = project.engine.get_agent(message.agent)
    bounds = [steps for steps in (limits.steps, agent.steps) if steps is not None]
    compaction = project.settings.config.compaction
    info = project.models.open(model_ref(message.model)).info
    session = project.store.get_session(message.session_id)
    return Policy(
        steps=min(bounds, default=None),
        cost=limits.cost,
        spending=await _find_tightest_budget(project),
        cost_before=session.cost or 0.0,
        tokens=limits.tokens,
        tokens_before=count_used_tokens(session),
        budget=_find_budget(project, session, limits),
        room=compute_room(info, compaction.reserved),
        compact=compaction.auto and limits.compact,
        fallback=_list_usable_models(project, agent.fallback or ()),
        attended=limits.attended,
        keep_hour=_wants_long_cache(project, session.id, info),
    )


def _find_budget(project: Project, session: Session, limits: RunLimits) -> SharedBudget | None:
    """Return the budgets that bound a turn: one that the client shares among turns, and that of the tree of sessions.

    The tree is a session with its subagents (`subagents.cost`). None: there is neither.
    """
    shared = None if limits.budget is None else project.settings.startup.budgets.find(limits.budget)
    max_cost = project.settings.config.subagents.cost
    if max_cost is None:
        return shared
    *_, root = walk_ancestors(project.store, session.id)
    trees = project.services.tree_budgets
    tree = trees.setdefault(
        root.id, SharedBudget(max_cost, name="limit of a session with its subagents (subagents.cost)")
    )
    tree.spent = max(tree.spent, root.cost or 0.0)  # the stored cost counts, so that a restart does not allow more
    tree.parent = shared
    return tree


def _wants_long_cache(project: Project, session_id: str, info: ModelInfo) -> bool:
    if info.prices.hour_write <= info.prices.cache_write:
        return False
    from codeloop.agent.request.cache_lifetime import saves_with_hour

    return saves_with_hour(project.store.read_context(session_id).entries, info)


async def _find_tightest_budget(project: Project) -> BudgetUse | None:
    """Return the configured budget with the fewest dollars left; None: the configuration sets none."""
    if project.settings.config.budget == SpendingConfig():
        return None
    from codeloop.app.handlers.reports.spending import find_tightest_budget, read_budgets

    return find_tightest_budget(await read_budgets(project))


def _list_usable_models(project: Project, refs: Iterable[str]) -> tuple[str, ...]:
    """Return the models that can be used now. `codeloop doctor` explains what the others lack, such as a key."""
    usable: list[str] = []
    for ref in refs:
        with suppress(CodeloopError):
            project.models.open(ref)
            usable.append(ref)
    return tuple(usable)
