"""Chooses a model when none is configured, by the rows of `codeloop.model.catalog.vendors`. Pure."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from codeloop.model.catalog.services import service_of
from codeloop.model.catalog.vendors import (
    LOCAL_MODELS,
    NOT_BY_DEFAULT,
    NOT_FOR_CHAT,
    OWN_MODELS,
    PREFERRED_MODELS,
    REGION,
    SMALL_MODELS,
)
from codeloop.model.chat import ModelInfo


def choose_default(models: Iterable[ModelInfo]) -> ModelInfo | None:
    """Return the newest capable model that we can speak to; None without one."""
    candidates = [model for model in models if _is_candidate(model)]
    plain = [model for model in candidates if not _matches_any(model.id, NOT_BY_DEFAULT)]
    large = [model for model in plain if not _matches_any(model.id, SMALL_MODELS)]
    own = OWN_MODELS.get(candidates[0].provider_id, ()) if candidates else ()
    patterns = (*own, *PREFERRED_MODELS)
    return _newest_of_first(large, patterns) or _newest_of_first(plain, patterns) or _newest(plain or candidates)


def small_model(models: Iterable[ModelInfo], model_name: str = "") -> ModelInfo | None:
    """Return a quick, cheap model for titles; None without one.

    `model_name`: the id of the session's model. With a region prefix, as Bedrock's, the same region is chosen.
    """
    plain = [model for model in models if _is_candidate(model) and not _matches_any(model.id, NOT_BY_DEFAULT)]
    region = REGION.match(model_name)
    near = [model for model in plain if region is not None and model.id.startswith(region[0])]
    return _newest_of_first(near, SMALL_MODELS) or _newest_of_first(plain, SMALL_MODELS)


def cheapest_model(own: ModelInfo, models: Iterable[ModelInfo]) -> ModelInfo:
    """Return the cheapest of a provider's models, or `own` where none is known to cost less."""

    def price(model: ModelInfo) -> float:
        return model.prices.input + model.prices.output

    cheaper = [
        each for each in models if _is_candidate(each) and not _matches_any(each.id, NOT_BY_DEFAULT) and price(each) > 0
    ]
    return min([own, *(each for each in cheaper if price(each) < price(own))], key=price)


def local_model(ids: Sequence[str]) -> str | None:
    """Return the best coding model of a local server, judged by name; None without a chat model."""
    candidates = [model for model in ids if not _matches_any(model, NOT_FOR_CHAT)]
    fitting = (model for pattern in LOCAL_MODELS for model in candidates if _matches_any(model, (pattern,)))
    return next(fitting, None)


def _is_candidate(model: ModelInfo) -> bool:
    return model.tool_call and model.status in {"active", "beta"} and service_of(model) is not None


def _matches_any(model_id: str, patterns: tuple[str, ...]) -> bool:
    return _expression(patterns).search(model_id.lower()) is not None


@lru_cache(maxsize=256)
def _expression(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Compile patterns, in which only `*` is special, to one expression, since the catalog is large."""
    return re.compile("|".join(map(_translate_pattern, patterns)), re.DOTALL)


def _translate_pattern(pattern: str) -> str:
    start = "" if pattern.startswith("*") else r"\A"
    end = "" if pattern.endswith("*") else r"\Z"
    return start + ".*".join(map(re.escape, pattern.strip("*").split("*"))) + end


def _newest_of_first(models: list[ModelInfo], patterns: Sequence[str]) -> ModelInfo | None:
    for pattern in patterns:
        fitting = [model for model in models if _matches_any(model.id, (pattern,))]
        if fitting:
            return _newest(fitting)
    return None


def _newest(models: list[ModelInfo]) -> ModelInfo | None:
    """Return the newest model; of one day's, the shortest id, which names no variant."""
    if not models:
        return None
    day = max(model.release_date for model in models)
    return min((model for model in models if model.release_date == day), key=lambda model: (len(model.id), model.id))
