#!/bin/sh
# Makes a virtual environment: tools/venv.sh DIRECTORY
# The variable PYTHON names the interpreter; without it, the first on the path that is new enough is taken.
set -eu
directory=$1

version_of() {
    "$1" -c 'import sys; print("is version %d.%d" % sys.version_info[:2])' 2>/dev/null || echo "does not run"
}
new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

fail() {
    echo >&2
    printf '%s\n' "$@" >&2
    exit 1
}

if [ -n "${PYTHON:-}" ]; then
    new_enough "$PYTHON" || fail \
        "Python 3.11 or newer is needed, and PYTHON=$PYTHON $(version_of "$PYTHON")."
    python=$PYTHON
else
    python=
    for candidate in python3 python3.14 python3.13 python3.12 python3.11 python; do
        if new_enough "$candidate"; then
            python=$candidate
            break
        fi
    done
    [ -n "$python" ] || fail \
        "Python 3.11 or newer is needed, and python3 here $(version_of python3)." \
        "Install one, or name one that is not on the path: make PYTHON=/path/to/python3.12 ..."
fi

echo "Making $directory with $(command -v "$python") ($("$python" --version))"
if ! "$python" -m venv --clear "$directory"; then
    rm -rf "$directory"
    fail "$python cannot make virtual environments: its venv module is missing or broken." \
        "On Debian and Ubuntu: apt install python3-venv. Or name another interpreter: make PYTHON=..."
fi
