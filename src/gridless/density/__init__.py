"""Densities p(theta | x): bases, mixtures and the network that gives them."""
