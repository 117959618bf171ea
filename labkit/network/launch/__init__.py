"""How ranks come to be, report and end: processes, pipes, signals. Learners read `labkit.network.ranks`."""
