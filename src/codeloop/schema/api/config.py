"""The configuration of a project: read, changed and explained."""

from codeloop.schema.operation import NoArguments, Operation
from codeloop.schema.wire import JSON, Wire


class UpdateConfig(Wire):
    """Writes settings into the project's configuration file."""

    config: JSON


CONFIG_GET = Operation(
    "config.get", "GET", "/config", NoArguments, JSON, "project.config:get_config"
)
CONFIG_UPDATE = Operation(
    "config.update",
    "PATCH",
    "/config",
    UpdateConfig,
    JSON,
    "project.config:update_config",
    body="config",
)
CONFIG_SETTINGS = Operation(
    "config.settings",
    "GET",
    "/config/settings",
    NoArguments,
    JSON,
    "project.config:get_full_config",
)
CONFIG_ORIGINS = Operation(
    "config.origins",
    "GET",
    "/config/origins",
    NoArguments,
    dict[str, str],
    "project.config:list_origins",
)
CONFIG_WARNINGS = Operation(
    "config.warnings",
    "GET",
    "/config/warnings",
    NoArguments,
    list[str],
    "project.config:list_warnings",
)
