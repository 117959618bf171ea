"""The photograph of the image lessons: a real one, found on disk, with no network and no image library.

It is "camera" of the PyWavelets package: 512 x 512 grey pixels by Lav Varshney, given to the public domain
(CC0).
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np

from labkit.errors import LabkitError


def photograph() -> np.ndarray:
    """Return the photograph as an array of shape (512, 512), dtype uint8, 0 black to 255 white.

    Only the data file is read; PyWavelets itself is never imported.

    Raises
    ------
    LabkitError
        When the package, or the file in it, is not there.
    """
    spec = importlib.util.find_spec("pywt")
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        path = Path(folder) / "data" / "camera.npz"
        if path.is_file():
            with np.load(path, allow_pickle=False) as archive:
                return np.asarray(archive["data"], dtype=np.uint8)
    raise LabkitError(
        "The photograph comes with PyWavelets, which is not here: pip install 'gpu-labkit[lab]'."
    )
