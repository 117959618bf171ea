"""Many devices: how they are joined, and what they say to each other."""
