#!/bin/sh
# Makes the virtual environment that a make target needs, and prints its folder.
#
#   setup_env.sh tfx  [PYTHON]   the TFX line that this machine can install, in .venv/tfx-*
#   setup_env.sh demo [PYTHON]   the same, or the core and TensorFlow in .venv/tf-*, where TFX cannot be
#   setup_env.sh core [PYTHON]   the core alone, without tfx and TensorFlow, in .venv/core-*
#   setup_env.sh docs [PYTHON]   what builds the site, in .venv/docs-*
#   setup_env.sh newest [PYTHON] the newest of everything, no constraints, in .venv/newest-*
#   setup_env.sh bare [PYTHON]   the same without what is optional, pandas too, in .venv/bare-*
#   setup_env.sh torch [PYTHON]  the core, the newest PyTorch and JAX, no TensorFlow, in .venv/torch-*
#   setup_env.sh kfp [PYTHON]    the core and kfp of the version KFP, or the newest, in .venv/kfp-*
#
# PYTHON is a version (3.12), a command or a path; without it an interpreter is looked for.
# What is missing is fetched into .venv/: uv, and with it the interpreter and a compiler. Packages
# come from the hash-locked files in constraints/, except for tf, newest, bare, torch and kfp. A current
# environment is used as it is: then nothing is written, so that anybody who can read the checkout
# can use it.
set -eu
cd "$(dirname "$0")/.."
unset PYTHONDONTWRITEBYTECODE PYTHONPATH PYTHONHOME VIRTUAL_ENV
# Users of containers have no home, or none that they may write to: then uv keeps no cache.
home=${HOME:-/nonexistent}
[ -n "${UV_CACHE_DIR:-}${XDG_CACHE_HOME:-}" ] || [ -w "${HOME:-}" ] || export UV_NO_CACHE=1

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 3; }

. tools/find_uv.sh
. tools/find_python.sh

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
  elif python=$(find_python 3.10) || ! is_new_glibc; then
    version=3.10
  else
    version=3.11
  fi
  case $version in
    3.11)
      is_new_glibc || die "TFX 1.21, which goes with Python 3.11, needs glibc 2.39, and this is" \
        "$glibc: use Python 3.10"
      name=tfx-1.21 needed_by="TFX 1.21" lock=constraints/tfx-1.21-py311.txt ;;
    3.10)
      name=tfx-1.16 needed_by="TFX 1.16" lock=constraints/tfx-1.16-py310.txt ;;
    *) die "TFX needs Python 3.11 (with glibc 2.39) or 3.10, and PYTHON=$asked is $version" ;;
  esac
}

# Any Python will do: the demo has a form for the core and TensorFlow.
choose_tf() {
  if [ -n "$asked" ]; then
    use_asked_python
  else
    for version in 3.12 3.13 3.11 3.10; do
      if python=$(find_python "$version"); then break; fi
    done
  fi
  case $version in
    3.10 | 3.11 | 3.12 | 3.13) name=tf-$version needed_by="the demo" lock= ;;
    *) die "the demo needs Python 3.10 to 3.13, and PYTHON=$asked is $version" ;;
  esac
}

# True when the demo was set up without TFX before.
has_tf() {
  set -- .venv/tf-*/locked.stamp
  [ -e "$1" ]
}

# Sets kind: TFX where it can be installed.
choose_demo() {
  if [ -z "$why_no_tfx" ]; then
    why_no_tfx=$( (choose_tfx) 2>&1) && why_no_tfx=
  fi
  kind=tfx
  [ -n "$why_no_tfx" ] || choose_tfx
  if [ -n "$why_no_tfx" ] || { [ -z "$python" ] && has_tf; }; then
    kind=tf
    choose_tf
  fi
}

# Fetches the Python that TFX needs. Where that fails, the demo goes without TFX, if there is a Python.
fetch_demo_python() {
  if answer=$( (fetch_python) 2>&1); then
    say "$answer"
  else
    why_no_tfx=$answer
    python=
    choose_tf
    [ -n "$python" ] || { say "$answer"; exit 3; }
  fi
  plan
}

choose_core() {
  if [ -n "$asked" ]; then
    use_asked_python
  else
    # The last one is fetched where there is none.
    for version in 3.10 3.11 3.12 3.14 3.13; do
      if python=$(find_python "$version"); then break; fi
    done
  fi
  case $version in
    3.10 | 3.11 | 3.12 | 3.13 | 3.14)
      name=core-$version needed_by="this environment" lock=constraints/core.txt ;;
    *) die "the core needs Python 3.10 to 3.14, and PYTHON=$asked is $version" ;;
  esac
}

choose_docs() {
  if [ -n "$asked" ]; then
    use_asked_python
  else
    # The last one is fetched where there is none.
    for version in 3.11 3.12 3.13; do
      if python=$(find_python "$version"); then break; fi
    done
  fi
  case $version in
    3.11 | 3.12 | 3.13) name=docs-$version needed_by="this environment" lock=constraints/docs.txt ;;
    *) die "the site needs Python 3.11 to 3.13, and PYTHON=$asked is $version" ;;
  esac
}

choose_newest() {
  if [ -n "$asked" ]; then
    use_asked_python
  else
    # The last one is fetched where there is none.
    for version in ${newest_first:-3.12 3.13}; do
      if python=$(find_python "$version"); then break; fi
    done
  fi
  case $version in
    3.12 | 3.13) name=$kind-$version needed_by="this environment" lock= ;;
    *) die "the newest packages are tried on Python 3.12 and 3.13, and PYTHON=$asked is $version" ;;
  esac
}

choose_bare() { choose_newest; }

choose_torch() {
  newest_first="3.13 3.12"
  choose_newest
}

choose_kfp() {
  choose_core
  name=kfp-${KFP:-newest}-$version needed_by="this environment" lock=
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

# Creates an environment without any packages.
make_venv() {
  rm -rf "$venv"
  say "Setting up $venv ($python, $1, ${uv:-pip}): this takes minutes, once"
  if [ -n "$uv" ]; then
    "$uv" venv -q --no-project --python "$python" "$venv" >&2
  else
    "$python" -m venv "$venv" >&2
  fi
}

die_without_packages() {
  die "the packages could not be installed, see above: run this again where the package index can" \
    "be reached (a mirror is set by UV_DEFAULT_INDEX for uv, PIP_INDEX_URL for pip)"
}

# Installs what the arguments say, which are those of both uv and pip.
install_hashed() {
  if [ -n "$uv" ]; then
    "$uv" pip install $quiet --python "$venv/bin/python" --require-hashes "$@" >&2
  else
    # The lock is complete; resolving it again fails on extras, and takes minutes.
    "$venv/bin/python" -m pip install $quiet --require-hashes --no-deps --use-pep517 --no-compile \
      "$@" >&2
  fi || die_without_packages
}

# pyfarmhash, which TFX needs, comes as source alone. Zig is a C++ compiler that comes as a wheel.
add_compiler() {
  cc=${CC:-cc} cxx=${CXX:-c++}
  if command -v "${cc%% *}" >/dev/null && command -v "${cxx%% *}" >/dev/null; then return; fi
  say "Found no C++ compiler, which one package needs: fetching Zig (100 MB), once"
  install_hashed --target "$zig" -r constraints/ziglang.txt
  export ZIG_GLOBAL_CACHE_DIR="$zig/cache" ZIG_LOCAL_CACHE_DIR="$zig/cache"
  # Linked as C, the package needs no library of C++, which Zig would compile first: half a minute.
  cat >"$zig/c++" <<'END'
#!/bin/sh
case " $* " in *" -c "*) language=c++ ;; *) language=cc ;; esac
exec "${0%/*}/ziglang/zig" "$language" -mcpu=baseline "$@"
END
  chmod +x "$zig/c++"
  export CC="'$zig/c++'" CXX="'$zig/c++'" LDSHARED="'$zig/c++' -shared"
}

install_locked() {
  zig=$venv.zig
  rm -rf "$zig"
  make_venv "$lock"
  [ "$kind" != tfx ] || add_compiler
  install_hashed ${uv:+--compile-bytecode} -r "$lock"
  rm -rf "$zig"
  # Not every file of every package is valid for this Python: such files are never imported.
  [ -n "$uv" ] || "$venv/bin/python" -m compileall -q -j 0 "$venv/lib" >/dev/null 2>&1 || true
}

# Without constraints: the newest versions that go together, and the project with them.
install_newest() {
  case $kind in
    tf) packages= extras="[tf]" ;;
    newest) packages="hypothesis ipykernel pandas pytest pytest-xdist" extras="[beam,tf,pretrained,kfp,reader]" ;;
    # With Beam, which bounds pyarrow: Parquet files name its version.
    bare) packages=ipykernel extras="[beam]" ;;
    torch) packages="albumentations datasets grain hypothesis jax keras lightning pytest scikit-learn torch torchvision" extras="[reader]" ;;
    kfp) packages="hypothesis pytest kfp${KFP:+==$KFP}" extras="[beam]" ;;
  esac
  make_venv "newest packages"
  if [ -n "$uv" ]; then
    "$uv" pip install $quiet --python "$venv/bin/python" -e ".$extras" $packages >&2
  else
    "$venv/bin/python" -m pip install $quiet -e ".$extras" $packages >&2
  fi || die_without_packages
  add_source
  printf '%s\n' "$project" >"$venv/project.stamp"
}

# Else Python takes a clone named darkroom in the current folder for the package, because it asks the
# finder of an editable install last.
add_source() {
  for site in "$venv"/lib/python3.*/site-packages; do
    [ ! -d "$site" ] || printf '%s\n' "$PWD/src" >"$site/darkroom-source.pth"
  done
}

install_project() {
  if [ -n "$uv" ]; then
    "$uv" pip install -q --python "$venv/bin/python" --no-deps --no-build-isolation -e . >&2
  else
    # setuptools warns that a folder may shadow an editable package: src/ rules that out.
    PYTHONWARNINGS=ignore "$venv/bin/python" -m pip install -q --no-deps --no-build-isolation -e . >&2
  fi
}

# Sets all that the environment depends on. python is empty where the right one is not found.
plan() {
  kind=$wanted
  case $kind in
    tfx | demo | core | docs | newest | bare | torch | kfp) "choose_$kind" ;;
    *) die "usage: setup_env.sh tfx|demo|core|docs|newest|bare|torch|kfp [PYTHON]" ;;
  esac
  venv=$PWD/.venv/$name
  locked=$project
  [ -z "$lock" ] || locked=$(cksum <"$lock")
}

wanted=${1:-}
why_no_tfx=
asked=${2:-}
uv=$(find_uv)
quiet=
[ -t 2 ] || quiet=-q
project="$(cat setup.py pyproject.toml | cksum) and src"
plan
if ! has_packages || ! has_project; then
  check_writable
  if [ -z "$uv" ]; then
    fetch_uv
    # With it, an interpreter needs less, and more are found; without it, more is needed.
    plan
    [ -n "$uv" ] || [ -z "$python" ] ||
      say "uv cannot be fetched ($why_no_uv): pip is used, which takes longer"
  fi
  configure_uv
  [ "$wanted-$kind-$python" != demo-tfx- ] || fetch_demo_python
  [ -z "$why_no_tfx" ] || say "The demo runs without TFX, which cannot be had here: ${why_no_tfx#error: }"
  if command -v flock >/dev/null; then
    exec 9>"$venv.lock"
    flock 9
  fi
  # Another set-up may have done it in the meantime. The stamps are written last, so an interrupted
  # set-up is done again.
  if ! has_packages; then
    [ -n "$python" ] || fetch_python
    case $kind in
      tf | newest | bare | torch | kfp) install_newest ;;
      *) install_locked ;;
    esac
    printf '%s\n' "$locked" >"$venv/locked.stamp"
  fi
  if ! has_project; then
    install_project
    add_source
    printf '%s\n' "$project" >"$venv/project.stamp"
  fi
fi
printf '%s\n' "$venv"
