"""What this release no longer has, each with one sentence that says what to do instead.

An entry stays for one release; `docs/guides/from-0.2.md` has the same list for readers.
"""

from __future__ import annotations

_RUNNER = "Give Beam's own options, as --runner FlinkRunner: docs/guides/convert-on-a-cluster.md."
_IN_A_FILE = "Give it in the file of --config, or in compile and submit by --set."

# A command; an option, which is also its flag with dashes and its name in TOML; the flag of a
# command, where the option is still there; a public name of Python with its package, as
# `darkroom.Engine`.
WITHDRAWN_COMMANDS: dict[str, str] = {
    "attempts": "Run the same command again: it resumes, and says which attempt may still run.",
}
OPTIONS: dict[str, str] = {
    "cron": "Start `darkroom submit` by a CronJob, or make a schedule in the service.",
    "persistent_resource": "Give the compiled file to the beta API of Vertex.",
    **dict.fromkeys(("engine", "engine_url", "engine_workers"), _RUNNER),
    "tune": "Run examples/search_options.py, which asks KerasTuner.",
    "resolve": "Give what the gallery's page saved to darkroom convert --decisions.",
}
WITHDRAWN_FLAGS: dict[str, str] = {
    **dict.fromkeys(
        (
            "darkroom run --image",
            "darkroom run --kfp",
            "darkroom run --name",
            "darkroom run --parameters",
        ),
        _IN_A_FILE,
    ),
    **dict.fromkeys(
        (
            "darkroom embed --runner",
            "darkroom embed --project",
            "darkroom embed --region",
            "darkroom embed --beam-option",
        ),
        "Leave it out: features are computed in the process of the command.",
    ),
}
WITHDRAWN_NAMES: dict[str, str] = {}


def explain_option(name: str) -> str:
    """Returns what to do instead of an option or a flag; empty where none was withdrawn.

    Args:
        name: As a user wrote it: `cron`, `--cron` or `--cron=TEXT`.
    """
    return OPTIONS.get(name.partition("=")[0].removeprefix("--").replace("-", "_"), "")
