"""Where the notebooks are: inside an installed package, or beside it in a clone of the repository."""

from __future__ import annotations

from pathlib import Path

import labkit
from labkit.errors import LabkitError


def lessons_root() -> Path:
    """The folder that holds ``notebooks/``, ``exercises/`` and ``solutions/``.

    A wheel carries them in ``labkit/course/files/``; a clone has them at its top, beside ``pyproject.toml``.

    Raises
    ------
    LabkitError
        When neither is there, for example after copying ``labkit/`` alone.
    """
    package = Path(labkit.__file__).resolve().parent
    if (inside := package / "course" / "files").is_dir():
        return inside
    if (package.parent / "pyproject.toml").is_file() and (package.parent / "notebooks").is_dir():
        return package.parent
    raise LabkitError(
        f"the lessons are missing from {package}: install the package again ('pip install gpu-labkit[lab]')"
    )


def notebooks(part: str) -> list[Path]:
    """The notebooks of one part (``"notebooks"``, ``"exercises"`` or ``"solutions"``), in lesson order."""
    return sorted((lessons_root() / part).glob("*.ipynb"))


def notebook(part: str, lesson: str) -> Path:
    """The notebook of a lesson, given by its number (``"01"``) or its name (``"01_cpu_vs_gpu"``).

    Raises
    ------
    LabkitError
        When there is no such lesson in that part.
    """
    for path in notebooks(part):
        if path.stem == lesson or path.stem.split("_")[0] == lesson:
            return path
    known = ", ".join(path.stem for path in notebooks(part)) or "none yet"
    raise LabkitError(f"there is no lesson '{lesson}' in {part}/; there are: {known}")
