"""Calls a training function of the user's on the records."""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Mapping
from numbers import Real

from darkroom import storage
from darkroom.errors import DarkroomError, UsageError
from darkroom.runtime.functions import FUNCTION, describe_user_failure, load_function
from darkroom.steps import parts
from darkroom.steps.step import Artifact, Given, Made, Parameter, Paths, Step


def run(paths: Paths, options: Given) -> Made:
    """Calls a user's function with a separate folder, and hands over the files that it wrote."""
    from darkroom.dataset.commit import find_dataset
    from darkroom.dataset.pointer import find_data
    from darkroom.storage import copies

    name, place, model = options["function"], paths["dataset"], paths["trained_model"]
    function = load_function("function", name)
    with tempfile.TemporaryDirectory(prefix="darkroom-") as folder:
        try:
            found = function(records=place, output_dir=folder, **options["arguments"])
        except DarkroomError:
            raise
        except (Exception, SystemExit) as error:
            traceback.print_exc()
            if isinstance(error, OSError):
                raise
            raise UsageError(f"{name} failed: {describe_user_failure(error)}.") from error
        numbers = {} if found is None else found
        if not (
            isinstance(numbers, Mapping) and all(isinstance(n, Real) for n in numbers.values())
        ):
            raise UsageError(f"{name} returned {found!r:.80}, expected numbers by name, or None.")
        if not storage.list_everything(folder):
            raise UsageError(f"{name} wrote no file into output_dir.")
        # A failed attempt may have left an earlier model.
        storage.delete(model)
        copies.copy_folder(folder, model)
    facts = {"function": name}
    if dataset := find_dataset(find_data(place)):
        facts["dataset_fingerprint"] = dataset.fingerprint
    metrics = {key: float(value) for key, value in numbers.items()}
    return Made(found, metrics, {"trained_model": facts})


def _check_function(function: str | None = None) -> None:
    # None while only a run knows it.
    if function is not None and not FUNCTION.fullmatch(function):
        raise UsageError(f"function is {function!r}, expected package.module:function.")


STEP = Step(
    "train_with_function",
    "Calls a training function of yours on the records, with PyTorch, JAX or any other framework.",
    run,
    (
        parts.DATASET_URI,
        Parameter(
            "function",
            str,
            "As package.module:function. It is called with records, which darkroom.load opens, "
            "with output_dir, an empty folder for its files, and with arguments. It may return "
            "numbers by name.",
        ),
        Parameter("arguments", dict, "More arguments of the function, by name.", {}),
    ),
    inputs=(parts.DATASET,),
    outputs=(
        Artifact("trained_model", "Model", "The files that the function wrote into output_dir."),
        parts.name_metrics("training"),
    ),
    own_image=True,
    checks=(_check_function,),
)
