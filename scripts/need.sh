#!/bin/sh
# Checks for Go and installs what is missing of the named programs from the
# system's own packages. Only Go is presupposed.
#
#   scripts/need.sh                  bubblewrap, git, ripgrep and tmux
#   scripts/need.sh make git         these instead
#
# As root it installs by itself; otherwise through "sudo -n" where that works
# without a password; otherwise it stops and prints the one command to type.
# It never asks a question, reads no stdin, and says nothing when nothing is
# missing.
set -eu

wanted=${*:-bubblewrap git ripgrep tmux}
oldest_go=1.26

say() { printf '%s\n' "$*" >&2; }

# check_go runs inside the module, so a Go that fetches its own newer
# toolchain counts as the one it fetched.
check_go() {
	if ! command -v go >/dev/null 2>&1; then
		say "need: Go $oldest_go or newer is not on PATH. Install it from https://go.dev/dl/ and try again."
		exit 1
	fi
	cd "$(dirname "$0")/.."
	found=$(go env GOVERSION 2>/dev/null) || found=
	if [ -z "$found" ]; then
		found=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) || found="a Go that does not start here"
	fi
	number=${found#go}
	major=${number%%.*}
	rest=${number#*.}
	minor=${rest%%[!0-9]*}
	case $major$minor in
	'' | *[!0-9]*) minor=0 major=0 ;;
	esac
	if [ "$major" -gt 1 ] || { [ "$major" -eq 1 ] && [ "$minor" -ge "${oldest_go#*.}" ]; }; then
		return
	fi
	say "need: Go $oldest_go or newer is needed, and $(command -v go) is $found. Install a newer one from https://go.dev/dl/ and try again."
	exit 1
}

# program_of names the program a package brings, by which its presence is told.
program_of() {
	case $1 in
	ripgrep) echo rg ;;
	*) echo "$1" ;;
	esac
}

missing_of() {
	for package in $wanted; do
		if [ "$package" = bubblewrap ]; then
			has_sandbox || printf '%s ' "$package"
			continue
		fi
		command -v "$(program_of "$package")" >/dev/null 2>&1 || printf '%s ' "$package"
	done
}

# has_sandbox looks for bubblewrap where agent does, which never asks PATH. It is
# Linux's; macOS brings its own sandbox.
has_sandbox() {
	[ "$(uname -s)" = Linux ] || return 0
	for at in /usr/bin /bin /usr/local/bin /run/current-system/sw/bin; do
		[ ! -x "$at/bwrap" ] || return 0
	done
	return 1
}

# install_command prints the whole command line for this system's packages.
install_command() {
	if command -v apt-get >/dev/null 2>&1; then
		echo "env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $*"
	elif command -v dnf >/dev/null 2>&1; then
		echo "dnf install -y $*"
	elif command -v pacman >/dev/null 2>&1; then
		echo "pacman -S --needed --noconfirm $*"
	elif command -v apk >/dev/null 2>&1; then
		echo "apk add --no-cache $*"
	elif command -v brew >/dev/null 2>&1; then
		echo "brew install $*"
	fi
}

# refresh_command prints what must run first where package lists can be
# absent, as on a fresh machine.
refresh_command() {
	if command -v apt-get >/dev/null 2>&1; then
		echo "apt-get update -q"
	elif command -v dnf >/dev/null 2>&1; then
		:
	elif command -v pacman >/dev/null 2>&1; then
		echo "pacman -Sy --noconfirm"
	fi
}

install_missing() {
	# shellcheck disable=SC2086 # a list of package names
	install=$(install_command $1)
	refresh=$(refresh_command)
	if [ -z "$install" ]; then
		say "need: missing: $1- and none of apt-get, dnf, pacman, apk or brew is here. Install them by hand and try again."
		exit 1
	fi
	as=
	case $install in
	brew*) ;; # Homebrew refuses to run as root and needs no root.
	*)
		if [ "$(id -u)" -ne 0 ]; then
			if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
				as="sudo -n"
			else
				say "need: missing: $1- and installing needs root. Type this, then try again:"
				say "    sudo sh -c '${refresh:+$refresh && }$install'"
				exit 1
			fi
		fi
		;;
	esac
	say "need: installing: $1"
	# Stale lists often still serve, so a failed refresh alone is no failure.
	if [ -n "$refresh" ]; then
		$as $refresh </dev/null >&2 || say "need: the package lists could not be refreshed; going on with those at hand."
	fi
	$as $install </dev/null >&2 || {
		say "need: the package manager failed: $install"
		exit 1
	}
}

check_go
missing=$(missing_of)
if [ -n "$missing" ]; then
	install_missing "$missing"
	missing=$(missing_of)
	if [ -n "$missing" ]; then
		say "need: installed, and still not to be found: $missing"
		exit 1
	fi
fi
