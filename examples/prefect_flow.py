"""darkroom as tasks of Prefect: images become checked records, and those a model.

python examples/prefect_flow.py images.csv photos
"""

import sys

from prefect import flow, task

import darkroom
from darkroom.errors import StorageError


def is_environment(_task, _run, state):
    """Whether a store or a disk failed: the data or an option will be as wrong the next time."""
    return isinstance(state.result(raise_on_failure=False), StorageError)


# Once more after 30 s, 1 minute and 2 minutes.
TRIES = {
    "retries": 3,
    "retry_delay_seconds": [30, 60, 120],
    "retry_condition_fn": is_environment,
}


@task(**TRIES)
def convert(source: str, folder: str) -> str:
    """Returns the folder of the records."""
    result = darkroom.convert(source, f"{folder}/records")
    print(f"{result.written} records of {result.rows} rows")
    return result.output_dir


@task(**TRIES)
def validate(records: str, folder: str) -> str:
    """Returns the same folder when the records pass the checks."""
    darkroom.validate(records, report_dir=f"{folder}/report").check()
    return records


@task(**TRIES)
def train(records: str, folder: str, epochs: int) -> str:
    """Returns the folder of the model."""
    return darkroom.train(records, f"{folder}/training", epochs=epochs).model_dir


@flow(log_prints=True)
def photos(source: str, folder: str, epochs: int = 10) -> str:
    """Returns the folder of the model."""
    records = validate(convert(source, folder), folder)
    return train(records, folder, epochs)


if __name__ == "__main__":
    print(photos(*sys.argv[1:]))
