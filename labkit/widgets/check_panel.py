"""Three buttons under an exercise: Check, Hint, Solution. One panel an exercise, however often it is shown.

The panel knows an exercise only by its ``name``, ``_repr_html_``, ``check``, ``hint`` and ``solution``. A
check runs on a thread of its own, so the notebook goes on meanwhile; further presses are ignored until it has
ended. Front ends may call the buttons from any thread, hence the lock.
"""

from __future__ import annotations

import html
import threading
from typing import Any, Protocol

_MIME = "application/vnd.jupyter.widget-view+json"


class Checkable(Protocol):
    """What a panel needs of an exercise."""

    @property
    def name(self) -> str: ...

    def _repr_html_(self) -> str: ...

    def check(self) -> Any: ...

    def hint(self) -> Any: ...

    def solution(self) -> Any: ...


_panels: dict[str, CheckPanel] = {}
_lock = threading.Lock()


def panel(exercise: Checkable) -> CheckPanel:
    """The panel of this exercise, made at the first call. ImportError where ipywidgets is not installed."""
    with _lock:
        if exercise.name not in _panels:
            _panels[exercise.name] = CheckPanel(exercise)
        return _panels[exercise.name]


def view(exercise: Checkable) -> dict[str, Any]:
    """The panel's entry of a MIME bundle; empty outside Jupyter, so that the exercise's own text is shown."""
    if not _in_jupyter():
        return {}
    try:
        model = panel(exercise).box.model_id
    except ImportError:
        return {}
    return {_MIME: {"version_major": 2, "version_minor": 0, "model_id": model}}


def _in_jupyter() -> bool:
    try:
        return hasattr(get_ipython(), "kernel")  # type: ignore[name-defined]
    except NameError:
        return False


class CheckPanel:
    """The buttons and the place where results appear; :attr:`box` is the widget."""

    def __init__(self, exercise: Checkable) -> None:
        import ipywidgets

        self.exercise = exercise
        self._busy = threading.Lock()
        self._buttons = {
            text: ipywidgets.Button(description=text, tooltip=tooltip, icon=icon)
            for text, tooltip, icon in (
                ("Check", f"Check your answer to {exercise.name}", "check"),
                ("Hint", "Show the next hint", "lightbulb-o"),
                ("Solution", "Show a solution, once your answer passes or when asked twice", "eye"),
            )
        }
        self._result = ipywidgets.HTML()
        for text, button in self._buttons.items():
            button.on_click(lambda _, text=text: self.press(text))
        row = ipywidgets.HBox(list(self._buttons.values()))
        self.box = ipywidgets.VBox([ipywidgets.HTML(exercise._repr_html_()), row, self._result])

    @property
    def shown(self) -> str:
        """The HTML in the result area."""
        return self._result.value

    def press(self, button: str) -> threading.Thread | None:
        """Begin what a button does on a thread, and return it; None while an earlier press is at work."""
        if not self._busy.acquire(blocking=False):
            return None
        thread = threading.Thread(target=self._work, args=(button,), daemon=True, name=f"labkit {button}")
        try:
            thread.start()
        except RuntimeError:  # the interpreter is ending, or no thread can be had
            self._busy.release()
            raise
        return thread

    def _work(self, button: str) -> None:
        action = {"Check": self._check, "Hint": self.exercise.hint, "Solution": self.exercise.solution}[
            button
        ]
        try:
            self._disable(True)
            if button == "Check":
                self._result.value = f"<div role='status'>checking {html.escape(self.exercise.name)} …</div>"
            self._result.value = _html(action)
        finally:
            self._disable(False)
            self._busy.release()

    def _check(self) -> Any:
        return _Timed(self.exercise.check())

    def _disable(self, off: bool) -> None:
        for button in self._buttons.values():
            button.disabled = off


class _Timed:
    """A result with the time its answer ran, which a saved notebook would show differently at every run."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def _repr_html_(self) -> str:
        seconds = self.result.seconds
        time = (
            f"<div style='opacity:.7;padding:0 16px'>your answer ran for {seconds:.2f} s "
            "(measured, on this machine's CPU; not judged)</div>"
            if seconds is not None
            else ""
        )
        return self.result._repr_html_() + time


def _html(action: Any) -> str:
    """What ``action`` returns, as HTML; an exception becomes a line, since a thread has nobody to tell."""
    try:
        return action()._repr_html_()
    except Exception as error:
        return f"<div role='alert'>{html.escape(type(error).__name__)}: {html.escape(str(error))}</div>"
