"""Handlers that list tools and formatters, and write clients' lines to the log."""

import asyncio
import logging

import msgspec

from codeloop.app.handlers import handles
from codeloop.app.language.edit_finisher import make_formatters
from codeloop.app.models.open_models import SingleModel
from codeloop.app.project import Project
from codeloop.kit.text.terminal_text import one_line
from codeloop.model.chat import ModelInfo
from codeloop.permission.defaults import make_guard_rules
from codeloop.permission.rules import RuleLayer
from codeloop.schema import operation
from codeloop.schema.api.project import (
    FormatterStatus,
    ToolListItem,
    ToolListQuery,
    WriteLog,
)
from codeloop.schema.limits import CLIENT_LOG
from codeloop.schema.operation import NoArguments

_LOG = logging.getLogger("codeloop.client")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}


@handles(operation.LOG)
async def write_log(_project: Project, args: WriteLog) -> bool:
    """Write a client's message to the log as one line, cut to CLIENT_LOG."""
    extra = f" {msgspec.json.encode(args.extra).decode()}" if args.extra else ""
    line = one_line(f"{args.service}: {args.message[: CLIENT_LOG.value]}{extra}", CLIENT_LOG.value)
    _LOG.log(_LEVELS[args.level], "%s", line)
    return True


@handles(operation.FORMATTER_STATUS)
async def list_formatters(project: Project, _args: NoArguments) -> list[FormatterStatus]:
    """Return the formatters; `enabled`: whether one formats files of this directory after an edit."""
    states = await asyncio.to_thread(make_formatters(project.settings, project.workspace).list_states)
    return [
        FormatterStatus(name=each.name, extensions=list(each.extensions), enabled=each.is_enabled) for each in states
    ]


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
