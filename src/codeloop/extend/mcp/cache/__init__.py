"""What is known of servers without one being started: definitions, listings, the last failures."""
