"""``labkit run FILE.py|.ipynb``: an unmodified numba.cuda script or notebook, on the emulator where there is no GPU."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

from labkit.compute.emulator.interop import as_numba
from labkit.errors import LabkitError

USAGE = """usage: labkit run FILE.py|FILE.ipynb [arguments]

Run a script, or a notebook's cells in order, with 'from numba import cuda' meaning the GPU where there is one and
labkit's emulator elsewhere. The exit status is the script's own; 1 after an error."""

_OWN = (str(Path(__file__).parent.parent) + os.sep, "<emulated ", "<frozen importlib")


def main(arguments: Sequence[str]) -> int:
    """Run the file that the arguments name; the rest of them are its own."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if arguments else 2
    path = Path(arguments[0])
    if path.suffix not in (".py", ".ipynb"):
        raise LabkitError(f"'{path}' is neither a script (.py) nor a notebook (.ipynb).")
    if not path.is_file():
        raise LabkitError(f"There is no file '{path}'.")
    module = _main_module(path, list(arguments))
    with as_numba():
        if path.suffix == ".ipynb":
            from labkit.compute.notebook_cells import run_notebook

            return run_notebook(path, module)
        return guarded(lambda: _execute(path, module))


def _main_module(path: Path, arguments: list[str]) -> ModuleType:
    """What Python sets up for a script: its arguments, its folder first on the path, and ``__main__``."""
    sys.argv = arguments
    sys.path.insert(0, str(path.resolve().parent))
    module = ModuleType("__main__")
    module.__file__ = str(path)
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    return module


def _execute(path: Path, module: ModuleType) -> None:
    exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)


def guarded(action: Callable[[], None]) -> int:
    """Run somebody's code; its errors are shown without labkit's own part of the traceback."""
    try:
        action()
    except SystemExit as leaving:
        return _status(leaving)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130
    except BaseException as error:
        sys.stdout.flush()
        print(shown(error), end="", file=sys.stderr)
        return 1
    return 0


def _status(leaving: SystemExit) -> int:
    if leaving.code is None or isinstance(leaving.code, int):
        return leaving.code or 0
    print(leaving.code, file=sys.stderr)
    return 1


def shown(error: BaseException) -> str:
    """An error as Python prints it, without the frames of labkit."""
    summary = traceback.TracebackException.from_exception(error)
    pending = [summary]
    while pending:
        part = pending.pop()
        part.stack = traceback.StackSummary.from_list(
            [f for f in part.stack if not f.filename.startswith(_OWN)]
        )
        pending += [p for p in (part.__cause__, part.__context__) if p is not None]
    return "".join(summary.format())
