"""The model: a trained network with all that belongs to it, and its file."""
