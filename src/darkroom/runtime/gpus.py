"""GPUs of this machine: whether there may be one, and why TensorFlow may not use it."""

from __future__ import annotations

import glob
import os
from contextlib import suppress

# NVIDIA's driver; the GPU of Windows, in WSL; AMD's driver.
_DRIVERS = ("proc/driver/nvidia", "dev/dxg", "dev/kfd")
# A card without its driver is a failure, too.
_VENDORS, _GPU_VENDORS = "sys/bus/pci/devices/*/vendor", ("0x10de",)
# A container has these for the GPUs that were given to it, and the driver's folder in any case.
_DEVICES = "dev/nvidia[0-9]*"
# The libraries of PyPI's packages are below the folder that TensorFlow is in.
_LIBRARIES, _SOLVER = "nvidia", "nvidia/cusolver/lib"
# The wheels of this version look for cuSOLVER in the folders of all the other libraries. Those of
# 2.20.0 and 2.22.0rc0 look in its own.
_LOST_SOLVER = "2.21."


def may_have_gpu(system: str = "/") -> bool:
    """Tells whether there is a GPU, or should be: then its failures have to be seen.

    Args:
        system: The root folder.
    """
    if os.environ.get("NVIDIA_VISIBLE_DEVICES", "void") not in ("", "void", "none"):
        return True  # set in images for GPUs, which may run without one by mistake
    if any(os.path.exists(os.path.join(system, path)) for path in _DRIVERS):
        return True
    for path in glob.iglob(os.path.join(glob.escape(system), _VENDORS)):
        with suppress(OSError), open(path) as file:
            if file.read().strip() in _GPU_VENDORS:
                return True
    return False


def explain_idle_gpu(version: str, packages: str, system: str = "/") -> str | None:
    """Says what to do if TensorFlow has found no GPU; None where none should be found.

    TensorFlow itself says nothing at the level of its log that `streams.quiet_tensorflow` sets.

    Args:
        version: TensorFlow's.
        packages: The folder that TensorFlow is installed in.
        system: The root folder.
    """
    devices = sorted(glob.glob(os.path.join(glob.escape(system), _DEVICES)))
    if not devices or "CUDA_VISIBLE_DEVICES" in os.environ:
        return None
    found = f"This machine has a GPU (/{os.path.relpath(devices[0], system)}), but TensorFlow "
    solver = os.path.join(packages, _SOLVER)
    known = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    if not os.path.isdir(os.path.join(packages, _LIBRARIES)):
        advice = f"To install its libraries: pip install 'tensorflow[and-cuda]=={version}'."
    elif version.startswith(_LOST_SOLVER) and os.path.isdir(solver) and solver not in known:
        advice = (
            f"Version {version} does not find cuSOLVER: start it with {solver} in LD_LIBRARY_PATH."
        )
    else:
        advice = "TF_CPP_MIN_LOG_LEVEL=0 with TF_CPP_MAX_VLOG_LEVEL=1 shows the missing libraries."
    return f"{found}finds none and uses the processor. {advice}"
