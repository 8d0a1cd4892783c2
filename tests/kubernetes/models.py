"""Compares manifests with the published models of kserve and kubeflow-trainer-api.

This program runs in an environment that tests/kubernetes/test_models.py makes. It reads YAML from
standard input, prints the kind of each object of these two, and fails on the first wrong object.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import kserve.models
import kubeflow_trainer_api.models
import kubernetes.client
import yaml

_PLAIN = {"str": str, "int": int, "bool": bool, "float": (int, float), "object": object}
_CONTAINER = re.compile(r"(list|dict)[\[(](?:str, ?)?(.+)[\])]", re.IGNORECASE)


def check_generated(kind: str, value: Any, where: str) -> Any:
    """Builds a model of kserve or kubernetes, with constructors that check required fields.

    Args:
        kind: Name of the model, or of a type as these models write it: list[V1EnvVar].
        value: What YAML gives.
        where: Its place, for the error.

    Raises:
        ValueError: A field is unknown, missing or of the wrong type.
    """
    if container := _CONTAINER.fullmatch(kind):
        expected, inner = {"list": list, "dict": dict}[container[1].lower()], container[2]
        if not isinstance(value, expected):
            raise ValueError(f"{where} is {value!r}, expected {kind}")
        if expected is list:
            return [check_generated(inner, v, f"{where}[{i}]") for i, v in enumerate(value)]
        return {key: check_generated(inner, v, f"{where}.{key}") for key, v in value.items()}
    if kind in _PLAIN:
        if not isinstance(value, _PLAIN[kind]):
            raise ValueError(f"{where} is {value!r}, expected {kind}")
        return value
    model = getattr(kserve.models, kind, None) or getattr(kubernetes.client, kind)
    names = {name: attribute for attribute, name in model.attribute_map.items()}
    if unknown := set(value) - set(names):
        raise ValueError(f"{where} has unknown fields: {sorted(unknown)}")
    return model(
        **{
            names[name]: check_generated(model.openapi_types[names[name]], v, f"{where}.{name}")
            for name, v in value.items()
        }
    )


def check_kept(given: Any, kept: Any, where: str) -> None:
    """Checks that a model, which drops unknown fields, has kept all given fields.

    Raises:
        ValueError: Something is gone or different.
    """
    if isinstance(given, dict) and isinstance(kept, dict):
        for key, value in given.items():
            if key not in kept:
                raise ValueError(f"{where} has an unknown field: {key}")
            check_kept(value, kept[key], f"{where}.{key}")
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for index, value in enumerate(given):
            check_kept(value, kept[index], f"{where}[{index}]")
    elif given != kept:
        raise ValueError(f"{where} is {given!r}, and the model makes {kept!r} of it")


def check(each: dict[str, Any]) -> bool:
    """Checks an object; returns whether it is one of kserve or Trainer."""
    group, _, version = each["apiVersion"].partition("/")
    prefix = version[:1].upper() + version[1:]
    if group == "serving.kserve.io":
        check_generated(prefix + each["kind"], each, each["kind"])
    elif group == "trainer.kubeflow.org":
        model = getattr(kubeflow_trainer_api.models, f"Trainer{prefix}{each['kind']}")
        check_kept(each, model.from_dict(each).to_dict(), each["kind"])
    else:
        return False
    return True


if __name__ == "__main__":
    for document in yaml.safe_load_all(sys.stdin):
        if check(document):
            print(document["kind"])
