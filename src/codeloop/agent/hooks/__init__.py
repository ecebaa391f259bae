"""Extension hooks of a turn: requests, permissions, prompts, the end. Imported only when an extension has one."""
