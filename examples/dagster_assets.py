"""darkroom as assets of Dagster: records, their check, and a model.

    PHOTOS_SOURCE=images.csv PHOTOS_FOLDER=photos \
        dagster asset materialize -f dagster_assets.py --select '*'

The model is made only when the records pass their check.
"""

import dagster as dg

import darkroom
from darkroom.errors import StorageError


class Photos(dg.ConfigurableResource):
    """Where the images are, and where everything goes."""

    source: str
    folder: str


def retry(step, *arguments, **options):
    """Runs a step; asks for another try when a store or a disk failed, and for nothing else."""
    try:
        return step(*arguments, **options)
    except StorageError as error:
        raise dg.RetryRequested(max_retries=3, seconds_to_wait=30) from error


@dg.asset
def records(photos: Photos):
    """Verified TFRecords."""
    output = f"{photos.folder}/records"
    result = retry(darkroom.convert, photos.source, output)
    counts = {"rows": result.rows, "written": result.written, "rejected": result.num_rejected}
    return dg.MaterializeResult(
        metadata={**counts, "rejects": dg.MetadataValue.path(result.rejects_path)},
        data_version=dg.DataVersion(result.fingerprint),
    )


@dg.asset_check(asset=records, blocking=True)
def passes(photos: Photos):
    """Leakage, duplicates, classes, rejects."""
    directory, report = f"{photos.folder}/records", f"{photos.folder}/report"
    result = retry(darkroom.validate, directory, report_dir=report)
    findings = [finding.message for finding in result.findings]
    return dg.AssetCheckResult(
        passed=result.blessed,
        metadata={"findings": findings, "report": dg.MetadataValue.path(result.report_path)},
    )


@dg.asset(deps=[records])
def model(photos: Photos):
    """A classifier."""
    folder = f"{photos.folder}/training"
    result = retry(darkroom.train, f"{photos.folder}/records", folder, epochs=10)
    return dg.MaterializeResult(
        metadata={"accuracy": result.evaluation.accuracy, "folder": result.model_dir}
    )


definitions = dg.Definitions(
    assets=[records, model],
    asset_checks=[passes],
    resources={
        "photos": Photos(source=dg.EnvVar("PHOTOS_SOURCE"), folder=dg.EnvVar("PHOTOS_FOLDER"))
    },
)
