"""The panel that asks the user: permissions and questions."""
