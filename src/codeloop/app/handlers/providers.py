"""Providers, models and keys."""

from codeloop.app.project import Project
from codeloop.schema.operation import NoArguments
from codeloop.schema.providers import AuthMethod, KnownProviders, OfOneProvider, SetAuth, UsableProviders


async def usable(project: Project, args: NoArguments) -> UsableProviders:
    """config.providers."""
    raise NotImplementedError


async def known(project: Project, args: NoArguments) -> KnownProviders:
    """provider.list."""
    raise NotImplementedError


async def methods(project: Project, args: NoArguments) -> dict[str, list[AuthMethod]]:
    """provider.auth."""
    raise NotImplementedError


async def set_auth(project: Project, args: SetAuth) -> bool:
    """auth.set."""
    raise NotImplementedError


async def remove_auth(project: Project, args: OfOneProvider) -> bool:
    """auth.remove."""
    raise NotImplementedError
