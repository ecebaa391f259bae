"""Language servers: which there are, our client, and what an edit brought. Imports nothing of the rooms beside it."""
