"""The live plot in a real kernel: what is sent, when it is sent, and that nothing is left behind."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import pytest
from support.kernel import Kernel, customs, histories, is_idle, opened, samples

START = "import labkit\nmon = labkit.monitor(0.1)\nmon"
# The rule of 30 s, made short enough to wait for.
IMPATIENT = "from labkit.widgets import monitor_delivery\nmonitor_delivery.SILENCE = 1.5"
THREADS = "[t.name for t in __import__('threading').enumerate() if t.name == 'labkit-sampler']"
WIDGETS = "set(__import__('ipywidgets').widgets.widget._instances)"  # what ipywidgets keeps alive


@pytest.fixture(scope="module")
def running(require: Callable[..., None]) -> Iterator[Kernel]:
    require("lab")
    with Kernel() as kernel:
        kernel.run("import gc, time")
        yield kernel


@pytest.fixture
def kernel(running: Kernel) -> Iterator[Kernel]:
    """The kernel, without monitors of earlier tests."""
    running.run("%reset -f\nimport gc, time\ngc.collect()\ntime.sleep(0.3)")
    yield running
    running.run("from labkit.widgets import monitor_delivery\nmonitor_delivery.SILENCE = 30.0")


def start(kernel: Kernel, code: str = START) -> str:
    return str(opened(kernel.run(code))["content"]["comm_id"])


def test_text_is_one_deterministic_line_beside_the_view(kernel: Kernel) -> None:
    (result,) = [m for m in kernel.run(START) if m["msg_type"] == "execute_result"]
    data = result["content"]["data"]
    assert data["text/plain"] == "labkit monitor (live plot of this machine and of your own metrics)"
    assert set(data) == {"text/plain", "text/html", "application/vnd.jupyter.widget-view+json"}
    assert "print(mon)" in data["text/html"]  # for pages that cannot show widgets


def test_samples_arrive_while_a_cell_runs_and_nothing_is_printed(kernel: Kernel) -> None:
    comm = start(kernel)
    seen = kernel.run("end = time.time() + 1.5\nwhile time.time() < end: pass")
    assert len(samples(seen, comm)) >= 8
    assert {m["msg_type"] for m in seen} == {"status", "execute_input", "comm_msg"}
    for message in seen:
        # A parent of an older cell would make a front end file the message there.
        assert message["parent_header"]["msg_id"] == seen[-1]["parent_header"]["msg_id"]


def test_sample_of_eight_series_takes_at_most_200_bytes(kernel: Kernel) -> None:
    comm = start(kernel, START + "\nfor name in 'abcdefgh': mon.metric(name, 1.5)\nmon")
    kernel.say(comm, hello=1)
    message = samples(kernel.listen(1.0), comm)[-1]
    _, count, _ = message["content"]["data"]["content"]
    assert count >= 8
    row = len(bytes(message["buffers"][0]))
    eight = 8 + 4 * 8  # a time, and the eight of the test; the machine's own series come on top
    kernel.run("from labkit.widgets import monitor_wire")
    assert row == kernel.value(f"monitor_wire.row_type(mon.recording.series[:{count}]).itemsize")
    assert row - eight <= 4 * (count - 8)
    assert len(json.dumps(message["content"])) + eight <= 200


def test_sample_carries_only_what_is_new(kernel: Kernel) -> None:
    comm = start(kernel)
    numbers = [m["content"]["data"]["content"][0] for m in samples(kernel.listen(1.0), comm)]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    updates = [m for m in kernel.listen(1.0) if m["content"].get("data", {}).get("method") == "update"]
    assert updates == []


def test_without_acknowledgement_sending_pauses_and_a_view_brings_the_history(kernel: Kernel) -> None:
    kernel.run(IMPATIENT)
    comm = start(kernel)
    kernel.listen(3.0)
    assert customs(kernel.listen(1.0), comm) == []
    assert kernel.value("mon.widget.paused") is True
    kernel.say(comm, hello=1)
    after = kernel.listen(0.8)
    (history,) = histories(after, comm)
    number, count, _ = history["content"]["data"]["content"]["history"]
    row = len(bytes(history["buffers"][0])) / number
    assert number >= 35  # also the samples taken while nothing was sent
    assert 8 + count <= row <= 8 + 4 * count
    assert len(samples(after, comm)) >= 3


def test_acknowledgements_keep_samples_coming(kernel: Kernel) -> None:
    kernel.run(IMPATIENT)
    comm = start(kernel)
    for _ in range(4):
        seen = samples(kernel.listen(1.0), comm)
        number, _, heard = seen[-1]["content"]["data"]["content"]
        kernel.say(comm, ack=number)
    assert len(seen) >= 6
    assert 0 < heard < number
    assert not histories(kernel.listen(0.3), comm)


def test_long_cell_does_not_count_as_silence(kernel: Kernel) -> None:
    """Acknowledgements wait behind a running cell; the plot must go on through four times the limit."""
    kernel.run(IMPATIENT)
    comm = start(kernel)
    request = kernel.send("end = time.time() + 6\nwhile time.time() < end: pass")
    kernel.say(comm, ack=1)  # read by the kernel when the cell has ended
    seen = kernel.listen(20, until=lambda message: is_idle(message, request))
    assert len(samples(seen, comm)) >= 45
    assert len(samples(kernel.listen(1.0), comm)) >= 6


def test_busy_kernel_without_any_sign_is_given_up_in_the_end(kernel: Kernel) -> None:
    kernel.run(IMPATIENT + "\nmonitor_delivery.BUSY_LIMIT = 3.0")
    comm = start(kernel)
    request = kernel.send("time.sleep(6)")
    seen = kernel.listen(20, until=lambda message: is_idle(message, request))
    kernel.run("monitor_delivery.BUSY_LIMIT = 1800.0")
    assert 20 <= len(samples(seen, comm)) <= 40


def test_stopped_monitor_still_shows_its_history_to_a_new_view(kernel: Kernel) -> None:
    comm = start(kernel)
    kernel.run("time.sleep(0.5)\nmon.stop()")
    kernel.listen(0.5)
    kernel.say(comm, hello=1)
    seen = kernel.listen(0.5)
    assert len(histories(seen, comm)) == 1
    assert samples(seen, comm) == []


def test_spans_travel_once_opened_and_once_closed(kernel: Kernel) -> None:
    comm = start(kernel)
    code = "time.sleep(0.25)\nwith mon.span('long'): time.sleep(0.6)\nwith mon.span('brief'): pass\ntime.sleep(0.3)"
    seen = samples(kernel.run(code), comm)
    told = [span for m in seen for span in (m["content"]["data"]["content"] + [[]])[3]]
    assert [(name, end is None) for _, name, _, end in told] == [
        ("long", True),
        ("long", False),
        ("brief", False),
    ]


def test_storm_of_spans_is_thinned_out_for_the_view_and_recorded_whole(kernel: Kernel) -> None:
    comm = start(kernel)
    code = "end = time.time() + 0.6\nn = 0\nwhile time.time() < end:\n    with mon.span('tiny'): n += 1"
    seen = samples(kernel.run(code), comm)
    assert max(len(json.dumps(m["content"])) for m in seen) < 6000
    assert kernel.value("len(mon.recording.spans) == min(n, 4096) and n > 1000") is True


def test_running_the_cell_again_stops_the_monitor_it_made_before(kernel: Kernel) -> None:
    cell = "import labkit\nmon = labkit.monitor(0.1)\nother = labkit.monitor(0.1)\nboth.append((mon, other))"
    kernel.run("both = []")
    for _ in range(3):
        kernel.run(cell, cell="one")
    kernel.run("mon2 = labkit.monitor(0.1)", cell="two")
    assert kernel.value("[(a.running, b.running) for a, b in both]") == [(False, False)] * 2 + [(True, True)]
    assert kernel.value(THREADS) == ["labkit-sampler"]
    kernel.run("del both, mon, other, mon2")


def test_deleted_monitor_leaves_no_widget_and_no_thread(kernel: Kernel) -> None:
    before = kernel.value(WIDGETS)
    comm = start(
        kernel, "import labkit\nfrom IPython.display import display\nmon = labkit.monitor(0.1)\ndisplay(mon)"
    )
    assert kernel.value(THREADS) == ["labkit-sampler"]
    seen = kernel.run("del mon\ngc.collect()\ntime.sleep(0.4)")
    assert comm in [m["content"]["comm_id"] for m in seen if m["msg_type"] == "comm_close"]
    assert kernel.value(WIDGETS) - before == set()
    assert kernel.value(THREADS) == []


def test_widget_closed_by_hand_is_made_anew_when_shown_again(kernel: Kernel) -> None:
    first = start(kernel)
    kernel.run("import ipywidgets\nipywidgets.Widget.close_all()\ntime.sleep(0.3)")
    second = start(kernel, "mon")
    assert second != first
    assert len(samples(kernel.listen(1.0), second)) >= 5


def test_kernel_interrupt_leaves_the_plot_running(kernel: Kernel) -> None:
    comm = start(kernel)
    request = kernel.send("time.sleep(30)")
    time.sleep(0.5)
    kernel.manager.interrupt_kernel()
    seen = kernel.listen(10, until=lambda message: is_idle(message, request))
    assert [m["content"]["ename"] for m in seen if m["msg_type"] == "error"] == ["KeyboardInterrupt"]
    assert len(samples(kernel.listen(1.0), comm)) >= 6


def test_nonsense_from_a_view_is_ignored(kernel: Kernel) -> None:
    comm = start(kernel)
    for content in ({"ack": "many"}, {"ack": None}, {}, {"hello": []}):
        kernel.say(comm, **content)
    assert len(samples(kernel.listen(1.0), comm)) >= 5
    assert kernel.value("mon.running") is True


def test_restarted_kernel_starts_clean_and_quickly(kernel: Kernel) -> None:
    start(kernel)
    started = time.monotonic()
    kernel.manager.restart_kernel()
    kernel.client.wait_for_ready(timeout=60)
    assert time.monotonic() - started < 20
    kernel.run("import gc, time")
    comm = start(kernel)
    assert len(samples(kernel.listen(1.0), comm)) >= 5


def test_without_anywidget_a_sentence_and_a_recording(kernel: Kernel) -> None:
    hide = "import labkit.widgets.live_plot as m\nreal, m._has_anywidget = m._has_anywidget, lambda: False"
    seen = kernel.run(f"{hide}\n{START}")
    kernel.run("time.sleep(0.4)\nm._has_anywidget = real")
    (result,) = [m for m in seen if m["msg_type"] == "execute_result"]
    assert "anywidget is not installed" in result["content"]["data"]["text/plain"]
    assert list(result["content"]["data"]) == ["text/plain", "text/html"]
    assert "CPU" in kernel.value("str(mon)")
    assert kernel.value("len(mon.figure().data) > 0") is True
