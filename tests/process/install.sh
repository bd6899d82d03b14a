#!/usr/bin/env bash
# make install, below a root of its own: the shells look where their completions are put, and what is
# uninstalled leaves no file.
. "$(dirname "$0")/lib.sh"

looked_at_zsh() { zsh -fc 'print -l $fpath'; }
looked_at_fish() { env -u XDG_DATA_DIRS HOME="$T" fish -c 'string join \n $fish_complete_path'; }
# The package bash-completion, by its description of itself.
looked_at_bash() { printf '%s/bash-completion/completions\n' /usr/local/share /usr/share; }
# is_looked_at SHELL FILE: its directory in the root is one of those that the shell looks at.
is_looked_at() {
	local file
	file=$(find "$root" -path "*$2" -type f)
	[ -s "$file" ] && dirname "${file#"$root"}" | grep -qxFf - <("looked_at_$1")
}
made() { make -s -C "$ROOT" BUILD="$BUILD" "$1" PREFIX="$prefix" DESTDIR="$root" >"$T/made" 2>&1; }

for prefix in /usr /usr/local; do
	root=$T/root${prefix//\//-}
	check "$prefix: make install" made install
	check "$prefix: the program runs" eval '"$root$prefix/bin/flowsup" version >/dev/null'
	for shell in bash/completions/flowsup zsh/_flowsup fish/flowsup.fish; do
		if command -v "${shell%/*}" >/dev/null; then
			check "$prefix: ${shell%/*} looks where its completions are" is_looked_at "${shell%/*}" "/${shell#*/}"
		else
			skip "$prefix: ${shell%/*} is not installed"
		fi
	done
	check "$prefix: make uninstall" made uninstall
	equal "$prefix: leaves no file" "" "$(find "$root" ! -type d)"
done
plan
