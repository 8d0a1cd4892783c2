"""The commands: one module each, in the order in which `darkroom --help` lists them.

A module has `add(commands)`, which adds the parser of the command, and `run(arguments)`, which
returns its exit code. `QUIET = True` hides warnings and errors that TensorFlow logs. All modules
are imported for `darkroom --help`, so each loads slow packages inside `run`. The commands
of steps are in `darkroom.steps`.
"""

COMMANDS = (
    "convert",
    "verify",
    "validate",
    "gallery",
    "diff",
    "describe",
    "embed",
    "duplicates",
    "inspect",
    "train",
    "evaluate",
    "export",
    "predict",
    "run",
    "compile",
    "submit",
    "demo",
    "dataservice",
)
# Those that `darkroom.steps` describes.
STEP_COMMANDS = ("verify", "validate", "diff", "duplicates")
