"""The commands ``labkit exercises``, ``labkit progress`` and ``labkit author sync`` or ``verify``."""

from __future__ import annotations

import argparse
import json


def exercises(arguments: list[str]) -> int:
    """List the exercises of the course."""
    from labkit.course import registry

    parser = argparse.ArgumentParser(prog="labkit exercises", description="List the exercises of the course.")
    parser.add_argument("lesson", nargs="?", help="number of a lesson, e.g. 01 (default: all)")
    parser.add_argument("--json", action="store_true", help="for tools")
    options = parser.parse_args(arguments)
    chosen = registry.exercises(options.lesson)
    print(json.dumps([one.to_dict() for one in chosen], indent=2) if options.json else repr(chosen))
    return 0


def progress(arguments: list[str]) -> int:
    """Show what has been passed so far."""
    from labkit.course import store

    parser = argparse.ArgumentParser(prog="labkit progress", description="What you have passed so far.")
    parser.add_argument("--json", action="store_true", help="for tools")
    options = parser.parse_args(arguments)
    found = store.summary()
    print(json.dumps(found.to_dict(), indent=2) if options.json else repr(found))
    return 0


def author(arguments: list[str]) -> int:
    """What the authors of lessons need: ``sync`` and ``verify``."""
    if arguments[:1] == ["sync"]:
        from labkit.course import authoring

        return authoring.sync_main(arguments[1:])
    parser = argparse.ArgumentParser(prog="labkit author", description="For authors of lessons.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("sync", help="generate exercises/ from solutions/ (sync --help tells more)")
    text = "prove that stubs are not attempted, solutions pass, and wrong answers are explained"
    checker = commands.add_parser("verify", help=text, description=text)
    checker.add_argument("lesson", nargs="?", help="number of a lesson, e.g. 01 (default: all)")
    return _verify(parser.parse_args(arguments).lesson)


def _verify(lesson: str | None) -> int:
    from labkit.course import verify

    proofs = verify.verify(lesson)
    print("\n".join(map(str, proofs)))
    broken = sum(not proof.holds for proof in proofs)
    print(
        f"{len(proofs)} answers checked: " + (f"{broken} not as they should be." if broken else "all hold.")
    )
    return 1 if broken else 0
