"""Reads the deployments of a user's Azure resource, and adds them to the configuration as models.

The catalog can't have them: users deploy models under names of their own.
`builtin_sign_in` uses this.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from codeloop.config.file_entries import write_value
from codeloop.model.catalog.azure_deployments import (
    Deployment,
    KeyRefused,
    list_deployments,
    make_model_entries,
)
from codeloop.model.catalog.services import list_service_urls
from codeloop.model.credentials.store import Credentials
from codeloop.model.endpoints import make_endpoint
from codeloop.model.errors import ModelUnavailable
from codeloop.model.provider import Provider, resolve_base_url, resolve_settings, resolve_url
from codeloop.schema.errors import OperationError

_MAX_NAMES = 8
"""The deployments that a message names."""


class ResourceDeployments:
    """The deployments of a resource. `key`: the key that the user typed;
    "": the stored one is used.
    """

    def __init__(
        self, provider: Provider, credentials: Credentials, environment: Mapping[str, str], key: str
    ) -> None:
        self._provider = provider
        self._credentials = credentials
        self._environment = environment
        self._key = key
        self._deployments: list[Deployment] = []
        self._read_problem = ""

    async def read(self) -> None:
        """Ask the resource for its deployments. Raises OperationError if it refuses the typed key.

        Other problems are part of the message of `write`: a user may name a deployment
        that can't be listed.
        """
        try:
            url = self._find_url()
            self._deployments = await list_deployments(url, await self._make_headers(url))
        except KeyRefused as error:
            if self._key:
                problem = f"{self._provider.id} refuses this key ({error}). Nothing was stored."
                raise OperationError(
                    "BadRequest", f"{problem} Is it a key of this resource?"
                ) from error
            self._read_problem = str(error)
        except ModelUnavailable as error:
            self._read_problem = str(error)

    async def write(self, file: Path, name: str) -> str:
        """Add the deployment `name`, or all if it is "", to a configuration file;
        return a message for the user.

        Without a name, models that the configuration has already are not changed.
        """
        matching = (
            [each for each in self._deployments if each.name == name] if name else self._deployments
        )
        names = [each.name for each in self._deployments]
        if name and names and not matching:
            return f"The resource lists no deployment `{name}`, but {_join_names(names)}."
        entries = make_model_entries(matching or ([Deployment(name, name)] if name else []))
        for model, entry in entries.items():
            if name or model not in self._provider.config.models:
                path = ("provider", self._provider.id, "models", model)
                await asyncio.to_thread(write_value, file, path, entry)
        if entries:
            return f"Deployed there: {_join_names([each.name for each in matching] or [name])}."
        command = (
            f"`codeloop auth login {self._provider.id} --deployment NAME`, or ctrl+k in /connect"
        )
        if self._read_problem:
            return f"The resource does not list its deployments ({self._read_problem}). Name the one to use: {command}."
        return f"No model to talk to is deployed there. Deploy one, then name it: {command}."

    def _find_url(self) -> str:
        """Return the address to ask: the configured one,
        else one that the provider has besides its own, else that.

        Raises ModelUnavailable if a setting in it, such as the resource's name, is missing.
        """
        settings = resolve_settings(self._provider, self._environment)
        url_template = (
            None
            if self._provider.has_configured_url
            else next(iter(sorted(list_service_urls(self._provider.id, self._provider.npm))), None)
        )
        url = (
            resolve_url(url_template, settings)
            if url_template
            else resolve_base_url(self._provider, self._environment)
        )
        if url is None:
            raise ModelUnavailable("its address is not known")
        return url

    async def _make_headers(self, url: str) -> dict[str, str]:
        if self._key:
            return {"api-key": self._key}
        endpoint = make_endpoint(self._provider, self._credentials, self._environment)
        if endpoint.signer is not None:
            return {**endpoint.headers, **await endpoint.signer.sign(url, {}, b"")}
        return {**endpoint.headers, **({"api-key": endpoint.key} if endpoint.key else {})}


def _join_names(names: list[str]) -> str:
    rest = f" and {len(names) - _MAX_NAMES} others" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + rest
