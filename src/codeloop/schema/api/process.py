"""The server itself: its health, and reloading the configuration of directories."""

from codeloop.schema.operation import NoArguments, Operation
from codeloop.schema.wire import Wire


class Health(Wire):
    """The server answers."""

    healthy: bool
    version: str


HEALTH = Operation(
    "global.health",
    "GET",
    "/global/health",
    NoArguments,
    Health,
    "process:get_health",
    scope="process",
)
INSTANCE_DISPOSE = Operation(
    "instance.dispose",
    "POST",
    "/instance/dispose",
    NoArguments,
    bool,
    "process:reload_directory",
    scope="process",
)
GLOBAL_DISPOSE = Operation(
    "global.dispose",
    "POST",
    "/global/dispose",
    NoArguments,
    bool,
    "process:reload_all_directories",
    scope="process",
)
