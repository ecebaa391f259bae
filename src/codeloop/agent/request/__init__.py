"""What a request to the model is made of."""
