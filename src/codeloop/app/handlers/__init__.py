"""Handlers of operations: async functions that take the project and the operation's arguments.

Each is named in the row of its operation (`schema/api/`);
`app.dispatch` imports it for the first request.
"""
