"""Training: objectives, optimisers, checkpoints and the uncertainty from simulation."""
