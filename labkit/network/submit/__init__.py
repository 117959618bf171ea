"""From one description of a job to a torchrun command or a Slurm script: ``labkit submit``."""
