"""Permission requests and questions of a session: who asks, how they are worded,
and how MCP forms ask them.
"""
