"""Tool calls of an answer: what runs them, their contexts, and the rules that judge them."""
