"""The client that openapi-python-client made: every module of it can be imported,
and it talks to a server.
"""

import os
import pkgutil
from importlib import import_module
from typing import Any

whole: Any = import_module("codeloop_client")  # made by the test, so no checker of ours can know it
modules = [each.name for each in pkgutil.walk_packages(whole.__path__, "codeloop_client.")]
loaded: dict[str, Any] = {name: import_module(name) for name in modules}
print("ok", len(modules), "modules")
models, routes = loaded["codeloop_client.models"], "codeloop_client.api.session"
assert models.McpAuthRemoved.from_dict({"success": True}).success is True
client = whole.AuthenticatedClient(base_url=os.environ["BASE_URL"], token=os.environ["PASSWORD"])
body = models.SessionCreateBody(title="From Python")
made = loaded[f"{routes}.session_create"].sync(client=client, body=body)
assert isinstance(made, models.Session), made
assert made.title == "From Python"
print("ok session.create")
listed = loaded[f"{routes}.session_list"].sync(client=client)
assert made.id in [each.id for each in listed], listed
print("ok session.list")
assert loaded[f"{routes}.session_get"].sync_detailed("ses_none", client=client).status_code == 404
print("ok a refusal")
