#!/usr/bin/env bash
# The source tarball, the Debian package made from it, and the package's life in a root of its own:
# installed, used, removed, nothing left.
. "$(dirname "$0")/lib.sh"

for tool in dpkg-buildpackage dh lintian; do
	command -v "$tool" >/dev/null || { skip "the Debian package: there is no $tool here"; plan; }
done
git -C "$ROOT" rev-parse --git-dir >/dev/null 2>&1 || { skip "the Debian package: not a checkout"; plan; }

made() {
	make -C "$ROOT" deb BUILD="$T/made" \
		DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" >"$T/made.log" 2>&1 || {
		tail -n 20 "$T/made.log" | sed 's/^/# /'
		return 1
	}
}
check "the package is built from the tarball" made
package=$(find "$T/made/deb" -name 'flowsup_*.deb')
check "there is one package" test -f "$package"
[ -f "$package" ] || plan
equal "lintian finds no error" "" "$(lintian --fail-on none --tag-display-limit 0 "$package" 2>/dev/null | grep '^E:')"

# ---- Installed where nothing else is; its dependencies are this machine's ----
root=$T/root
mkdir -p "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/info"
: >"$root/var/lib/dpkg/status"
as_root=
[ "$(id -u)" = 0 ] || as_root=fakeroot
in_root() { $as_root dpkg --root="$root" --log=/dev/null --force-depends "$@" >"$T/dpkg.log" 2>&1 || { sed 's/^/# /' "$T/dpkg.log"; false; }; }
files() { find "$root" ! -type d ! -path "$root/var/lib/dpkg/*" | sort; }

check "it is installed" in_root -i "$package"
program=$root/usr/bin/flowsup
equal "the program finds its worker beside itself" "$root/usr/libexec/flowsup/flowsup-worker" \
	"$("$program" version --json | perl -MJSON::PP -ne 'print decode_json($_)->{worker}')"
id=$("$program" start -- sh -c 'echo it works')
check "a run is started and waited for" "$program" wait "$id"
matches "list shows it" "$id.*completed" "$("$program" list)"
equal "logs too" "it works" "$("$program" logs "$id")"
"$program" supervisor stop >/dev/null 2>&1
for shell in bash-completion/completions/flowsup zsh/vendor-completions/_flowsup fish/vendor_completions.d/flowsup.fish; do
	check "completions: $shell" test -s "$root/usr/share/$shell"
done
for page in "$ROOT"/man/*.[1578]; do
	check "manual page $(basename "$page")" test -s "$root/usr/share/man/man${page##*.}/$(basename "$page").gz"
done

check "it is removed" in_root -P flowsup
equal "nothing is left" "" "$(files)"
check "but the state" test -s "$FLOWSUP_HOME/state.db"
plan
