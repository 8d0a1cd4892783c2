"""What set-up fetches if a machine does not have it: uv, a Python, a compiler."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

import pytest

# Answers as uv does, and records its calls and settings.
UV = """
[ "$1" != --version ] || { echo "uv ${FAKE_VERSION:-0.13.9}"; exit; }
echo "$* index:${UV_DEFAULT_INDEX:-none} compiler:${CXX:-none}" >>calls.txt
case "$1 $2" in
  "python find") exit 1 ;;
  "python install")
    [ "${UV_PYTHON_DOWNLOADS:-}" != never ] || { echo "Downloads are not allowed." >&2; exit 1; }
    [ -z "${UV_OFFLINE:-}" ] || { printf 'error: No\\n  cause: No DNS\\n' >&2; exit 1; }
    folder=$UV_PYTHON_INSTALL_DIR/cpython-$4.9-linux/bin
    mkdir -p "$folder"
    printf '#!/bin/sh\\necho %s %s/python3\\n' "$4" "$folder" >"$folder/python3"
    chmod +x "$folder/python3" ;;
  "venv "*)
    for folder do :; done
    mkdir -p "$folder/bin"
    printf '#!/bin/sh\\n' >"$folder/bin/python"
    chmod +x "$folder/bin/python" ;;
  "pip install")
    while [ "$#" -gt 1 ]; do
      if [ "$1" = --target ]; then mkdir -p "$2"; fi
      shift
    done ;;
esac
"""
# A Python of another version, which can fetch uv and knows what pip was told.
OLD_PYTHON = f"""
case "$*" in
  *get_uv.py*)
    [ -z "${{INDEX_IS_DOWN:-}}" ] || {{ echo "x cannot be read: No DNS" >&2; exit 1; }}
    mkdir -p .venv/uv/bin
    cat >.venv/uv/bin/uv <<'END'
#!/bin/sh{UV}END
    chmod +x .venv/uv/bin/uv ;;
  *pip_settings.py) echo 'export UV_DEFAULT_INDEX=https://mirror.example/simple' ;;
  *print*) echo 3.8 /usr/bin/python3 ;;
esac
"""
# One of the right version, which makes environments with pip; Debian's lacks ensurepip.
PYTHON = """
case "$*" in
  *ensurepip*) [ -z "${NO_ENSUREPIP:-}" ] && echo 3.12 "$0" ;;
  *print*) echo 3.12 "$0" ;;
  "-m venv"*) mkdir -p "$3/bin" && cat "$0" >"$3/bin/python" && chmod +x "$3/bin/python" ;;
  "-m pip"*) echo "pip $3" >>calls.txt ;;
esac
"""
WAYS_OUT = re.compile(
    r".*: let uv fetch it \(UV_PYTHON_DOWNLOADS, or a mirror by UV_PYTHON_INSTALL_MIRROR\), or "
    r"install Python (\S+) with its venv module \('pyenv install \1' does\), or name one by "
    r"PYTHON=PATH\n"
)

needs_tfx_machine = pytest.mark.skipif(
    (platform.system(), platform.machine(), platform.libc_ver()[0]) != ("Linux", "x86_64", "glibc"),
    reason="TFX installs on x86-64 Linux with glibc only",
)


def add_program(machine: Path, name: str, script: str) -> None:
    path = machine / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def set_up(machine: Path, *args: str, **env: str) -> tuple[int, str, list[str]]:
    """Sets an environment up; returns exit code, output and sentences; `.` is the checkout."""
    done = subprocess.run(
        ["sh", "tools/setup_env.sh", *args],
        cwd=machine,
        env={"HOME": str(machine), "PATH": str(machine / "bin"), **env},
        capture_output=True,
        text=True,
        check=False,
    )
    error = done.stderr.replace(str(machine), ".")
    return done.returncode, done.stdout.replace(str(machine), "."), error.splitlines(keepends=True)


def read_calls(machine: Path) -> list[str]:
    path = machine / "calls.txt"
    return path.read_text().replace(str(machine), ".").splitlines() if path.exists() else []


def test_an_installed_uv_fetches_a_missing_python(bare_machine: Path) -> None:
    add_program(bare_machine, "uv", UV)
    code, out, said = set_up(bare_machine, "core", "3.12")
    assert (code, out) == (0, "./.venv/core-3.12\n")
    assert said == [
        "Found no Python 3.12, which this environment needs: "
        "uv fetches it into ./.venv/python, once\n",
        "Setting up ./.venv/core-3.12 (./.venv/python/cpython-3.12.9-linux/bin/python3, "
        "constraints/core.txt, ./bin/uv): this takes minutes, once\n",
    ]
    assert not (bare_machine / ".venv" / "uv").exists()
    # The second time, nothing is missing.
    calls = read_calls(bare_machine)
    assert set_up(bare_machine, "core", "3.12") == (0, "./.venv/core-3.12\n", [])
    assert [call for call in read_calls(bare_machine)[len(calls) :] if "find" not in call] == []


@needs_tfx_machine
@pytest.mark.parametrize(
    ("glibc", "version", "line"),
    [("2.38", "3.10", "1.16"), ("2.39", "3.11", "1.21")],
)
def test_the_python_of_the_tfx_line_that_fits_the_machine_is_fetched(
    bare_machine: Path, glibc: str, version: str, line: str
) -> None:
    (bare_machine / "bin" / "getconf").unlink()
    add_program(bare_machine, "getconf", f"echo glibc {glibc}")
    add_program(bare_machine, "uv", UV)
    code, out, said = set_up(bare_machine, "tfx")
    assert (code, out) == (0, f"./.venv/tfx-{line}\n")
    assert said[0] == (
        f"Found no Python {version}, which TFX {line} needs: "
        "uv fetches it into ./.venv/python, once\n"
    )


def test_the_folder_that_the_user_chose_for_pythons_is_used(bare_machine: Path) -> None:
    add_program(
        bare_machine,
        "uv",
        UV.replace('"python find") exit 1', '"python find") echo pythons/*/bin/python3'),
    )
    place = str(bare_machine / "pythons")
    assert set_up(bare_machine, "core", "3.12", UV_PYTHON_INSTALL_DIR=place)[0] == 0
    assert (bare_machine / "pythons" / "cpython-3.12.9-linux").exists()
    assert not (bare_machine / ".venv" / "python").exists()


def test_if_uv_may_not_fetch_a_python_one_sentence_says_what_to_do(
    bare_machine: Path,
) -> None:
    add_program(bare_machine, "uv", UV)
    code, out, said = set_up(bare_machine, "core", "3.12", UV_PYTHON_DOWNLOADS="never")
    assert (code, out, len(said)) == (3, "", 1)
    assert said[0].startswith(
        "error: found no Python 3.12, which this environment needs, and uv could not fetch it "
        "(Downloads are not allowed): "
    )
    assert WAYS_OUT.fullmatch(said[0])


def test_a_missing_uv_is_fetched_and_gets_the_settings_of_pip(bare_machine: Path) -> None:
    add_program(bare_machine, "python3", OLD_PYTHON)
    code, out, said = set_up(bare_machine, "core", "3.12")
    assert (code, out) == (0, "./.venv/core-3.12\n")
    assert said[0] == "Fetching uv into .venv/uv, once\n"
    assert said[1].startswith("Found no Python 3.12, which this environment needs: uv fetches it")
    installs = [call for call in read_calls(bare_machine) if call.startswith("pip install")]
    assert installs[0].startswith(
        "pip install -q --python ./.venv/core-3.12/bin/python --require-hashes --compile-bytecode"
    )
    assert {call.split()[-2] for call in installs} == {"index:https://mirror.example/simple"}
    # The next environment finds this uv, and gives it the same settings.
    (bare_machine / "calls.txt").unlink()
    code, _, said = set_up(bare_machine, "core", "3.13")
    assert (code, said[0][:20]) == (0, "Found no Python 3.13")
    installs = [call for call in read_calls(bare_machine) if call.startswith("pip install")]
    assert {call.split()[-2] for call in installs} == {"index:https://mirror.example/simple"}


def test_uv_is_fetched_even_if_the_right_python_is_installed(bare_machine: Path) -> None:
    add_program(bare_machine, "python3", OLD_PYTHON)
    add_program(bare_machine, "python3.12", PYTHON)
    code, _, said = set_up(bare_machine, "core", "3.12", NO_ENSUREPIP="1")
    assert (code, len(said)) == (0, 2)
    assert "(./bin/python3.12, constraints/core.txt, ./.venv/uv/bin/uv)" in said[1]


def test_a_uv_that_is_too_old_is_not_used(bare_machine: Path) -> None:
    add_program(bare_machine, "python3", OLD_PYTHON)
    add_program(bare_machine, "uv", "[ $1 = --version ] && echo uv 0.4.30 && exit; exit 70")
    assert set_up(bare_machine, "core", "3.12")[0] == 0
    assert (bare_machine / ".venv" / "uv" / "bin" / "uv").exists()


def test_pip_is_used_when_uv_cannot_be_fetched(bare_machine: Path) -> None:
    add_program(bare_machine, "python3", OLD_PYTHON)
    add_program(bare_machine, "python3.12", PYTHON)
    code, out, said = set_up(bare_machine, "core", "3.12", INDEX_IS_DOWN="1")
    assert (code, out) == (0, "./.venv/core-3.12\n")
    assert said[:2] == [
        "Fetching uv into .venv/uv, once\n",
        "uv cannot be fetched (x cannot be read: No DNS): pip is used, which takes longer\n",
    ]
    assert read_calls(bare_machine) == ["pip install", "pip install"]
    # The environment is complete: uv is not asked for again.
    assert set_up(bare_machine, "core", "3.12", INDEX_IS_DOWN="1") == (
        0, "./.venv/core-3.12\n", []
    )  # fmt: skip


def test_without_uv_and_ensurepip_one_sentence_says_what_to_do(bare_machine: Path) -> None:
    add_program(bare_machine, "python3", OLD_PYTHON)
    add_program(bare_machine, "python3.12", PYTHON)
    code, out, said = set_up(bare_machine, "core", "3.12", INDEX_IS_DOWN="1", NO_ENSUREPIP="1")
    assert (code, out, len(said)) == (3, "", 2)
    assert said[1].startswith(
        "error: found no Python 3.12, which this environment needs, and no uv that could fetch it "
        "(x cannot be read: No DNS): "
    )
    assert WAYS_OUT.fullmatch(said[1])


@needs_tfx_machine
def test_a_missing_compiler_is_fetched_and_removed_after_the_build(bare_machine: Path) -> None:
    add_program(bare_machine, "uv", UV)
    code, out, said = set_up(bare_machine, "tfx")
    assert code == 0
    name = Path(out.strip()).name
    calls = read_calls(bare_machine)
    fetched = [call for call in calls if "-r constraints/ziglang.txt" in call]
    locked = [call for call in calls if re.search(r"-r constraints/tfx-\S+ ", call)]
    assert [call.split("compiler:")[1] for call in locked] == [f"'./.venv/{name}.zig/c++'"]
    assert len(fetched) == 1
    assert any("Found no C++ compiler" in sentence for sentence in said)
    assert not (bare_machine / ".venv" / f"{name}.zig").exists()


def test_the_demo_goes_without_tfx_on_a_machine_that_tfx_does_not_know(bare_machine: Path) -> None:
    (bare_machine / "bin" / "uname").unlink()
    add_program(bare_machine, "uname", 'case "$1" in -m) echo arm64 ;; *) echo Darwin ;; esac')
    add_program(bare_machine, "uv", UV)
    add_program(bare_machine, "python3.12", PYTHON)
    code, out, said = set_up(bare_machine, "demo")
    assert (code, out) == (0, "./.venv/tf-3.12\n")
    assert said[0].startswith(
        "The demo runs without TFX, which cannot be had here: TFX installs on x86-64 Linux with "
        "glibc only, and this is Darwin on arm64"
    )
    [call] = [call for call in read_calls(bare_machine) if call.startswith("pip install")]
    assert " -e .[tf] " in call
    assert "--require-hashes" not in call
    # Without the package index and without a word.
    before = read_calls(bare_machine)
    assert set_up(bare_machine, "demo") == (0, "./.venv/tf-3.12\n", [])
    assert read_calls(bare_machine) == before


def test_the_demo_goes_without_tfx_with_a_python_that_tfx_does_not_know(bare_machine: Path) -> None:
    add_program(bare_machine, "uv", UV)
    add_program(bare_machine, "python3.12", PYTHON)
    code, out, _ = set_up(bare_machine, "demo", "3.12")
    assert (code, out) == (0, "./.venv/tf-3.12\n")


@needs_tfx_machine
def test_the_demo_goes_without_tfx_where_its_python_cannot_be_fetched(bare_machine: Path) -> None:
    add_program(bare_machine, "uv", UV)
    code, out, said = set_up(bare_machine, "demo", UV_PYTHON_DOWNLOADS="never")
    assert (code, out) == (3, "")
    assert len(said) == 1
    assert WAYS_OUT.fullmatch(said[0])
    add_program(bare_machine, "python3.12", PYTHON)
    for _ in range(2):
        code, out, said = set_up(bare_machine, "demo", UV_PYTHON_DOWNLOADS="never")
        assert (code, out) == (0, "./.venv/tf-3.12\n")
    assert said == []
