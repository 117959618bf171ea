"""The panel: real ipywidgets, real checks, and no second check from a double click."""

from __future__ import annotations

import threading
import time

import pytest
from course import bad_answers as bad

import labkit
from labkit.course import answers
from labkit.widgets import check_panel

pytest.importorskip("ipywidgets")


class Slow:
    """An exercise whose check takes as long as the test wants, and counts."""

    name = "99.slow"

    def __init__(self):
        self.gate = threading.Event()
        self.checks = 0
        self.problem = None

    def _repr_html_(self):
        return "<b>slow</b>"

    def check(self):
        self.checks += 1
        self.gate.wait(10)
        if self.problem:
            raise self.problem
        return labkit.exercise("01.claim").check(
            {"verdict": "true", "number": 1, "unit": "<u>", "left_out": "x"}
        )

    def hint(self):
        return labkit.exercise("01.claim").hint(1)

    solution = hint


@pytest.fixture
def slow():
    exercise = Slow()
    return exercise, check_panel.CheckPanel(exercise)


def test_a_double_click_starts_one_check(slow):
    exercise, panel = slow
    thread = panel.press("Check")
    assert panel.press("Check") is None
    assert panel.press("Hint") is None
    time.sleep(0.05)
    assert "checking 99.slow" in panel.shown
    assert all(button.disabled for button in panel.box.children[1].children)
    exercise.gate.set()
    thread.join(10)
    assert exercise.checks == 1
    assert "not the best verdict" in panel.shown
    assert not any(button.disabled for button in panel.box.children[1].children)


def test_clicks_from_many_threads_start_one_check(slow):
    exercise, panel = slow
    button = panel.box.children[1].children[0]
    clicks = [threading.Thread(target=button.click) for _ in range(8)]
    for click in clicks:
        click.start()
    for click in clicks:
        click.join(10)
    exercise.gate.set()
    for thread in threading.enumerate():
        if thread.name == "labkit Check":
            thread.join(10)
    assert exercise.checks == 1


def test_what_is_raised_is_shown_and_the_buttons_work_again(slow):
    exercise, panel = slow
    exercise.gate.set()
    exercise.problem = labkit.LabkitError("a <sentence>")
    panel.press("Check").join(10)
    assert "LabkitError: a &lt;sentence&gt;" in panel.shown
    exercise.problem = None
    panel.press("Hint").join(10)
    assert "hint 1 of" in panel.shown


def test_the_panel_checks_the_notebooks_answer(monkeypatch):
    monkeypatch.setattr(answers, "look_up", {"amdahl_limit": bad.right}.get)
    panel = check_panel.panel(labkit.exercise("01.amdahl"))
    assert check_panel.panel(labkit.exercise("01.amdahl")) is panel
    panel.press("Check").join(20)
    assert "✓ passed" in panel.shown
    assert "measured, on this machine's CPU; not judged" in panel.shown
    assert labkit.progress().passed == 1


def test_outside_jupyter_there_is_text_only():
    assert check_panel.view(labkit.exercise("01.saxpy")) == {}


KERNEL_CELLS = (
    'import labkit; ex = labkit.exercise("01.amdahl"); ex',
    "ex",
    "import numpy as np\ndef amdahl_limit(workers, seconds):\n    pass",
    "ex.check().outcome",
    "def helper(n):\n    return 1 - 1 / n",
    "%%time\ndef amdahl_limit(workers, seconds):\n    n = np.asarray(workers, float)\n"
    "    t = np.asarray(seconds, float) / seconds[0]\n    u = helper(n)\n"
    "    return (u @ u) / (u @ (t - 1 / n))",
    "ex.check().outcome",
    "del amdahl_limit\nex.check().message",
)


def test_in_a_real_kernel():
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    try:
        outputs = [run(client, code) for code in KERNEL_CELLS]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    first, second = outputs[0], outputs[1]
    view = "application/vnd.jupyter.widget-view+json"
    assert first["text/plain"] == repr(labkit.exercise("01.amdahl"))
    assert first[view]["model_id"] == second[view]["model_id"]
    assert outputs[3]["text/plain"] == "'not attempted'"
    assert outputs[6]["text/plain"] == "'passed'"
    assert "There is no 'amdahl_limit' yet" in outputs[7]["text/plain"]


def run(client, code):
    """The MIME bundle that a cell shows."""
    shown = {}

    def keep(message):
        if message["msg_type"] == "execute_result":
            shown.update(message["content"]["data"])
        assert message["msg_type"] != "error", message["content"]

    client.execute_interactive(code, output_hook=keep, timeout=60)
    return shown
