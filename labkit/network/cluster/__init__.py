"""Virtual machines on this one, joined by links of a chosen speed: `labkit.cluster`.

From the ground up: `plan` and `topologies` say what is to be built, `shaping`, `kernel` and `build` build it,
`keeper` holds it, `handle` talks to the keeper, `run` has torchrun start ranks in the nodes, `machine` is what a
learner holds.
"""

import sys

from labkit.errors import LabkitError

if sys.platform == "win32":
    raise LabkitError("Virtual clusters need Linux: on Windows, run the notebook inside WSL2.")
