"""Whom TLS connections trust."""

import os
import sys
from functools import cache
from ssl import SSLContext, create_default_context

AUTHORITIES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")


@cache
def tls_context() -> SSLContext:
    """Return the one TLS context (20 ms to make): the system's authorities, or those that SSL_CERT_FILE names."""
    if sys.platform != "linux":
        import httpx2

        return httpx2.create_ssl_context()
    context = create_default_context()
    if not context.cert_store_stats()["x509_ca"] and (found := next(filter(os.path.isfile, AUTHORITIES), None)):
        context.load_verify_locations(found)
    return context
