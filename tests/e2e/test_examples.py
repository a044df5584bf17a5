"""Every public class and function has an Examples section, and its lines give what they show."""

import dataclasses
import doctest
import importlib
import inspect
import warnings

import pytest

import hbmp
from hbmp._core import catalog

FOLDERS = ("affinities", "backbones", "datasets", "encoders", "functions", "methods", "protocols", "stores")


def public_objects() -> dict[str, object]:
    """Public classes and functions by the name under which users import them, each object once."""
    found: dict[str, object] = {}
    for name in hbmp._MODULES:
        module = importlib.import_module(f"hbmp.{name}")
        shown = getattr(module, "__all__", None)
        names = shown if shown is not None else [key for key in vars(module) if not key.startswith("_")]
        for key in names:
            value = getattr(module, key)
            if (shown is not None or getattr(value, "__module__", "") == module.__name__) and is_documented(value):
                found[f"hbmp.{name}.{key}"] = value
    for folder in FOLDERS:
        for name in catalog.names(folder):
            cls = catalog.load(folder, name)
            found[f"hbmp.{folder}.{cls.__name__}"] = cls
    for name, home in hbmp._HOMES.items():
        found.setdefault(f"{home}.{name}", getattr(hbmp, name))
    once = {id(value): name for name, value in reversed(found.items())}
    return {name: value for name, value in found.items() if once[id(value)] == name}


def is_documented(value) -> bool:
    return inspect.isclass(value) or inspect.isfunction(value)


OBJECTS = public_objects()


def test_public_objects_are_found():
    assert {"hbmp.affinities.SameClass", "hbmp.affinities.Affinity", "hbmp.methods.ITQ"} <= set(OBJECTS)
    assert len(OBJECTS) > 40


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_examples_give_what_they_show(name):
    value = OBJECTS[name]
    lines = (inspect.getdoc(value) or "").splitlines()
    assert "Examples" in lines, f"{name} has no Examples section"
    described = "Parameters" in lines or (dataclasses.is_dataclass(value) and "Attributes" in lines)
    assert described or not takes_arguments(value), f"{name} has no Parameters section"
    found = [test for test in doctest.DocTestFinder(recurse=False).find(value, name) if test.examples]
    assert found, f"{name} has Examples without >>> lines"
    output: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for test in found:
            doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=output.append)
    assert not output, "".join(output)


def takes_arguments(value) -> bool:
    """Whether there are parameters to describe; base classes without an own constructor have none."""
    own = vars(value).get("__init__") if inspect.isclass(value) else value
    return own is not None and any(name not in ("self", "args", "kwargs") for name in inspect.signature(own).parameters)
