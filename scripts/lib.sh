# Shared by the scripts in this folder, which source it. Works with bash 3.2, the one that macOS has.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
tools=$root/.tools
# shellcheck source=versions.env
. "$root/scripts/versions.env"

wasm_target=wasm32-unknown-unknown
PATH=$tools/bin:$tools/node_modules/.bin:$PATH
export PATH

say() { printf '%s\n' "$*"; }

die() {
    printf 'error: %s\n' "$1" >&2
    shift
    for line in "$@"; do printf '       %s\n' "$line" >&2; done
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# sha256 FILE: the digest in hex.
sha256() {
    if have sha256sum; then sha256sum "$1" | cut -d' ' -f1; else shasum -a 256 "$1" | cut -d' ' -f1; fi
}

# step NAME: a heading with the seconds since the script began.
step() { printf '\n== %s (at %d s)\n' "$*" "$SECONDS"; }

# Prints the first of its arguments that is a clang, at least of the oldest usable version, with the wasm32 target.
# Apple's clang has no such target.
first_wasm_clang() {
    local candidate major
    for candidate in "$@"; do
        have "$candidate" || continue
        "$candidate" --print-targets 2>/dev/null | grep -q 'wasm32' || continue
        major=$("$candidate" -dumpversion | cut -d. -f1)
        [ "$major" -ge "$CLANG_VERSION_MIN" ] || continue
        say "$candidate"
        return 0
    done
    return 1
}

# find_clang: sets and exports CC_wasm32_unknown_unknown and AR_wasm32_unknown_unknown, or fails. The user's own settings win.
find_clang() {
    local clang=${CC_wasm32_unknown_unknown:-} ar=${AR_wasm32_unknown_unknown:-} candidate
    if [ -z "$clang" ]; then
        clang=$(first_wasm_clang "clang-$CLANG_VERSION" "/usr/lib/llvm-$CLANG_VERSION/bin/clang" \
            "/opt/homebrew/opt/llvm@$CLANG_VERSION/bin/clang" "/usr/local/opt/llvm@$CLANG_VERSION/bin/clang" \
            /opt/homebrew/opt/llvm/bin/clang /usr/local/opt/llvm/bin/clang clang clang-22 clang-21 clang-20 clang-18 clang-17) ||
            return 1
    fi
    if [ -z "$ar" ]; then
        for candidate in "llvm-ar-$("$clang" -dumpversion | cut -d. -f1)" "$(dirname "$(command -v "$clang")")/llvm-ar" llvm-ar; do
            if have "$candidate"; then ar=$candidate && break; fi
        done
    fi
    [ -n "$ar" ] || return 1
    export CC_wasm32_unknown_unknown=$clang AR_wasm32_unknown_unknown=$ar
}

# remap_registry NAME: the rustc flags, one a line, that write NAME where the folder of downloaded crates would be named.
remap_registry() {
    local cargo_home=${CARGO_HOME:-$HOME/.cargo} folder
    say "--remap-path-prefix=$cargo_home=/cargo"
    # The last flag that fits wins.
    for folder in "$cargo_home"/registry/src/*; do
        if [ -d "$folder" ]; then say "--remap-path-prefix=$folder=$1"; fi
    done
}

# canister_flags: sets and exports how Cargo compiles the project's own canisters, the same from whatever folder.
canister_flags() {
    local sysroot commit
    sysroot=$(rustc --print sysroot)
    commit=$(rustc -vV | sed -n 's/^commit-hash: //p')
    # Separated by a character that no path holds.
    CARGO_ENCODED_RUSTFLAGS=$({
        say "-Ctarget-feature=+simd128"
        say "--remap-path-prefix=$sysroot/lib/rustlib/src/rust=/rustc/$commit"
        remap_registry /deps
        say "--remap-path-prefix=$root=/icsql"
    } | tr '\n' '\037' | sed 's/.$//')
    # A target folder of its own: the flags differ from those of a plain `cargo build`, which would throw away each other's work.
    CARGO_TARGET_DIR=$root/target/canister
    export CARGO_ENCODED_RUSTFLAGS CARGO_TARGET_DIR
}
