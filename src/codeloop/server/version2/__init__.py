"""`/api/*`: the contract of version 2, translated to the operations of version 1.

Loaded with the first request for it.
"""
