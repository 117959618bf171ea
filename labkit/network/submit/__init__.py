"""From one description of a job to a torchrun command, a Slurm script or a Kubernetes manifest: ``labkit submit``."""
