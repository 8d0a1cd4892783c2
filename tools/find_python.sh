# Part of setup_env.sh: the machine's interpreter, or one that uv fetches into .venv/python.
# shellcheck shell=sh

# Prints "X.Y PATH" of an interpreter that really runs: a pyenv shim may exist for a version that is not
# chosen, and Debian's python3 makes environments only with uv until python3-venv is installed. PATH is
# outside of any virtual environment, which may be the one that is about to be created again.
probe() {
  modules="os, ssl, sys, venv"
  [ -n "$uv" ] || [ -z "${why_no_uv:-}" ] || modules="$modules, ensurepip"
  "$1" -c "import $modules
print('%d.%d' % sys.version_info[:2], os.path.realpath(sys.executable))" 2>/dev/null || true
}

# Prints the path of an interpreter of version $1 (X.Y); fails when there is none.
find_python() {
  for candidate in "python$1" "${PYENV_ROOT:-$home/.pyenv}/versions/$1".*/bin/python3 \
    "$home/.pyenv/versions/$1".*/bin/python3 python3 python .venv/python/cpython-"$1".*/bin/python3 \
    "$uv"; do
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

# Sets python to one that uv fetches into .venv/, where set-up puts everything: whoever may use the
# checkout may use it, it needs no home, and it is deleted with the checkout, not with uv's cache.
fetch_python() {
  lacking="found no Python $version, which $needed_by needs"
  ways="let uv fetch it (UV_PYTHON_DOWNLOADS, or a mirror by UV_PYTHON_INSTALL_MIRROR), or install"
  ways="$ways Python $version with its venv module ('pyenv install $version' does), or name one by PYTHON=PATH"
  [ -n "$uv" ] || die "$lacking, and no uv that could fetch it ($why_no_uv): $ways"
  target=${UV_PYTHON_INSTALL_DIR:-$PWD/.venv/python}
  [ "${UV_PYTHON_DOWNLOADS:-}" = never ] || say "F${lacking#f}: uv fetches it into $target, once"
  # Some versions of uv would also put the program into ~/.local/bin.
  answer=$(UV_PYTHON_INSTALL_DIR=$target UV_PYTHON_INSTALL_BIN=0 \
    "$uv" python install --no-progress "$version" 2>&1) ||
    die "$lacking, and uv could not fetch it ($(last_line "$answer")): $ways"
  python=$(find_python "$version") || die "the Python $version in $target does not run: $ways"
}

# Prints the last line of a message, which is its cause, without the words before it.
last_line() {
  printf '%s\n' "$1" | sed -n '$ { s/^ *cause: //; s/^ *Caused by: //; s/^error: //; s/\.$//; p; }'
}
