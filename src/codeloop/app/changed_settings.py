"""Applies a changed configuration to an open project, as far as that needs no new one."""

from functools import partial

from codeloop.app.models.open_models import find_newest_model
from codeloop.app.services import OpenProject
from codeloop.app.settings import ProjectSettings


def apply_changes(project: OpenProject, changed_settings: ProjectSettings) -> None:
    """Have the changed rules and agents hold from now on, and tell followers."""
    engine = project.engine
    engine.rulebook.set_config(changed_settings.loaded)
    # The engine and the services share this dictionary, so only its content is replaced.
    engine.agents.clear()
    find_model = partial(find_newest_model, project.settings, project.providers)
    engine.agents.update(engine.rulebook.build_agents(find_model))
    project.notify(_describe_change(changed_settings))


def _describe_change(changed_settings: ProjectSettings) -> str:
    """Describe a changed configuration for followers."""
    if changed_settings.distrust is not None:
        return f"{changed_settings.distrust}: its configuration can only tighten yours until you run `codeloop trust`."
    return "The configuration has changed: rules hold from the next call on, the rest from the next turn."
