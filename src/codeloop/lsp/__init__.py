"""Language servers: their table, our client, and new diagnostics after edits.
Imports no room of its own floor.
"""
