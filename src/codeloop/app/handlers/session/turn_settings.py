"""Chooses what a turn runs with, from the prompt, the session and the configuration: agent, model,
limits, budgets.
"""

from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress

from codeloop.agent.engine import TurnSettings
from codeloop.agent.request.shared_budget import SharedBudget
from codeloop.agent.request.window import compute_compaction_threshold
from codeloop.app.project import Project
from codeloop.kit.jsonc import KeyPath
from codeloop.model.chat import ModelInfo
from codeloop.model.errors import UnknownModel
from codeloop.schema.api.agents import Agent
from codeloop.schema.api.session_inputs import Prompt, RunLimits, RunShell
from codeloop.schema.errors import CodeloopError
from codeloop.schema.live_events import Toast, ToastShown
from codeloop.schema.message import (
    ModelRef,
    Session,
    UserMessage,
    count_used_tokens,
    format_model_ref,
    parse_model_ref,
)
from codeloop.schema.wire import replace


def make_turn_settings(
    limits: RunLimits | None, message: UserMessage, project: Project
) -> TurnSettings:
    """Return the settings of a prompt's turn. Raises CodeloopError when the
    model is not available.
    """
    limits = limits or RunLimits()
    agent = project.engine.get_agent(message.agent)
    step_limits = [steps for steps in (limits.steps, agent.steps) if steps is not None]
    compaction = project.settings.config.compaction
    info = project.models.open(format_model_ref(message.model)).info
    session = project.store.get_session(message.session_id)
    return TurnSettings(
        max_steps=min(step_limits, default=None),
        max_cost=limits.cost,
        configured_budget=project.engine.turn_settings.configured_budget,
        cost_before=session.cost or 0.0,
        max_tokens=limits.tokens,
        tokens_before=count_used_tokens(session),
        shared_budget=_find_or_make_budget(project, session, limits),
        compact_at_tokens=compute_compaction_threshold(info, compaction.reserved),
        can_compact=compaction.auto and limits.compact,
        fallback_models=_list_usable_models(project, agent.fallback or ()),
        is_attended=limits.attended,
        directories=tuple(limits.directories),
        wants_hour_cache=_wants_hour_cache(project, session.id, info),
    )


def _find_or_make_budget(
    project: Project, session: Session, limits: RunLimits
) -> SharedBudget | None:
    """Return the budget of a session with its subagents (`subagents.cost`),
    below the one that a client shares.

    A client may share a budget among the turns of several sessions. None: there is neither of them.
    """
    shared = None if limits.budget is None else project.settings.startup.budgets.find(limits.budget)
    max_cost = project.settings.config.subagents.cost
    if max_cost is None:
        return shared
    *_, root = project.store.walk_ancestors(session.id)
    trees = project.services.tree_budgets
    tree = trees.setdefault(
        root.id,
        SharedBudget(max_cost, name="limit of a session with its subagents (subagents.cost)"),
    )
    # What earlier processes spent, and what was undone, is in the ledger,
    # so that neither allows more.
    tree.spent = max(tree.spent, root.cost or 0.0, project.store.ledger.sum_root(root.id))
    tree.parent = shared
    return tree


def _wants_hour_cache(project: Project, session_id: str, info: ModelInfo) -> bool:
    """Return whether the session's requests would cost less if the service
    kept its cache for an hour.
    """
    # Looked at before the import: most models have no cache of that kind.
    if info.prices.hour_write <= info.prices.cache_write:
        return False
    from codeloop.agent.request.cache_lifetime import saves_with_hour_cache

    return saves_with_hour_cache(project.store.read_context(session_id).entries, info)


def _list_usable_models(project: Project, refs: Iterable[str]) -> tuple[str, ...]:
    """Return the models that can be used now. `codeloop doctor` explains what the others lack,
    such as a key.
    """
    usable: list[str] = []
    for ref in refs:
        with suppress(CodeloopError):
            project.models.open(ref)
            usable.append(ref)
    return tuple(usable)


def choose_agent(project: Project, session: Session, name: str | None) -> Agent:
    """Return the agent for a turn: the named one, else the session's, else the default.
    Raises OperationError.
    """
    return project.engine.get_agent(
        name or session.agent or project.settings.config.default_agent or "build"
    )


async def choose_model(
    project: Project, args: Prompt | RunShell, session: Session, agent: Agent
) -> ModelRef:
    """Return the model for a turn: the prompt's, else the model of its named agent, the session's,
    or the default.

    The variant is the prompt's, else the one stored with the session's model, else the one of the
    agent's model. Raises CodeloopError if there is no model,
    UnknownModel if the model or the variant does not exist.
    """
    model = await _choose_named_model(project, args, session, agent)
    variant = (args.variant if isinstance(args, Prompt) else None) or model.variant
    # The names of variants are those of a model, so the agent's variant is for
    # the agent's model alone.
    is_model_of_agent = agent.model is not None and format_model_ref(
        agent.model
    ) == format_model_ref(model)
    variant_name = variant or (agent.variant if is_model_of_agent else None)
    if variant_name is None:
        return model
    with _add_setting_to_errors(project, () if variant else ("agent", agent.name, "variant")):
        return replace(
            model, variant=project.models.resolve_variant(format_model_ref(model), variant_name)
        )


async def _choose_named_model(
    project: Project, args: Prompt | RunShell, session: Session, agent: Agent
) -> ModelRef:
    own, named = session.model, args.model
    if named is None and own is not None and (args.agent is None or agent.model is None):
        named = ModelRef(provider_id=own.provider_id, model_id=own.id, variant=own.variant)
    if named is not None:
        try:
            check_model(project, named)
        except UnknownModel as error:
            # A client that shows the session's model may name it, too.
            if own is None or (named.provider_id, named.model_id) != (own.provider_id, own.id):
                raise
            return await _replace_lost_model(project, named, agent, error)
        return named
    if agent.model is not None:
        check_model(project, agent.model, ("agent", agent.name, "model"))
        return agent.model
    with _add_setting_to_errors(project, ("model",)):
        return parse_model_ref(await project.models.choose_default(project.settings.config.model))


async def _replace_lost_model(
    project: Project, lost: ModelRef, agent: Agent, error: UnknownModel
) -> ModelRef:
    """Return the configured model in the place of a session's that is not there any more,
    and tell the user.

    Raises `error` if there is none either.
    """
    try:
        configured = agent.model or parse_model_ref(
            await project.models.choose_default(project.settings.config.model)
        )
        project.models.open(format_model_ref(configured))
    except CodeloopError:
        raise error from None
    note = f"{format_model_ref(lost)} is not there any more. The session goes on with {format_model_ref(configured)}."
    project.store.publish_live(ToastShown(properties=Toast(message=note, variant="warning")))
    return configured


def check_model(project: Project, model: ModelRef, keys: KeyPath = ()) -> None:
    """Raise UnknownModel for a model that does not exist; the error names similar ones.

    `keys`: the path of the setting that names the model; empty if no setting does.
    """
    with _add_setting_to_errors(project, keys):
        project.models.check(format_model_ref(model))


@contextmanager
def _add_setting_to_errors(project: Project, keys: KeyPath) -> Generator[None]:
    """Add the file and line of the setting to an UnknownModel error,
    so that the user knows where to correct it.
    """
    try:
        yield
    except UnknownModel as error:
        origin = project.settings.loaded.describe_origin(keys)
        if origin is None:
            raise
        raise UnknownModel(f"{error}\nIt is chosen by {origin.place}.") from error
