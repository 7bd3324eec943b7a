"""The review: twelve questions of a statistics committee, each with a computed answer."""
