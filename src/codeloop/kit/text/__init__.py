"""What is done to a text: cut where it is long, rendered as a terminal does, cleared of secrets."""
