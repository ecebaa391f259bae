"""Where extensions take part in a turn: requests, permissions, prompts, the end. Loaded only when one wants to."""
