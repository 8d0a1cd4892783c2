#!/bin/sh
# Makes the virtual environment that a make target needs, and prints its folder.
#
#   setup_env.sh tfx  [PYTHON]   the TFX line that this machine can install, in .venv/tfx-*
#   setup_env.sh core [PYTHON]   the core alone, without tfx and TensorFlow, in .venv/core-*
#
# PYTHON is a version (3.12), a command or a path; without it an interpreter is looked for.
# Packages come from the hash-locked file in constraints/. A current environment is used as it is:
# then nothing is written, so that anybody who can read the checkout can use it.
set -eu
cd "$(dirname "$0")/.."
unset PYTHONDONTWRITEBYTECODE PYTHONPATH PYTHONHOME VIRTUAL_ENV
# Users of containers have no home, or none that they may write to: then uv keeps no cache.
home=${HOME:-/nonexistent}
[ -n "${UV_CACHE_DIR:-}${XDG_CACHE_HOME:-}" ] || [ -w "$home" ] || export UV_NO_CACHE=1

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 3; }

say_how() {
  printf '%s\n' "install Python $1 with its venv module, or try 'uv python install $1' or 'pyenv install $1'"
}

# uv's path, or nothing where pip must do.
find_uv() {
  for candidate in "${UV:-uv}" "$home/.local/bin/uv" "$home/.cargo/bin/uv"; do
    if "$candidate" --version >/dev/null 2>&1; then command -v "$candidate"; return; fi
  done
}

# Prints "X.Y PATH" of an interpreter that really runs: a pyenv shim may exist for a version that
# is not chosen, and Debian's python3 makes no environments until python3-venv is installed.
# PATH leads out of a virtual environment, which may be the one that is about to be made anew.
probe() {
  modules="os, ssl, sys, venv"
  [ -n "$uv" ] || modules="$modules, ensurepip"
  "$1" -c "import $modules
print('%d.%d' % sys.version_info[:2], os.path.realpath(sys.executable))" 2>/dev/null || true
}

# Prints the path of an interpreter of version $1 (X.Y); fails when there is none.
find_python() {
  for candidate in "python$1" "${PYENV_ROOT:-$home/.pyenv}/versions/$1".*/bin/python3 \
    "$home/.pyenv/versions/$1".*/bin/python3 python3 python "$uv"; do
    if [ -n "$uv" ] && [ "$candidate" = "$uv" ]; then
      candidate=$("$uv" python find --no-project --no-python-downloads "$1" 2>/dev/null) || continue
    fi
    found=$(probe "$candidate")
    if [ "${found%% *}" = "$1" ]; then printf '%s\n' "${found#* }"; return; fi
  done
  return 1
}

# Sets version and python from what the user asked for: 3.12, python3.12 or a path.
use_asked_python() {
  case $asked in
    [0-9]*.[0-9]*)
      version=$asked
      python=$(find_python "$asked") || python= ;;
    *)
      found=$(probe "$asked")
      [ -n "$found" ] || die "PYTHON=$asked does not run, or cannot make virtual environments"
      version=${found%% *} python=${found#* } ;;
  esac
}

# True when glibc is at least 2.39, which the wheels of TFX 1.21 need.
is_new_glibc() {
  minor=${glibc#2.}
  [ "${minor%%.*}" -ge 39 ]
}

choose_tfx() {
  glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed -n 's/^glibc //p')
  case "$(uname -s)-$(uname -m)-$glibc" in
    Linux-x86_64-2.*) ;;
    *) die "TFX installs on x86-64 Linux with glibc only, and this is $(uname -s) on $(uname -m):" \
      "use such a machine or container; 'make test-core' needs no TFX" ;;
  esac
  if [ -n "$asked" ]; then
    use_asked_python
  elif is_new_glibc && python=$(find_python 3.11); then
    version=3.11
  elif python=$(find_python 3.10); then
    version=3.10
  elif is_new_glibc; then
    die "found neither Python 3.11 (for TFX 1.21) nor 3.10 (for TFX 1.16): $(say_how 3.11)"
  else
    die "found no Python 3.10, which TFX 1.16 needs (TFX 1.21 needs glibc 2.39, this is $glibc):" \
      "$(say_how 3.10)"
  fi
  case $version in
    3.11)
      is_new_glibc || die "TFX 1.21, which goes with Python 3.11, needs glibc 2.39, and this is" \
        "$glibc: use Python 3.10"
      name=tfx-1.21 lock=constraints/tfx-1.21-py311.txt ;;
    3.10)
      name=tfx-1.16 lock=constraints/tfx-1.16-py310.txt ;;
    *) die "TFX needs Python 3.11 (with glibc 2.39) or 3.10, and PYTHON=$asked is $version" ;;
  esac
}

choose_core() {
  if [ -n "$asked" ]; then
    use_asked_python
  else
    for version in 3.10 3.11 3.12 3.13 none; do
      if python=$(find_python "$version"); then break; fi
    done
  fi
  case $version in
    3.10 | 3.11 | 3.12 | 3.13) name=core-$version lock=constraints/core.txt ;;
    none) die "found no Python from 3.10 to 3.13: $(say_how 3.13)" ;;
    *) die "the core needs Python 3.10 to 3.13, and PYTHON=$asked is $version" ;;
  esac
}

has_packages() {
  [ "$(cat "$venv/locked.stamp" 2>/dev/null)" = "$locked" ] &&
    "$venv/bin/python" -c 'print(1)' >/dev/null 2>&1
}

has_project() { [ "$(cat "$venv/project.stamp" 2>/dev/null)" = "$project" ]; }

check_writable() {
  mkdir -p .venv 2>/dev/null || true
  for place in . .venv "$venv" "$venv.lock"; do
    [ -w "$place" ] || { [ "$place" != . ] && [ ! -e "$place" ]; } ||
      die "the environment $venv is not complete, and this user may not write to $PWD to set it up:" \
        "make the checkout writable, or run this once as its owner"
  done
}

install_locked() {
  rm -rf "$venv"
  if [ -n "$uv" ]; then
    say "Setting up $venv ($python, $lock, uv): this takes minutes, once"
    "$uv" venv -q --no-project --python "$python" "$venv" >&2
    "$uv" pip install $quiet --python "$venv/bin/python" --require-hashes --compile-bytecode \
      -r "$lock" >&2
  else
    say "Setting up $venv ($python, $lock, pip): this takes minutes, once"
    "$python" -m venv "$venv" >&2
    # The lock is complete; resolving it again fails on extras, and takes minutes.
    "$venv/bin/python" -m pip install $quiet --require-hashes --no-deps --use-pep517 --no-compile \
      -r "$lock" >&2
    # Not every file of every package is valid for this Python: such files are never imported.
    "$venv/bin/python" -m compileall -q -j 0 "$venv/lib" >/dev/null 2>&1 || true
  fi
}

install_project() {
  if [ -n "$uv" ]; then
    "$uv" pip install -q --python "$venv/bin/python" --no-deps --no-build-isolation -e . >&2
  else
    # setuptools warns that a folder may shadow an editable package: src/ rules that out.
    PYTHONWARNINGS=ignore "$venv/bin/python" -m pip install -q --no-deps --no-build-isolation -e . >&2
  fi
}

kind=${1:-}
asked=${2:-}
uv=$(find_uv)
quiet=
[ -t 2 ] || quiet=-q
case $kind in
  tfx | core) "choose_$kind" ;;
  *) die "usage: setup_env.sh tfx|core [PYTHON]" ;;
esac
[ -n "$python" ] || die "no Python $version that runs was found: $(say_how "$version")"
venv=$PWD/.venv/$name
# The stamps are written last, so an interrupted set-up is done again.
locked=$(cksum <"$lock")
project=$(cat setup.py pyproject.toml | cksum)
if ! has_packages || ! has_project; then
  check_writable
  if command -v flock >/dev/null; then
    exec 9>"$venv.lock"
    flock 9
  fi
  # Another set-up may have done it in the meantime.
  if ! has_packages; then
    install_locked
    printf '%s\n' "$locked" >"$venv/locked.stamp"
  fi
  if ! has_project; then
    install_project
    printf '%s\n' "$project" >"$venv/project.stamp"
  fi
fi
printf '%s\n' "$venv"
