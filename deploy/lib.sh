# Shared by deploy/run, tests/run and bench: what to install and how, and how to build. Sourced with $root set.

# What each purpose needs, as Debian 12 package names.
build_packages="gcc libc6-dev cmake ninja-build pkg-config libh2o-evloop-dev libh2o-dev-common libssl-dev libjansson-dev liburing-dev libsqlite3-dev libexpat1-dev libcurl4-openssl-dev"
test_packages="g++ python3-dev python3-pip python3-setuptools python3-wheel clang libclang-rt-14-dev clang-format llvm valgrind libc6-dbg curl nghttp2-client python3 liblmdb-dev openssl git"
conform_packages="awscli s3cmd rclone curl"
bench_packages="nginx wrk nghttp2-client curl openssl liblmdb-dev"

say() { printf '%s\n' "$*" >&2; }
die() { say "${0##*/}: $*"; exit 1; }

# missing_packages PACKAGE...: those that are not installed.
missing_packages() {
    local package
    for package in "$@"; do
        dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed' || printf '%s ' "$package"
    done
}

# as_root COMMAND...: as it is, or through sudo.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# A package must not start its service: the policy file says no to invoke-rc.d while we install, unless the machine has its own.
policy=/usr/sbin/policy-rc.d
apt_install() (
    if [ ! -e "$policy" ]; then
        trap 'as_root rm -f "$policy"' EXIT
        as_root sh -c "printf '#!/bin/sh\nexit 101\n' > $policy && chmod 755 $policy"
    fi
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq \
        --no-install-recommends "$@"
)

# need PACKAGE...: installs what is missing, or ends with a message that says what to do.
need() {
    local missing log
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        say "note: this is not Debian; these packages (Debian 12 names) must be there already: $*"
        return 0
    fi
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
        die "missing packages, and neither root nor sudo to install them. As root: apt-get install $missing"
    fi
    say "Installing: $missing"
    log=$(mktemp)
    # Package lists may be absent or too old: then once more with fresh ones.
    # shellcheck disable=SC2086
    if ! apt_install $missing >"$log" 2>&1; then
        if ! { as_root apt-get update -qq && apt_install $missing; } >"$log" 2>&1; then
            tail -n 15 "$log" >&2
            rm -f "$log"
            die "could not install: $missing(Gyre is made for Debian 12; this is $(. /etc/os-release && echo "$PRETTY_NAME"))"
        fi
    fi
    rm -f "$log"
}

# configure DIR [CMAKE OPTION...]: once; later builds notice changes by themselves.
configure() {
    local dir=$1 log
    shift
    [ ! -f "$dir/build.ninja" ] || return 0
    log=$(mktemp)
    cmake -S "$root" -B "$dir" -G Ninja "$@" >"$log" 2>&1 || { cat "$log" >&2; rm -f "$log"; die "cmake failed in $dir"; }
    rm -f "$log"
}
