"""Opens a project with the configuration that its extensions have changed.

An extension may change the configuration, but only once it runs, and it runs only once its project
is open. So a project whose configuration turns out to be another one is opened a second time.
"""

from codeloop.app.dispatch import serve_extensions
from codeloop.app.project import Project, open_project
from codeloop.app.settings import ProjectSettings, Startup


async def open_with_extensions(startup_or_settings: Startup | ProjectSettings) -> Project:
    """Open a project as `open_project` does, then wait for its extensions'
    changes to the configuration.

    The wait is bounded by `hosts.wait_for_config`. Raises CodeloopError as `open_project` does.
    """
    project = await open_project(startup_or_settings)
    if await wait_for_config_changes(project):
        await project.close()
        project = carry_over_warnings(await open_project(project.settings.startup), project)
    return project


def carry_over_warnings(project: Project, replaced: Project) -> Project:
    """Add the warnings that `replaced` has not shown yet to the project that replaces it;
    return the new project.
    """
    for message in replaced.services.warnings.messages:
        project.warn(message)
    return project


async def wait_for_config_changes(project: Project) -> bool:
    """Wait until extensions have changed the configuration;
    return whether the project must be opened again.
    """
    hosts = project.services.extensions.hosts
    if hosts is None:
        return False
    # An extension may request operations while it starts.
    # Without this its requests, and so this wait, would time out.
    serve_extensions(project)
    await hosts.wait_for_config()
    return project.refresh()
