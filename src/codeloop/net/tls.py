"""TLS contexts: which certificate authorities are trusted, and the client certificate."""

import os
import sys
from functools import cache
from ssl import SSLContext, SSLError, create_default_context

from codeloop.schema.errors import CodeloopError

AUTHORITIES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
EXTRA_AUTHORITIES = "NODE_EXTRA_CA_CERTS"
"""The variable with a file of further authorities; other tools read it too, so that one setting serves all."""
CLIENT_CERTIFICATE = "CODELOOP_CLIENT_CERT"
CLIENT_KEY = "CODELOOP_CLIENT_KEY"
CLIENT_UNLOCK = "CODELOOP_CLIENT_KEY_PASSPHRASE"


@cache
def tls_context() -> SSLContext:
    """Return the TLS context for any server (20 ms to make). Raises CodeloopError: a file can't be used.

    Trusted are the system's authorities, or those of SSL_CERT_FILE and SSL_CERT_DIR, and those of NODE_EXTRA_CA_CERTS.
    """
    return _make_context()


@cache
def service_tls_context() -> SSLContext:
    """Return the TLS context for services of the configuration. Raises CodeloopError: a file can't be used.

    It presents the client certificate of CODELOOP_CLIENT_CERT to services that ask for one. `tls_context` does not,
    since that would tell web pages who visits them.
    """
    certificate = os.environ.get(CLIENT_CERTIFICATE)
    if not certificate:
        return tls_context()
    context = _make_context()
    key, passphrase = os.environ.get(CLIENT_KEY) or None, os.environ.get(CLIENT_UNLOCK, "")
    try:
        # Without this function OpenSSL would ask for the passphrase on the terminal.
        context.load_cert_chain(certificate, key, lambda: passphrase)
    except (OSError, SSLError) as error:
        raise _unusable(f"{CLIENT_CERTIFICATE} ({certificate})", error) from None
    return context


def _make_context() -> SSLContext:
    if sys.platform == "linux":
        context = create_default_context()
        if not context.cert_store_stats()["x509_ca"] and (
            certificates := next(filter(os.path.isfile, AUTHORITIES), None)
        ):
            context.load_verify_locations(certificates)
    else:  # there the system's authorities are not in files
        import httpx2

        context = httpx2.create_ssl_context()
    if extra := os.environ.get(EXTRA_AUTHORITIES):
        try:
            context.load_verify_locations(extra)
        except (OSError, SSLError) as error:
            raise _unusable(f"{EXTRA_AUTHORITIES} ({extra})", error) from None
    return context


def _unusable(what: str, error: Exception) -> CodeloopError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return CodeloopError(f"{what} can't be used: {reason}. Correct the variable, or unset it.")
