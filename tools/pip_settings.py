"""Prints pip's settings of the network as variables of uv, without pip.

    eval "$(python pip_settings.py)"

uv does not read pip's environment variables and files. Users who set a mirror or a proxy for pip,
and have never heard of uv, expect that the uv that set-up fetches uses it, too. Needs Python 3.8 or
newer, and only its standard library.
"""

from __future__ import annotations

import configparser
import os
import shlex
import ssl
import sys
from pathlib import Path

# The names of pip's options, and of uv's variables for them. Not extra-index-url: uv would look
# there first and nowhere else, even if the locked version is not there.
UV_NAMES = {
    "cert": ("SSL_CERT_FILE",),
    "index-url": ("UV_DEFAULT_INDEX", "UV_INDEX_URL"),
    "proxy": ("ALL_PROXY", "HTTPS_PROXY", "https_proxy"),
    "trusted-host": ("UV_INSECURE_HOST",),
}


def read_pip_settings() -> dict[str, str]:
    """Reads pip's files and variables with the same precedence as pip.

    Returns:
        The value of each option (`index-url`) of `UV_NAMES`.
    """
    settings: dict[str, str] = {}
    for path in _list_files():
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeDecodeError):
            continue
        for section in ("global", "install"):
            if parser.has_section(section):
                settings.update({name.replace("_", "-"): v for name, v in parser.items(section)})
    for name in UV_NAMES:
        value = os.environ.get("PIP_" + name.upper().replace("-", "_"))
        if value:
            settings[name] = value
    return {name: settings[name] for name in UV_NAMES if settings.get(name)}


def _list_files() -> list[Path]:
    named = os.environ.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return []
    home = Path(os.path.expanduser("~"))
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    system = os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    return [
        *(Path(folder, "pip/pip.conf") for folder in system.split(":")),
        Path("/etc/pip.conf"),
        home / ".pip/pip.conf",
        config / "pip/pip.conf",
        Path(sys.prefix, "pip.conf"),
        *([Path(named)] if named else []),
    ]


def list_uv_variables() -> dict[str, str]:
    """Lists uv's variables for these settings, without those that are set already."""
    variables = {
        names[0]: value
        for names, value in (
            (UV_NAMES[option], value) for option, value in read_pip_settings().items()
        )
        if not any(os.environ.get(name) for name in names)
    }
    # pip and this Python read the system's store, which has a company's certificates.
    paths = ssl.get_default_verify_paths()
    store = paths.cafile or (paths.capath and os.listdir(paths.capath))
    if store and not os.environ.get("SSL_CERT_FILE") and "SSL_CERT_FILE" not in variables:
        variables["UV_SYSTEM_CERTS"] = os.environ.get("UV_SYSTEM_CERTS") or "true"
    return variables


if __name__ == "__main__":
    for variable, text in list_uv_variables().items():
        print(f"export {variable}={shlex.quote(text)}")
