"""Run one check: from the answer as it was handed in to the result a learner reads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.compute.emulator import package as kernels
from labkit.course import answers, gates, messages, pack, sandbox
from labkit.course.checks import STEP_BUDGET, Call, DataCheck, FunctionCheck, KernelCheck, Launch
from labkit.course.compare import difference
from labkit.course.recorded import RecordedCheck
from labkit.course.result import ERROR, FAILED, NOT_ATTEMPTED, PASSED, CheckResult
from labkit.course.sandbox import Limits, Run, loads, values
from labkit.errors import LabkitError

if TYPE_CHECKING:
    from labkit.course.registry import Exercise


def run_check(exercise: Exercise, answer: Any, limits: Limits) -> CheckResult:
    """Check ``answer`` (``Missing`` when there is none); never raises for what an answer is or does."""
    check = exercise.plan
    if answer is answers.Missing:
        text = messages.missing(exercise.function)
        return CheckResult(exercise.name, NOT_ATTEMPTED, text)
    if isinstance(check, DataCheck):
        return _data(exercise, check, answer)
    wanted = answers.KERNEL if isinstance(check, KernelCheck) else answers.FUNCTION
    if problem := answers.complaint(exercise.function, wanted, answer):
        return CheckResult(exercise.name, ERROR, problem)
    if answers.is_stub(answer):
        return CheckResult(exercise.name, NOT_ATTEMPTED, messages.stub(exercise.function))
    if problem := answers.wrong_signature(exercise.function, answer, check.parameters):
        return CheckResult(exercise.name, ERROR, problem)
    try:
        if isinstance(check, KernelCheck):
            return _kernel(exercise, check, answer, limits)
        return _function(exercise, check, answer, limits)
    except LabkitError as error:
        return CheckResult(exercise.name, ERROR, str(error))


def _data(exercise: Exercise, check: DataCheck, answer: Any) -> CheckResult:
    if not isinstance(answer, check.form):
        return CheckResult(
            exercise.name, ERROR, answers.other_form(exercise.function, check.form.__name__, answer)
        )
    encoder = values.Encoder()
    answer = values.decode(
        encoder.encode(answer), encoder.arrays
    )  # plain data, whatever the learner's objects do
    if not isinstance(answer, check.form):
        return CheckResult(exercise.name, ERROR, messages.too_large(exercise.function))
    if not check.begun(answer):
        return CheckResult(exercise.name, NOT_ATTEMPTED, messages.stub(exercise.function))
    trouble = check.judge(answer)
    if trouble is None:
        return CheckResult(exercise.name, PASSED, exercise.praise)
    return CheckResult(exercise.name, FAILED, trouble[0], why=trouble[1])


def _kernel(exercise: Exercise, check: KernelCheck, kernel: Any, limits: Limits) -> CheckResult:
    package, arrays = kernels.pack(kernel)
    launches = list(check.launches())
    encoder = values.Encoder("v", budget=2**28)
    cases = [
        {
            "grid": launch.grid,
            "block": launch.block,
            "arguments": encoder.encode(tuple(launch.arguments.values())),
            "outputs": [n for n, name in enumerate(launch.arguments) if name in launch.expected],
            "step_budget": STEP_BUDGET,
            "count": bool(launch.gates),
        }
        for launch in launches
    ]
    job = {"kind": "kernel", "package": package, "cases": cases}
    run = sandbox.run(job, encoder.arrays | {f"p.{name}": a for name, a in arrays.items()}, limits)
    for launch, (document, after) in zip(launches, run.cases, strict=False):
        if (found := _launched(exercise.name, check, launch, document, after)) is not None:
            return _with(found, run)
    result = _end(exercise, run, launches, limits, len(launches), "launch")
    if not result.passed:
        return result
    for launch, (document, _) in zip(launches, run.cases, strict=True):
        if launch.gates:
            return replace(result, counted=gates.reached(launch.gates, document["lines"]))
    return result


def _launched(name: str, check: KernelCheck, launch: Launch, document: Any, after: Any) -> CheckResult | None:
    """What is wrong with one launch, or None."""
    where = str(launch)
    if "kernel_error" in document:
        return CheckResult(name, ERROR, str(document["kernel_error"]["message"]), where=where)
    if "raised" in document:
        return CheckResult(name, ERROR, messages.emulator_stopped(document["raised"]), where=where)
    errors, notes = messages.findings(document["findings"])
    found = _arrays(name, check, launch, document, after)
    if found is not None:
        return replace(found, why=found.why or "".join(errors[:1]), where=where, notes=notes)
    if errors:
        return CheckResult(name, FAILED, errors[0], messages.RIGHT_BY_LUCK, where, notes=notes)
    trouble = gates.judge(launch.gates, document.get("lines", {}))
    return trouble and CheckResult(name, FAILED, trouble[0], trouble[1], where, notes=notes)


def _arrays(name: str, check: KernelCheck, launch: Launch, document: Any, after: Any) -> CheckResult | None:
    """What is wrong with the values that one launch left behind, or None."""
    for n, (argument, before) in enumerate(launch.arguments.items()):
        if not isinstance(before, np.ndarray):
            continue
        got = after[f"a{n}"]
        wanted = launch.expected.get(argument, before)
        if got.dtype != wanted.dtype or got.shape != wanted.shape:
            raise ValueError("an array came back in another form")
        if (stray := document["stray"].get(str(n))) is not None:
            return CheckResult(name, FAILED, messages.stray(argument, stray))
        if argument not in launch.expected:
            if got.tobytes() != before.tobytes():
                return CheckResult(name, FAILED, messages.input_changed(argument))
        elif (found := difference(got, wanted)) is not None:
            why = check.explain(launch, argument, got, found)
            return CheckResult(name, FAILED, found.sentence(argument), why)
    return None


def _function(exercise: Exercise, check: FunctionCheck, function: Any, limits: Limits) -> CheckResult:
    if loads.TORCH in check.loads and (problem := loads.torch_missing()):
        return CheckResult(exercise.name, ERROR, problem)
    around = check.around(function) if isinstance(check, RecordedCheck) else function
    package, arrays = pack.pack(around, exercise.function)
    calls = list(check.calls(exercise.data() if exercise.table else None))
    encoder = values.Encoder("v", budget=2**28)
    cases = [{"arguments": encoder.encode(tuple(call.arguments.values()))} for call in calls]
    modules = loads.needed(package, arrays, check.loads)
    limits = loads.limits(modules, limits)
    job = {"kind": "function", "package": package, "cases": cases, "loads": modules}
    run = sandbox.run(job, encoder.arrays | arrays, limits)
    for call, (document, returned) in zip(calls, run.cases, strict=False):
        if (found := _called(exercise, check, call, document, returned)) is not None:
            return _with(found, run)
    return _end(
        exercise,
        run,
        [messages.call(exercise.function, c.arguments) for c in calls],
        limits,
        len(calls),
        "call",
    )


def _called(
    exercise: Exercise, check: FunctionCheck, call: Call, document: Any, arrays: Any
) -> CheckResult | None:
    where = messages.call(exercise.function, call.arguments)
    try:
        if "raised" in document:
            message = messages.raised(exercise.function, document["raised"])
            return CheckResult(exercise.name, ERROR, message, where=where)
        returned = values.decode(document["returned"], arrays)
    except (KeyError, ValueError, TypeError, IndexError, RecursionError):
        message = messages.unreadable(exercise.function, "it has another form")
        return CheckResult(exercise.name, ERROR, message, where=where)
    trouble = check.judge(call, returned)
    return trouble and CheckResult(exercise.name, FAILED, trouble[0], trouble[1], where)


def _end(
    exercise: Exercise, run: Run, cases: list[Any], limits: Limits, count: int, what: str
) -> CheckResult:
    """All results that came are right: passed, unless the run ended before all had come."""
    if len(run.cases) == count and run.end == "exited":
        return _with(CheckResult(exercise.name, PASSED, messages.passed(exercise.praise, count, what)), run)
    where = str(cases[len(run.cases)]) if len(run.cases) < count else ""
    return _with(
        CheckResult(exercise.name, ERROR, messages.ended(exercise.function, run, limits), where=where), run
    )


def _with(result: CheckResult, run: Run) -> CheckResult:
    """The result, with what the answer printed and how long it ran."""
    return replace(result, printed=run.printed, seconds=run.seconds)
