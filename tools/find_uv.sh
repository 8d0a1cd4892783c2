# Part of setup_env.sh: the machine's uv, or the one that constraints/uv.txt locks, in .venv/uv.
# shellcheck shell=sh

fetched_uv=$PWD/.venv/uv/bin/uv

# Prints the path of a uv, or nothing. Versions before 0.5 lack options that are used here.
find_uv() {
  for candidate in "${UV:-uv}" "$home/.local/bin/uv" "$home/.cargo/bin/uv" "$fetched_uv"; do
    case $("$candidate" --version 2>/dev/null) in
      "uv 0."[0-4].*) ;;
      "uv "*) command -v "$candidate"; return ;;
    esac
  done
}

# Prints the path of any Python from 3.8 on, which fetches uv and reads pip's settings. A pyenv shim may
# exist and not run.
find_any_python() {
  for candidate in python3 python "${PYENV_ROOT:-$home/.pyenv}"/versions/3.*/bin/python3; do
    if "$candidate" -c 'import ssl, sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  return 1
}

# Sets uv, or why_no_uv if it cannot be fetched.
fetch_uv() {
  why_no_uv="no Python from 3.8 on runs here"
  helper=$(find_any_python) || return 0
  say "Fetching uv into .venv/uv, once"
  if why_no_uv=$("$helper" -B tools/get_uv.py .venv/uv 2>&1); then uv=$(find_uv); fi
}

# A user's own uv has its settings; the fetched one gets pip's mirrors and proxies.
configure_uv() {
  if [ "$uv" = "$fetched_uv" ] && helper=$(find_any_python); then
    eval "$("$helper" -B tools/pip_settings.py)"
  fi
}
