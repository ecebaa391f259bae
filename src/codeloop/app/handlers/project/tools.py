"""Handlers that list tools: all of them, and those that a model is offered."""

from codeloop.agent.calls.call_rules import list_rulesets_of_new_session
from codeloop.app.models.open_models import SingleModel
from codeloop.app.project import Project
from codeloop.model.chat import ModelInfo
from codeloop.schema.api.project import (
    ToolListItem,
    ToolListQuery,
)
from codeloop.schema.operation import NoArguments


async def list_tool_ids(project: Project, _args: NoArguments) -> list[str]:
    """Return the names of all tools."""
    return [tool.name for tool in project.engine.toolbox.tools]


async def list_tools(project: Project, args: ToolListQuery) -> list[ToolListItem]:
    """Return the tools that the default agent offers to a model.
    Raises CodeloopError if there is no such model.
    """
    info = _find_model(project, args)
    if not info.tool_call:
        return []
    engine = project.engine
    agent = engine.get_agent(project.settings.config.default_agent or "build")
    # As in a session: a tool is offered if each list of rules leaves some use of it.
    own_rulesets, *further_lists = list_rulesets_of_new_session(engine, agent)
    names_by_list = [
        {spec.name for spec in engine.toolbox.list_specs(info.id, *rules)}
        for rules in further_lists
    ]
    return [
        ToolListItem(id=spec.name, description=spec.description, parameters=spec.parameters)
        for spec in engine.toolbox.list_specs(info.id, *own_rulesets)
        if all(spec.name in names for names in names_by_list)
    ]


def _find_model(project: Project, args: ToolListQuery) -> ModelInfo:
    if isinstance(project.models, SingleModel) and project.models.info.provider_id == args.provider:
        return project.models.info
    return project.providers.find_model(f"{args.provider}/{args.model}")
