"""The plugins of a project that sign in at providers of models."""

import msgspec

from codeloop.app.models.sign_in import SignInOffer, SignInPlugin
from codeloop.app.services import OpenProject
from codeloop.extend.host.hosts import ExtensionHosts


def take_sign_ins(project: OpenProject, hosts: ExtensionHosts) -> None:
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
        plugins.append(SignInPlugin(offer, hosts.host(hosts.key(each)), each.load_spec))
    project.services.plugin_sign_ins.take(plugins)
