"""Training with torch: the one loop, its checkpoints, several processes, and losses."""
