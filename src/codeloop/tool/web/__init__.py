"""Web access of tools: fetching pages from checked addresses, converting them,
and asking search services.
"""
