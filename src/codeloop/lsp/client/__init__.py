"""A client of the language server protocol: messages over pipes, document synchronisation,
diagnostics.
"""
