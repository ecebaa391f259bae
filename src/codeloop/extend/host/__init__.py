"""Extension hosts: processes, one for each language and confinement, that run extensions;
their small protocol.
"""
