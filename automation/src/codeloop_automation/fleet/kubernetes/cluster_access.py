"""The access to a cluster (address, certificates, token),
from a kubeconfig or from the pod of this process.
"""

import base64
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from ssl import CERT_NONE, SSLContext, SSLError, create_default_context
from typing import Any

import msgspec
from msgspec import Struct

from codeloop.kit.remove_tree import temporary_folder
from codeloop.schema.errors import CodeloopError

# Kubernetes mounts the account of a pod here.
SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_DEFAULT_KUBECONFIG = "~/.kube/config"


class ClusterAccess(Struct, frozen=True):
    """The access to a cluster's API. `url`: the base URL; `namespace`: that of the jobs;
    `tls`: None for plain HTTP.

    `read_token` is called for each request, since a pod's token is replaced from time to time.
    """

    url: str
    namespace: str
    tls: SSLContext | None
    read_token: Callable[[], str]


class _NamedEntry(Struct, frozen=True):
    """A named cluster, user or context of a kubeconfig."""

    name: str
    cluster: dict[str, Any] | None = None
    user: dict[str, Any] | None = None
    context: dict[str, str] | None = None


class _KubeConfig(Struct, frozen=True, rename="kebab"):
    """The fields of a kubeconfig that are needed to find an access."""

    clusters: tuple[_NamedEntry, ...] = ()
    users: tuple[_NamedEntry, ...] = ()
    contexts: tuple[_NamedEntry, ...] = ()
    current_context: str = ""


def find_access(
    environment: Mapping[str, str], context: str = "", namespace: str = ""
) -> ClusterAccess:
    """Return the access from the first file of KUBECONFIG, else ~/.kube/config,
    else the pod of this process.

    `context` and `namespace` replace those of the file. Raises CodeloopError.
    """
    kubeconfig = environment.get("KUBECONFIG", "").split(os.pathsep)[0]
    file = Path(kubeconfig or _DEFAULT_KUBECONFIG).expanduser()
    if (
        not kubeconfig
        and not context
        and not file.is_file()
        and environment.get("KUBERNETES_SERVICE_HOST")
    ):
        return read_pod_access(environment, SERVICE_ACCOUNT_FOLDER, namespace)
    return read_kubeconfig(file, context, namespace)


def read_pod_access(
    environment: Mapping[str, str], folder: Path, namespace: str = ""
) -> ClusterAccess:
    """Return the access for a pod's service account, whose files are in `folder`.
    Raises CodeloopError.
    """
    host, port = (
        environment["KUBERNETES_SERVICE_HOST"],
        environment.get("KUBERNETES_SERVICE_PORT", "443"),
    )
    # An IPv6 address stands in brackets in a URL.
    host = f"[{host}]" if ":" in host else host
    try:
        tls = create_default_context(cafile=str(folder / "ca.crt"))
        pod_namespace = (folder / "namespace").read_text().strip()
    except OSError as error:
        raise CodeloopError(
            f"The pod's service account can't be read from {folder}: {error.strerror}."
        ) from error
    return ClusterAccess(
        url=f"https://{host}:{port}",
        namespace=namespace or pod_namespace,
        tls=tls,
        read_token=lambda: _read_token(folder / "token"),
    )


def read_kubeconfig(file: Path, context: str = "", namespace: str = "") -> ClusterAccess:
    """Return the access for a context of a kubeconfig ("": the current one).
    Raises CodeloopError.
    """
    import yaml

    try:
        config = msgspec.convert(yaml.safe_load(file.read_text()), _KubeConfig)
    except OSError as error:
        raise CodeloopError(
            f"{file} can't be read ({error.strerror}). KUBECONFIG names another file of a cluster's access."
        ) from error
    except (ValueError, yaml.YAMLError) as error:
        raise CodeloopError(f"{file} is not a kubeconfig: {error}") from error
    context_name = context or config.current_context
    entry = _find_entry(file, "context", context_name, config.contexts).context or {}
    cluster = _find_entry(file, "cluster", entry.get("cluster", ""), config.clusters).cluster or {}
    user: Mapping[str, Any] = {}
    # The user of a context is optional.
    if entry.get("user"):
        user = _find_entry(file, "user", entry["user"], config.users).user or {}
    url = str(cluster.get("server", "")).rstrip("/")
    if not url.startswith(("https://", "http://")):
        raise CodeloopError(
            f"The cluster of {context_name} in {file} has no `server` that is an address of HTTP."
        )
    try:
        tls = _make_tls(file.parent, cluster, user) if url.startswith("https://") else None
    except (OSError, SSLError, ValueError) as error:
        raise CodeloopError(
            f"A certificate or key of {context_name} in {file} can't be used: {error}"
        ) from error
    job_namespace = namespace or entry.get("namespace") or "default"
    read_token = _make_token_reader(file, context_name, user)
    return ClusterAccess(url=url, namespace=job_namespace, tls=tls, read_token=read_token)


def _find_entry(file: Path, kind: str, name: str, entries: tuple[_NamedEntry, ...]) -> _NamedEntry:
    """Return the entry with this name. `kind`: for errors.
    Raises CodeloopError if there is none.
    """
    for entry in entries:
        if entry.name == name:
            return entry
    raise CodeloopError(
        f"{file} has no {kind} {name!r}; it has {', '.join(entry.name for entry in entries) or 'none'}."
    )


def _make_token_reader(file: Path, context: str, user: Mapping[str, Any]) -> Callable[[], str]:
    """Return a function that returns the token of a user, "" for none.

    Raises CodeloopError for a user who signs in by a program or a password.
    """
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
    """Return the TLS settings of a cluster and a user.
    `folder`: of the kubeconfig, to which paths are relative.
    """
    authority = cluster.get("certificate-authority-data")
    text = base64.b64decode(authority, validate=True).decode() if authority else None
    authority_file = cluster.get("certificate-authority")
    tls = create_default_context(
        cafile=str(folder / authority_file) if authority_file else None, cadata=text
    )
    if cluster.get("insecure-skip-tls-verify") is True:
        tls.check_hostname, tls.verify_mode = False, CERT_NONE
    with ExitStack() as stack:
        certificate = _find_or_write_file(stack, folder, user, "client-certificate")
        key = _find_or_write_file(stack, folder, user, "client-key")
        if certificate is not None:
            # Without a password function, OpenSSL would ask for the password on the terminal.
            tls.load_cert_chain(certificate, key, lambda: "")
    return tls


def _find_or_write_file(
    stack: ExitStack, folder: Path, user: Mapping[str, Any], key: str
) -> Path | None:
    """Return a file with a certificate or key: that of the field `key`,
    or a new one with the data of `key`-data.
    """
    data = user.get(f"{key}-data")
    if data is not None:
        # OpenSSL loads a key from a file only. The temporary folder is readable by its owner only.
        file = Path(stack.enter_context(temporary_folder("codeloop-"))) / key
        file.write_bytes(base64.b64decode(str(data), validate=True))
        return file
    return folder / str(user[key]) if user.get(key) else None
