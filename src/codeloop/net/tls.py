"""Makes TLS contexts: which certificate authorities are trusted,
and the client certificate for services.
"""

import os
import sys
from functools import cache
from ssl import SSLContext, SSLError, create_default_context

from codeloop.schema.errors import CodeloopError

# Debian and Ubuntu, Fedora and Red Hat, Alpine.
AUTHORITY_FILES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
)
EXTRA_AUTHORITIES_VARIABLE = "NODE_EXTRA_CA_CERTS"
"""The variable with a file of further authorities;
other tools read it too, so that one setting serves all.
"""
CLIENT_CERTIFICATE_VARIABLE = "CODELOOP_CLIENT_CERT"
CLIENT_KEY_VARIABLE = "CODELOOP_CLIENT_KEY"
CLIENT_KEY_UNLOCK_VARIABLE = "CODELOOP_CLIENT_KEY_PASSPHRASE"


@cache
def load_tls_context() -> SSLContext:
    """Return the TLS context for any server (20 ms to make).
    Raises CodeloopError: a file can't be used.

    Trusted are the system's authorities, or those of SSL_CERT_FILE and SSL_CERT_DIR,
    and those of NODE_EXTRA_CA_CERTS.
    """
    return _make_context()


@cache
def load_service_tls_context() -> SSLContext:
    """Return the TLS context for services of the configuration.
    Raises CodeloopError: a file can't be used.

    It presents the client certificate of CODELOOP_CLIENT_CERT to services that ask for one.
    `load_tls_context` doesn't, since that would tell web pages who visits them.
    """
    certificate = os.environ.get(CLIENT_CERTIFICATE_VARIABLE)
    if not certificate:
        return load_tls_context()
    context = _make_context()
    key, passphrase = (
        os.environ.get(CLIENT_KEY_VARIABLE) or None,
        os.environ.get(CLIENT_KEY_UNLOCK_VARIABLE, ""),
    )
    try:
        # Without this function OpenSSL would ask for the passphrase on the terminal.
        context.load_cert_chain(certificate, key, lambda: passphrase)
    except (OSError, SSLError) as error:
        raise _make_unusable_error(
            f"{CLIENT_CERTIFICATE_VARIABLE} ({certificate})", error
        ) from None
    return context


def _make_context() -> SSLContext:
    if sys.platform == "linux":
        context = create_default_context()
        # The OpenSSL of a portable Python looks in folders that don't exist here: try
        # those of the distributions.
        if not context.cert_store_stats()["x509_ca"]:
            authorities = next(filter(os.path.isfile, AUTHORITY_FILES), None)
            if authorities is not None:
                context.load_verify_locations(authorities)
    else:
        # macOS and Windows keep their authorities in a store, not in files; httpx2 reads it.
        import httpx2

        context = httpx2.create_ssl_context()
    if extra := os.environ.get(EXTRA_AUTHORITIES_VARIABLE):
        try:
            context.load_verify_locations(extra)
        except (OSError, SSLError) as error:
            raise _make_unusable_error(f"{EXTRA_AUTHORITIES_VARIABLE} ({extra})", error) from None
    return context


def _make_unusable_error(what: str, error: Exception) -> CodeloopError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return CodeloopError(f"{what} can't be used: {reason}. Correct the variable, or unset it.")
