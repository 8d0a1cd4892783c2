"""darkroom as tasks of Airflow: images become checked records, and those a model.

    airflow dags test photos -c '{"source": "images.csv", "folder": "photos"}'

The tasks start the program `darkroom`. So it needs no environment together with Airflow: the
variable DARKROOM names the program in another one.
"""

import json
import os
import subprocess
from datetime import timedelta

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowFailException

DARKROOM = os.environ.get("DARKROOM", "darkroom")
ENVIRONMENT = 3  # a store or a disk that may be back later
SIGNALS = 128


def run_darkroom(*arguments):
    """Runs a command; returns what it prints with --json.

    Raises:
        RuntimeError: The environment failed, or something ended it. Airflow tries again.
        AirflowFailException: The data or an option is wrong, which another try does not change.
    """
    done = subprocess.run([DARKROOM, *arguments, "--json"], stdout=subprocess.PIPE, text=True)
    if done.returncode < 0 or done.returncode > SIGNALS:
        raise RuntimeError(f"darkroom {arguments[0]} was ended by a signal.")
    result = json.loads(done.stdout)
    if done.returncode == 0:
        return result
    error = result["error"]
    message = f"{error['message']} {error['hint']}"
    raise (RuntimeError if done.returncode == ENVIRONMENT else AirflowFailException)(message)


@dag(
    dag_id="photos",
    schedule=None,
    params={"source": "images.csv", "folder": "photos", "epochs": 10},
    default_args={"retries": 3, "retry_delay": timedelta(seconds=30)},
)
def make_dag():
    """Returns the DAG: convert, validate, train."""

    @task
    def convert(source, folder):
        records = f"{folder}/records"
        result = run_darkroom("convert", source, "--output-dir", records)
        print(f"{result['written']} records of {result['rows']} rows")
        return records

    @task
    def validate(records, folder):
        run_darkroom("validate", records, "--report", f"{folder}/report")
        return records

    @task
    def train(records, folder, epochs):
        options = ["--checkpoint-dir", f"{folder}/training", "--epochs", epochs]
        return run_darkroom("train", "--data", records, *options)["model_dir"]

    folder = "{{ params.folder }}"
    records = convert("{{ params.source }}", folder)
    train(validate(records, folder), folder, "{{ params.epochs }}")


make_dag()
