"""Handlers that list tools: all of them, and those that a model is offered."""

from codeloop.app.handlers import handles
from codeloop.app.models.open_models import SingleModel
from codeloop.app.project import Project
from codeloop.model.chat import ModelInfo
from codeloop.permission.defaults import make_guard_rules
from codeloop.permission.rules import RuleLayer
from codeloop.schema import operation
from codeloop.schema.api.project import (
    ToolListItem,
    ToolListQuery,
)
from codeloop.schema.operation import NoArguments


@handles(operation.TOOL_IDS)
async def list_tool_ids(project: Project, _args: NoArguments) -> list[str]:
    """Return the names of all tools."""
    return [tool.name for tool in project.engine.toolbox.tools]


@handles(operation.TOOL_LIST)
async def list_tools(project: Project, args: ToolListQuery) -> list[ToolListItem]:
    """Return the tools that the default agent offers to a model. Raises CodeloopError if there is no such model."""
    info = _find_model(project, args)
    if not info.tool_call:
        return []
    engine = project.engine
    agent = engine.get_agent(project.settings.config.default_agent or "build")
    profile = engine.rulebook.profile
    layers = engine.rulebook.get_layers(agent.name, profile)
    # As in a session: a tool is offered if the agent's rules, the guards and all ceilings leave some use of it.
    guards = (RuleLayer("", make_guard_rules(layers[1].rules)),)
    lists = [layers, guards, *engine.rulebook.list_fixed_rules(agent.name, profile)]
    tool_specs, *limits = [engine.toolbox.list_specs(info.id, *(layer.rules for layer in layers)) for layers in lists]
    allowed_names = [{spec.name for spec in specs} for specs in limits]
    return [
        ToolListItem(id=spec.name, description=spec.description, parameters=spec.parameters)
        for spec in tool_specs
        if all(spec.name in names for names in allowed_names)
    ]


def _find_model(project: Project, args: ToolListQuery) -> ModelInfo:
    if isinstance(project.models, SingleModel) and project.models.info.provider_id == args.provider:
        return project.models.info
    return project.providers.find_model(f"{args.provider}/{args.model}")
