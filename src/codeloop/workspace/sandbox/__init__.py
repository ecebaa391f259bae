"""The sandbox that commands run in, and the launcher that starts them."""
