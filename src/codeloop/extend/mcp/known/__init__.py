"""What is known of servers without one being started: definitions, what they offered, what was agreed to."""
