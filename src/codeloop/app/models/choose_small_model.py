"""Lets extensions choose the small model of a provider.
Imported only if an extension has a hook for that.
"""

import msgspec

from codeloop.app.models.open_models import SMALL_MODEL_HOOK, OpenModels
from codeloop.app.models.provider_list import ProviderList
from codeloop.app.project import Project
from codeloop.model.errors import UnknownModel
from codeloop.schema.wire import JSON


async def choose_small_model(project: Project, provider_id: str) -> None:
    """Ask extensions once for the small model of a provider,
    unless the configuration has one (`small_model`).

    Raises HookRefused if an extension that must decide failed.
    """
    hooks, models = project.engine.hooks.runner, project.models
    if hooks is None or not isinstance(models, OpenModels) or project.settings.config.small_model:
        return
    if provider_id in models.small_models:
        return
    # Noted before the hook runs, so that an extension that fails is not asked at each prompt.
    models.small_models[provider_id] = ""
    details: JSON = msgspec.to_builtins(
        ProviderList(project.providers, models).describe_provider(provider_id)
    )
    model = (await hooks.run(SMALL_MODEL_HOOK, {"provider": details}, {"model": None}))["model"]
    if model is None:
        return
    ref = f"{model.get('providerID')}/{model.get('id')}"
    try:
        models.check(ref)
    except UnknownModel as error:
        project.warn(
            f"The small model that an extension chose for {provider_id} is not used: {error}"
        )
    else:
        models.small_models[provider_id] = ref
