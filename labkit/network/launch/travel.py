"""Getting a function out of the notebook: what it takes along, and which part of that cannot come."""

from __future__ import annotations

import builtins
import contextlib
import importlib.machinery
import inspect
import sys
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import cloudpickle

from labkit.errors import LabkitError
from labkit.network.launch import parcel


def pack_job(function: Callable[..., Any], args: tuple[Any, ...]) -> int:
    """The function and its arguments as a file in memory.

    Raises
    ------
    LabkitError
        Naming the argument or the captured variable that cannot go to another process, and why.
    """
    with _by_value(function, *args):
        try:
            return parcel.pack((function, args))
        except MemoryError:
            raise
        except Exception as error:
            raise LabkitError(_sentence(function, args, error)) from None


def _sentence(function: Callable[..., Any], args: tuple[Any, ...], error: Exception) -> str:
    for who, thing in _luggage(function, args):
        try:
            with _by_value(thing):
                parcel.close(parcel.pack(thing))
        except Exception as cause:
            return f"{who} cannot travel to the ranks: it is {_why(cause)}."
    name = getattr(function, "__name__", "the function")
    return f"{name} cannot travel to the ranks: something that it uses is {_why(error)}."


def _why(error: Exception) -> str:
    if isinstance(error, parcel.CannotTravel):
        return str(error)
    return (
        f"something that only this process has ({type(error).__name__}: {error}); make it inside the function"
    )


def _luggage(function: Callable[..., Any], args: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    """What goes along: the arguments, then what the function captures, each with a name for people."""
    for number, arg in enumerate(args, start=1):
        yield f"Argument {number} of {_name(function)}", arg
    inner = inspect.unwrap(function)
    if not isinstance(inner, FunctionType):
        return
    used = inspect.getclosurevars(inner)
    for name, thing in {**used.nonlocals, **used.globals}.items():
        if not isinstance(thing, ModuleType) and getattr(builtins, name, None) is not thing:
            yield f"The variable {name!r}, which {_name(function)} uses,", thing


def _name(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    return "the lambda" if name == "<lambda>" else f"{name}()"


@contextlib.contextmanager
def _by_value(*things: Any) -> Iterator[None]:
    """Pickle by value what comes from modules that a rank could not import by their name."""
    modules = {getattr(thing, "__module__", None) or "" for thing in things}
    strangers = [sys.modules[name] for name in modules if name in sys.modules and not _importable(name)]
    known = cloudpickle.list_registry_pickle_by_value()
    new = [module for module in strangers if module.__name__ not in known]
    for module in new:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in new:
            cloudpickle.unregister_pickle_by_value(module)


def _importable(name: str) -> bool:
    """Whether a fresh process with this path finds the module; test modules, for one, often are not."""
    if name == "__main__" or name in sys.builtin_module_names or not hasattr(sys.modules[name], "__file__"):
        return True  # __main__ travels by value anyway
    path: Any = None
    spec = None
    parts = name.split(".")
    for depth in range(len(parts)):
        spec = importlib.machinery.PathFinder.find_spec(".".join(parts[: depth + 1]), path)
        if spec is None:
            return False
        path = spec.submodule_search_locations
    return spec is not None and spec.origin == sys.modules[name].__file__
