"""The small model of a provider, as extensions choose it. Loaded only when one wants to."""

import msgspec

from codeloop.app.models.open_models import SMALL, OpenModels
from codeloop.app.models.provider_list import ProviderList
from codeloop.app.project import Project
from codeloop.model.errors import UnknownModel
from codeloop.schema.wire import JSON


async def choose_small(project: Project, provider_id: str) -> None:
    """Have extensions choose the small model of a provider, once. The user's own choice counts more.

    Raises HookRefused: one that decides about it could not.
    """
    hooks, models = project.engine.hooks.runner, project.models
    if hooks is None or not isinstance(models, OpenModels) or project.settings.config.small_model:
        return
    if provider_id in models.smaller:
        return
    models.smaller[provider_id] = ""
    details: JSON = msgspec.to_builtins(ProviderList(project.providers, models).details(provider_id))
    model = (await hooks.run(SMALL, {"provider": details}, {"model": None}))["model"]
    if model is None:
        return
    ref = f"{model.get('providerID')}/{model.get('id')}"
    try:
        models.check(ref)
    except UnknownModel as error:
        project.warn(f"The small model that an extension chose for {provider_id} is not used: {error}")
    else:
        models.smaller[provider_id] = ref
