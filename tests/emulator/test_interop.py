"""numba's names resolved to the emulator, and put back; ``labkit run`` on scripts and notebooks."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import labkit
from labkit import hardware
from labkit.compute.emulator import EmulatedKernel, interop
from labkit.compute.run import main

BLOCK = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""


def python(code, *arguments, without=()):
    """Run code in a fresh interpreter that lacks some packages."""
    text = BLOCK.format(names=tuple(without)) + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", text, *map(str, arguments)], capture_output=True, text=True, timeout=60
    )


def in_a_fresh_interpreter(code, without=()):
    done = python(code, without=without)
    assert done.returncode == 0, done.stderr


EVERY_IMPORT = """
    import labkit
    with labkit.as_numba():
        import numba
        import numba.cuda
        import numba.cuda.random
        from numba import boolean, cuda, float32, guvectorize, int32, jit, njit, prange, types, vectorize, void
        from numba.core.errors import NumbaPerformanceWarning
        from numba.cuda import grid, jit as cuda_jit, libdevice, types as cuda_types
        from numba.cuda.cudadrv.devicearray import DeviceNDArray
        from numba.cuda.kernels.reduction import Reduce
        from numba.cuda.libdevice import fast_cosf
        from numba.cuda.random import create_xoroshiro128p_states
        assert numba.cuda is cuda
        assert "emulated" in repr(cuda.to_device([1.0]))
        assert isinstance(cuda.to_device([1.0]), DeviceNDArray)
        assert cuda_types.float32(1.5) == types.float32(1.5) == 1.5
"""


@pytest.mark.parametrize("without", [(), ("numba", "numba_cuda")], ids=["numba", "no-numba"])
def test_every_way_to_import(without):
    in_a_fresh_interpreter(EVERY_IMPORT, without)


def test_without_numba_nothing_of_it_is_left_afterwards():
    in_a_fresh_interpreter(
        """
        import labkit
        with labkit.as_numba():
            from numba import cuda, float32
            assert float32(0.1) == 0.10000000149011612
        assert not [name for name in sys.modules if name.split(".")[0] == "numba"]
        try:
            import numba
        except ImportError:
            pass
        else:
            raise AssertionError
        """,
        ("numba", "numba_cuda"),
    )


def test_without_numba_njit_runs_as_plain_python_and_says_so():
    in_a_fresh_interpreter(
        """
        import warnings
        import labkit
        with labkit.as_numba(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            from numba import njit, vectorize
            @njit("float64(float64)", parallel=True)
            def half(x):
                return x / 2
            @vectorize(["float64(float64)"])
            def double(x):
                return x * 2
        assert "numba is not installed" in str(caught[0].message)
        assert half(3) == 1.5 and double([1, 2]).tolist() == [2, 4]
        """,
        ("numba", "numba_cuda"),
    )


def test_numba_is_not_imported_for_it():
    in_a_fresh_interpreter(
        """
        import labkit
        with labkit.as_numba():
            import labkit.compute.emulator.api
            assert "numba" not in sys.modules
        """
    )


def test_the_real_numba_cuda_comes_back(require):
    require("compiler")
    import numba
    import numba.cuda

    real, real_random = numba.cuda, importlib.import_module("numba.cuda.random")
    with labkit.as_numba():
        from numba import cuda, njit

        assert numba.cuda is cuda is not real
        assert isinstance(cuda.jit(lambda_free), EmulatedKernel)
        assert njit is numba.njit
        assert importlib.import_module("numba.cuda.random") is not real_random
        with labkit.as_numba():
            assert importlib.import_module("numba.cuda") is cuda
        assert importlib.import_module("numba.cuda") is cuda
    assert numba.cuda is real is sys.modules["numba.cuda"]
    assert sys.modules["numba.cuda.random"] is real_random


def lambda_free(out):
    out[0] = 1


def test_numbas_own_decorators_reach_the_emulator_and_forget_it(require):
    require("compiler")
    import numba

    for _ in range(2):
        with labkit.as_numba():
            add = numba.vectorize(["float64(float64, float64)"], target="cuda")(lambda a, b: a + b)
            assert "emulated" in repr(add)
            assert add(np.ones(3), 1.0).tolist() == [2, 2, 2]
            rows = numba.guvectorize(["void(float64[:], float64[:])"], "(n)->(n)", target="cuda")(first)
            assert rows(np.arange(3.0)).tolist() == [0, 0, 0]
        registry = numba.np.ufunc.decorators.Vectorize.target_registry
        assert registry["cuda"].__module__ == "numba.cuda.vectorizers"


def first(row, out):
    for k in range(row.shape[0]):
        out[k] = row[0]


def test_an_error_inside_the_block_puts_things_back():
    before = list(sys.meta_path)
    with pytest.raises(ZeroDivisionError), labkit.as_numba():
        raise ZeroDivisionError
    assert sys.meta_path == before


def test_on_a_gpu_machine_nothing_changes(monkeypatch):
    monkeypatch.setattr(hardware, "backend", lambda: "gpu")
    before = list(sys.meta_path)
    with labkit.as_numba():
        assert sys.meta_path == before


def test_the_extension_holds_until_it_is_unloaded():
    before = list(sys.meta_path)
    labkit.load_ipython_extension(None)
    labkit.load_ipython_extension(None)
    try:
        assert importlib.import_module("numba.cuda").__class__ is interop.Door
    finally:
        labkit.unload_ipython_extension(None)
    assert sys.meta_path == before
    labkit.unload_ipython_extension(None)


def test_names_the_emulator_lacks_are_named():
    with labkit.as_numba():
        cuda = importlib.import_module("numba.cuda")
        with pytest.raises(AttributeError, match="no attribute 'warp_drive'"):
            _ = cuda.warp_drive
        with pytest.raises(ImportError, match="warp_drive"):
            from numba.cuda import warp_drive  # noqa: F401
        with pytest.raises(ImportError, match=r"emulator has no module 'numba\.cuda\.warp_drive'"):
            importlib.import_module("numba.cuda.warp_drive")


# -- labkit run ------------------------------------------------------------------------------------------------------

SCRIPT = """
import sys
import numpy as np
from numba import cuda
from helper import NUMBER

@cuda.jit
def fill(out):
    out[cuda.grid(1)] = NUMBER

out = np.zeros(3)
fill[1, int(sys.argv[1])](out)
print(out.sum(), __name__, sys.argv[2:])
sys.exit(int(sys.argv[2]))
"""


@pytest.fixture
def run(tmp_path, capfd, monkeypatch):
    """``labkit run`` on a text, in this process; returns status, output and errors."""

    def go(name, text, *arguments):
        (tmp_path / "helper.py").write_text("NUMBER = 7\n")
        (tmp_path / name).write_text(text)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", sys.argv)
            patch.setattr(sys, "path", list(sys.path))
            patch.setitem(sys.modules, "__main__", sys.modules["__main__"])
            status = main([str(tmp_path / name), *arguments])
        sys.modules.pop("helper", None)
        return status, *capfd.readouterr()

    return go


def test_a_script_gets_its_arguments_its_folder_and_its_exit_status(run):
    status, out, err = run("fill.py", SCRIPT, "3", "5")
    assert (status, err) == (5, "")
    assert out == "21.0 __main__ ['5']\n"


def test_a_scripts_errors_are_shown_without_labkits_internals(run):
    status, out, err = run("fill.py", SCRIPT, "4", "0")
    assert (status, out) == (1, "")
    assert "out-of-bounds" not in err
    assert "KernelError: Kernel 'fill', line 9" in err
    assert err.count("File ") == 1
    assert 'fill.py", line 12' in err


@pytest.mark.parametrize(
    ("text", "status"),
    [("", 0), ("raise SystemExit('no')", 1), ("raise KeyboardInterrupt", 130), ("1 / 0", 1), ("x = (", 1)],
)
def test_exit_statuses(run, text, status):
    assert run("script.py", text)[0] == status


@pytest.mark.parametrize(
    ("name", "words"), [("absent.py", "There is no file"), ("data.csv", "neither a script")]
)
def test_files_that_cannot_be_run(name, words):
    with pytest.raises(labkit.LabkitError, match=words):
        main([name])


def test_a_file_that_is_no_notebook(run):
    with pytest.raises(labkit.LabkitError, match="not a Jupyter notebook"):
        run("broken.ipynb", "{}")


def notebook(*cells):
    made = [{"cell_type": "code", "source": c, "metadata": {}, "outputs": []} for c in cells]
    text = {"cell_type": "markdown", "source": ["# Title"], "metadata": {}}
    return json.dumps({"cells": [text, *made], "nbformat": 4, "nbformat_minor": 5, "metadata": {}})


CELLS = notebook(
    "%matplotlib inline\nimport numpy as np\nfrom numba import cuda",
    "",
    "%%time\n@cuda.jit\ndef fill(out):\n    out[cuda.grid(1)] = 5\n",
    "out = np.zeros(3)\nfill[1, 3](out)\nprint(out)\n6 * 7",
    "out.sum();",
    "fill[1, 4](out)",
    "print('never')",
)
RUN = "from labkit.cli import main\nsys.exit(main(['run', *sys.argv[1:]]))"


@pytest.mark.parametrize(
    "without", [("numba", "numba_cuda"), ("numba", "numba_cuda", "IPython")], ids=["ipython", "plain"]
)
def test_a_notebooks_cells_run_in_order_up_to_the_first_error(tmp_path, without):
    if "IPython" not in without:
        pytest.importorskip("IPython")
    path = tmp_path / "fill.ipynb"
    path.write_text(CELLS)
    done = python(RUN, path, without=without)
    shown = done.stdout + done.stderr
    assert done.returncode == 1
    assert "[5. 5. 5.]" in done.stdout
    assert "42" in done.stdout
    assert "15.0" not in done.stdout
    assert "KernelError: Kernel 'fill', line 4" in shown
    assert "(in code cell 6 of fill.ipynb)" in done.stderr
    assert "labkit/compute" not in shown
    assert "never" not in shown


@pytest.mark.parametrize("line", ["!ls", "%timeit 1", "%%bash"])
def test_without_ipython_other_magics_are_named(tmp_path, line):
    path = tmp_path / "magic.ipynb"
    path.write_text(notebook("1 \\\n% 2", line))
    done = python(RUN, path, without=("IPython",))
    assert done.returncode == 2
    assert f"Code cell 2 uses '{line.split()[0]}'" in done.stderr


def test_a_notebook_may_end_itself(tmp_path):
    path = tmp_path / "end.ipynb"
    path.write_text(notebook("import sys\nsys.exit(3)", "print('never')"))
    for without in ((), ("IPython",)):
        done = python(RUN, path, without=without)
        assert (done.returncode, "never" in done.stdout) == (3, False)
