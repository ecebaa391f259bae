"""What is known of servers without starting any: cached listings, names of tools, last failures."""
