"""Finds the access to a cluster, its address, certificates and token, in a kubeconfig or in the pod of this process."""

import base64
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from ssl import CERT_NONE, SSLContext, SSLError, create_default_context
from typing import Any

import msgspec
from msgspec import Struct

from codeloop.schema.errors import CodeloopError

IN_POD = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_HOME_FILE = "~/.kube/config"


class ClusterAccess(Struct, frozen=True):
    """The access to a cluster's API. `url`: the base URL; `namespace`: that of the jobs; `tls`: None for plain HTTP.

    `read_token` is called for each request, since a pod's token is replaced from time to time.
    """

    url: str
    namespace: str
    tls: SSLContext | None
    read_token: Callable[[], str]


class _Entry(Struct, frozen=True):
    """A named cluster, user or context of a kubeconfig."""

    name: str
    cluster: dict[str, Any] | None = None
    user: dict[str, Any] | None = None
    context: dict[str, str] | None = None


class _KubeConfig(Struct, frozen=True, rename="kebab"):
    clusters: tuple[_Entry, ...] = ()
    users: tuple[_Entry, ...] = ()
    contexts: tuple[_Entry, ...] = ()
    current_context: str = ""


def find_access(environment: Mapping[str, str], context: str = "", namespace: str = "") -> ClusterAccess:
    """Return the access from the first file of KUBECONFIG, else ~/.kube/config, else the pod of this process.

    `context`, `namespace`: to use instead of those in the file. Raises CodeloopError.
    """
    kubeconfig = environment.get("KUBECONFIG", "").split(os.pathsep)[0]
    file = Path(kubeconfig or _HOME_FILE).expanduser()
    if not kubeconfig and not context and not file.is_file() and environment.get("KUBERNETES_SERVICE_HOST"):
        return read_pod_access(environment, IN_POD, namespace)
    return read_kubeconfig(file, context, namespace)


def read_pod_access(environment: Mapping[str, str], folder: Path, namespace: str = "") -> ClusterAccess:
    """Return the access for a pod's service account, whose files are in `folder`. Raises CodeloopError."""
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment.get("KUBERNETES_SERVICE_PORT", "443")
    host = f"[{host}]" if ":" in host else host
    try:
        tls = create_default_context(cafile=str(folder / "ca.crt"))
        own = (folder / "namespace").read_text().strip()
    except OSError as error:
        raise CodeloopError(f"The pod's service account can't be read from {folder}: {error.strerror}.") from error
    return ClusterAccess(f"https://{host}:{port}", namespace or own, tls, lambda: _read_token(folder / "token"))


def read_kubeconfig(file: Path, context: str = "", namespace: str = "") -> ClusterAccess:
    """Return the access that a kubeconfig describes. Raises CodeloopError."""
    import yaml

    try:
        config = msgspec.convert(yaml.safe_load(file.read_text()), _KubeConfig)
    except OSError as error:
        raise CodeloopError(
            f"{file} can't be read ({error.strerror}). KUBECONFIG names another file of a cluster's access."
        ) from error
    except (ValueError, yaml.YAMLError) as error:
        raise CodeloopError(f"{file} is no kubeconfig: {error}") from error
    context_name = context or config.current_context
    entry = _pick(file, "context", context_name, config.contexts).context or {}
    cluster = _pick(file, "cluster", entry.get("cluster", ""), config.clusters).cluster or {}
    user = _pick(file, "user", entry["user"], config.users).user or {} if entry.get("user") else {}
    url = str(cluster.get("server", "")).rstrip("/")
    if not url.startswith(("https://", "http://")):
        raise CodeloopError(f"The cluster of {context_name} in {file} has no `server` that is an address of HTTP.")
    try:
        tls = _make_tls(file.parent, cluster, user) if url.startswith("https://") else None
    except (OSError, SSLError, ValueError) as error:
        raise CodeloopError(f"A certificate or key of {context_name} in {file} can't be used: {error}") from error
    where = namespace or entry.get("namespace") or "default"
    return ClusterAccess(url, where, tls, _token_reader(file, context_name, user))


def _pick(file: Path, kind: str, name: str, entries: tuple[_Entry, ...]) -> _Entry:
    for entry in entries:
        if entry.name == name:
            return entry
    raise CodeloopError(
        f"{file} has no {kind} {name!r}; it has {', '.join(entry.name for entry in entries) or 'none'}."
    )


def _token_reader(file: Path, context: str, user: Mapping[str, Any]) -> Callable[[], str]:
    if token := str(user.get("token") or ""):
        return lambda: token
    if name := user.get("tokenFile"):
        return lambda: _read_token(file.parent / str(name))
    if user.get("exec") or user.get("auth-provider") or user.get("username"):
        raise CodeloopError(
            f"The user of {context} in {file} signs in by a program or a password, which a fleet doesn't. Give it a "
            "`token` (`kubectl create token NAME`) or a client certificate, or use the address of `kubectl proxy`."
        )
    return lambda: ""


def _read_token(file: Path) -> str:
    """Return the token in a file. Raises CodeloopError."""
    try:
        return file.read_text().strip()
    except OSError as error:
        raise CodeloopError(f"The token can't be read from {file}: {error.strerror}.") from error


def _make_tls(folder: Path, cluster: Mapping[str, Any], user: Mapping[str, Any]) -> SSLContext:
    authority = cluster.get("certificate-authority-data")
    text = base64.b64decode(authority, validate=True).decode() if authority else None
    authority_file = cluster.get("certificate-authority")
    tls = create_default_context(cafile=str(folder / authority_file) if authority_file else None, cadata=text)
    if cluster.get("insecure-skip-tls-verify") is True:
        tls.check_hostname, tls.verify_mode = False, CERT_NONE
    with ExitStack() as stack:
        certificate = _to_file(stack, folder, user, "client-certificate")
        key = _to_file(stack, folder, user, "client-key")
        if certificate is not None:
            tls.load_cert_chain(
                certificate, key, lambda: ""
            )  # without a password function OpenSSL would ask on the terminal
    return tls


def _to_file(stack: ExitStack, folder: Path, user: Mapping[str, Any], key: str) -> Path | None:
    """Return a file with a certificate or key that an entry names (`key`) or contains (`key`-data).

    OpenSSL loads these from files only, so data is written to a temporary file.
    """
    if (data := user.get(f"{key}-data")) is not None:
        file = (
            Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="codeloop-"))) / key
        )  # readable by its owner only
        file.write_bytes(base64.b64decode(str(data), validate=True))
        return file
    return folder / str(user[key]) if user.get(key) else None
