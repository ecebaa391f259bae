"""Chooses models that the user did not name (default, small, cheapest, local),
by the rows of `vendors.py`. Pure.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from codeloop.kit.wildcard import matches
from codeloop.model.catalog.services import find_service
from codeloop.model.catalog.vendors import (
    EXPLICIT_MODELS,
    NON_CHAT_MODELS,
    PREFERRED_LOCAL_MODELS,
    PREFERRED_MODELS,
    PREFERRED_MODELS_BY_PROVIDER,
    REGION_PREFIX,
    SMALL_MODELS,
)
from codeloop.model.chat import ModelInfo


def choose_default_model(models: Iterable[ModelInfo]) -> ModelInfo | None:
    """Return a provider's model to use if none is named;
    None without one that calls tools by a supported protocol.
    """
    candidates = [model for model in models if _is_candidate(model)]
    # The newest of the most preferred pattern: among large models, else among all;
    # else the newest of any kind.
    plain = [model for model in candidates if not _matches_any(model.id, EXPLICIT_MODELS)]
    large = [model for model in plain if not _matches_any(model.id, SMALL_MODELS)]
    provider_patterns = (
        PREFERRED_MODELS_BY_PROVIDER.get(candidates[0].provider_id, ()) if candidates else ()
    )
    patterns = (*provider_patterns, *PREFERRED_MODELS)
    return (
        _find_newest_by_preference(large, patterns)
        or _find_newest_by_preference(plain, patterns)
        or _find_newest(plain or candidates)
    )


def choose_small_model(models: Iterable[ModelInfo], model_name: str = "") -> ModelInfo | None:
    """Return a quick, cheap model for titles; None without one.

    `model_name`: the id of the session's model. With a region prefix, as Bedrock's,
    the same region is chosen.
    """
    plain = [
        model
        for model in models
        if _is_candidate(model) and not _matches_any(model.id, EXPLICIT_MODELS)
    ]
    region = re.match(REGION_PREFIX, model_name)
    of_region = [model for model in plain if region is not None and model.id.startswith(region[0])]
    return _find_newest_by_preference(of_region, SMALL_MODELS) or _find_newest_by_preference(
        plain, SMALL_MODELS
    )


def choose_cheapest_model(current: ModelInfo, models: Iterable[ModelInfo]) -> ModelInfo:
    """Return the cheapest of a provider's models, or `current` where none is known to cost less."""

    def add_prices(model: ModelInfo) -> float:
        return model.prices.input + model.prices.output

    cheaper = [
        model
        for model in models
        if _is_candidate(model)
        and not _matches_any(model.id, EXPLICIT_MODELS)
        # A price of 0 is mostly an unknown one.
        and 0 < add_prices(model) < add_prices(current)
    ]
    return min(cheaper, key=add_prices, default=current)


def choose_local_model(ids: Sequence[str]) -> str | None:
    """Return the best coding model of a local server, judged by name; None without a chat model."""
    candidates = [model for model in ids if not _matches_any(model, NON_CHAT_MODELS)]
    fitting = (
        model
        for pattern in PREFERRED_LOCAL_MODELS
        for model in candidates
        if matches(model.lower(), pattern)
    )
    return next(fitting, None)


def _is_candidate(model: ModelInfo) -> bool:
    return (
        model.tool_call and model.status in {"active", "beta"} and find_service(model) is not None
    )


def _matches_any(model_id: str, patterns: tuple[str, ...]) -> bool:
    return _compile_patterns(patterns).search(model_id.lower()) is not None


@lru_cache(maxsize=256)
def _compile_patterns(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Compile wildcard patterns, in which only `*` is special,
    to one expression: thousands of ids are matched.
    """
    return re.compile("|".join(map(_translate_pattern, patterns)), re.DOTALL)


def _translate_pattern(pattern: str) -> str:
    """Return a wildcard as a regular expression for `search`."""
    start = "" if pattern.startswith("*") else r"\A"
    end = "" if pattern.endswith("*") else r"\Z"
    return start + ".*".join(map(re.escape, pattern.strip("*").split("*"))) + end


def _find_newest_by_preference(
    models: list[ModelInfo], patterns: Sequence[str]
) -> ModelInfo | None:
    for pattern in patterns:
        fitting = [model for model in models if matches(model.id.lower(), pattern)]
        if fitting:
            return _find_newest(fitting)
    return None


def _find_newest(models: list[ModelInfo]) -> ModelInfo | None:
    """Return the newest model; of several of one day the one with the shortest id:
    longer ids name variants of it.
    """
    if not models:
        return None
    day = max(model.release_date for model in models)
    return min(
        (model for model in models if model.release_date == day),
        key=lambda model: (len(model.id), model.id),
    )
