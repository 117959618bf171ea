"""How ranks come to be, report and end: processes, pipes, signals. Learners read `labkit.network.ranks`."""

import sys

from labkit.errors import LabkitError

if sys.platform == "win32":
    raise LabkitError("Ranks need Linux or macOS: on Windows, run the notebook inside WSL2.")
