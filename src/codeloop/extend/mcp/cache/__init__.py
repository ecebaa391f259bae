"""What is known of servers without starting any: definitions, cached listings, names of tools, last failures."""
