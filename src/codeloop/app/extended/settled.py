"""Opens a project with its extensions' changes of the configuration, waiting for them at opening or before a turn."""

from codeloop.app.dispatch import serve_extensions
from codeloop.app.project import Project, open_project
from codeloop.app.settings import ProjectSettings, Startup


async def open_settled(what: Startup | ProjectSettings) -> Project:
    """As `open_project`, with the extensions' changes to the configuration; waits for them, up to a limit."""
    project = await open_project(what)
    if await wait_settled(project):
        await project.close()
        project = with_warnings(await open_project(project.settings.startup), project)
    return project


def with_warnings(project: Project, before: Project) -> Project:
    """Return a project with the warnings that the one before it still holds."""
    for message in before.services.warnings.messages:
        project.warn(message)
    return project


async def wait_settled(project: Project) -> bool:
    """Wait until extensions have said what they change in the configuration; return whether it is another one now."""
    hosts = project.services.extensions.hosts
    if hosts is None:
        return False
    serve_extensions(project)
    await hosts.wait_for_config()
    return project.refresh()
