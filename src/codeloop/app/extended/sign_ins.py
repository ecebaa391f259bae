"""The plugins of a project that sign in at providers of models."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import msgspec

from codeloop.app.models.open_models import Source
from codeloop.app.models.sign_in import PluginSignIns, SignInOffer, SignInPlugin
from codeloop.extend.host.hosts import ExtensionHosts
from codeloop.model.providers import Providers

T = TypeVar("T")


class SigningProject(Protocol):
    """What of a project its plugins that sign in need."""

    @property
    def providers(self) -> Providers:
        """The provider table."""
        ...

    @property
    def models(self) -> Source:
        """Where its models come from."""
        ...

    def warn(self, message: str) -> None:
        """Show a warning."""
        ...

    def shared(self, make: Callable[[Any], T]) -> T:
        """Return the one object that `make` makes for it."""
        ...


def sign_ins_of(project: SigningProject) -> PluginSignIns:
    """Return how one signs in with the plugins of a project, as far as they are known."""
    return PluginSignIns(project.providers, project.models)


def take_sign_ins(project: SigningProject, hosts: ExtensionHosts) -> None:
    """Sign in with the plugins that are known now. Those that come with the project get no credential of the user."""
    plugins: list[SignInPlugin] = []
    for each in hosts.extensions:
        auth = hosts.offers[each.name].auth if each.name in hosts.offers else None
        if auth is None or each.is_project:
            continue
        try:
            offer = msgspec.convert(auth, SignInOffer)
        except msgspec.ValidationError as error:
            project.warn(f"{each.name}: its `auth` is invalid: {error}")
            continue
        plugins.append(SignInPlugin(offer, hosts.host(hosts.key(each)), each.loaded))
    project.shared(sign_ins_of).take(plugins)
