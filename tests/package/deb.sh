#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds the Debian packages, installs them in a root of their own, uses and removes
# them:
#
#	deb.sh source-tree [ROOT]
#
# The root is a copy-on-write view of this machine's, without source and build trees; or
# of ROOT, which debootstrap made (--variant=minbase is enough): there apt-get installs
# the packages' dependencies, which needs a network.  77: skipped.
set -e
src=$1 base=${2:-/}

skip() {
	echo "skipped: $*"
	exit 77
}

fail() {
	echo "$*"
	exit 1
}

quietly() {
	log=$("$@" 2>&1) || {
		printf '%s\n' "$log"
		fail "failed: $*"
	}
}

# ---- inside the root: using the packages ----

check_library() {
	ldconfig -p | grep -q "libportals.so.0 .* => /" || fail "ldconfig does not know it"
	ldconfig -p | grep -q "libgasnet-portals-par.so.1 .* => /" || fail "ldconfig does not know GASNet"
	ldd /usr/bin/portalperf | grep -q "libportals.so.0 => /" || fail "no library is found"
	ptlstat >/dev/null || fail "ptlstat does not run"
	[ -f /usr/share/zsh/vendor-completions/_yod ] || fail "zsh does not find _yod"
	! command -v fi_info >/dev/null || fi_info -p portals | grep -q '^provider: portals' ||
		fail "libfabric does not find the provider portals"
	PTL3_HUGEPAGES=off yod -sz 2 portalperf --quick --sizes 8 >/dev/null ||
		fail "portalperf does not run"
}

check_development() {
	for file in examples/tutorial/6.c docs/tutorial.md docs/operation.md docs/img/machine.svg; do
		[ -f "/usr/share/doc/libportals-dev/$file" ] ||
			grep -rqs "path-exclude.*doc" /etc/dpkg/dpkg.cfg.d || fail "no $file"
	done
	for page in man3/PtlPut.3 man3/ptl_md_t.3 man3/PtlNIFailStr.3 man3/cci_rma.3 man7/cci.7 man7/portals3.7 man1/yod.1 \
		man3/gasnet_AMRequestMedium7.3 man3/gasnet_put_nb_bulk.3 man3/gasnett_ticks_now.3 man7/gasnet.7 \
		man1/gasnetrun_portals.1; do
		[ -f /usr/share/man/$page.gz ] || grep -rqs "path-exclude.*man" /etc/dpkg/dpkg.cfg.d ||
			fail "no $page"
	done
	command -v make pkg-config cc c++ >/dev/null || return 0
	cd /consumer
	quietly make
	for program in ./consumer_*; do
		PTL3_HUGEPAGES=off yod -sz 3 $program >/dev/null || fail "$program fails"
	done
	PTL3_HUGEPAGES=off ./cci >/dev/null || fail "./cci fails"
	! ldd gasnet_pc_par gasnet_mak_par | grep "not found" || fail "libraries of GASNet are missing"
	./gasnet.sh /usr/bin $(find . -name 'gasnet_*_*' -type f ! -name '*.o') ||
		fail "GASNet does not run"
}

check_removed() {
	for file in $(cat /files); do
		[ -d "$file" ] || [ ! -e "$file" ] || fail "left behind: $file"
	done
	dpkg -l 'libportals*' 'libgasnet-portals*' libfabric-portals portals-tools 2>/dev/null | grep -q '^[^un+|D=]' &&
		fail "dpkg still knows them"
	! ldconfig -p | grep -e libportals -e libgasnet
}

inside() {
	packages='libfabric-portals libgasnet-portals-dev libgasnet-portals1 libportals-dev portals-tools libportals0'
	export DEBIAN_FRONTEND=noninteractive
	if [ "$base" = / ]; then
		quietly dpkg -i /debs/*.deb
	else
		quietly apt-get update
		quietly apt-get install -y --no-install-recommends /debs/*.deb
	fi
	said=$(dpkg -V $packages) || fail "$said"
	dpkg -L $packages >/files
	[ "$(wc -l </files)" -gt 80 ] || fail "too few files"
	check_library
	check_development
	quietly dpkg -P $packages
	check_removed
}

# ---- outside: the packages, and the root ----

make_packages() {
	cd "$src"
	rm -f "$build"/*.deb
	quietly cmake --preset deb
	quietly cmake --build --preset deb
	quietly cpack --preset deb
	[ "$(ls "$build"/*.deb | wc -l)" = 6 ] || fail "not six packages"
}

# The packages have no mail address, and CPack calls ldconfig beside the trigger.
ask_lintian() {
	command -v lintian >/dev/null || return 0
	said=$(lintian --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog \
		--suppress-tags maintscript-calls-ldconfig,initial-upload-closes-no-bugs \
		"$build"/*.deb 2>&1 | grep '^[EW]:') || return 0
	fail "$said"
}

make_root() {
	mount -t tmpfs tmpfs "$scratch" && mkdir "$scratch/upper" "$scratch/work" "$scratch/root" &&
		mount -t overlay overlay "$scratch/root" \
			-o "lowerdir=$base,upperdir=$scratch/upper,workdir=$scratch/work"
}

fill_root() {
	root=$scratch/root
	mkdir -p "$root/proc" "$root/dev" "$root/debs" "$root/consumer" "$root$src"
	mount -t proc proc "$root/proc"
	mount --rbind /dev "$root/dev"
	cp "$build"/*.deb "$root/debs"
	cp "$src"/tests/package/consumer/* "$root/consumer"
	cp "$0" "$root/deb.sh"
	cp /etc/resolv.conf "$root/etc/resolv.conf"
	mount -t tmpfs tmpfs "$root$src"
}

case $1 in
--inside)
	inside
	exit
	;;
--root)
	src=$2 base=$3 scratch=$4 build=$2/build/deb
	make_root 2>/dev/null || exit 77
	fill_root
	exec chroot "$scratch/root" /bin/sh /deb.sh --inside "$base"
	;;
esac

src=$(realpath "$1")
build=$src/build/deb
command -v dpkg-shlibdeps unshare file >/dev/null || skip "no dpkg-dev, unshare or file"
[ "$(id -u)" = 0 ] || skip "a root of its own needs root"
scratch=$(mktemp -d)
trap 'rmdir "$scratch"' EXIT
unshare -m true 2>/dev/null || skip "no mount namespaces here"
make_packages
ask_lintian
status=0
unshare -m "$0" --root "$src" "$base" "$scratch" || status=$?
[ $status != 77 ] || echo "skipped: no overlay of $base can be mounted"
exit $status
