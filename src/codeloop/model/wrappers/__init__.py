"""Models that wrap another one: they repeat failed requests, or limit how many are sent at once."""
