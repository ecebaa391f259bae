"""Code shared by the adapters of all protocols: the HTTP exchange, encoding, reading of answers,
errors of services.
"""
