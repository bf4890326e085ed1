#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Finds GASNet as the configure scripts of its clients do: gasnet_configure.sh
# --with-gasnet=DIR [--with-gasnet-mode=MODE]; makes ./gasnet_configured.mk, with which make
# builds ./gasnet_configured.
gasnet=/usr conduit=portals mode=seq
for option in "$@"; do
	case $option in
	--with-gasnet=*) gasnet=${option#*=} ;;
	--with-gasnet-mode=*) mode=${option#*=} ;;
	*) echo "configure: error: unrecognized option: '$option'" && exit 1 ;;
	esac
done
src=$(dirname "$0")
CC=${CC:-cc}
CPPFLAGS=-I$gasnet/include

# check NAME COMMAND...: say whether the command succeeds
check() {
	printf 'checking %s... ' "$1"
	shift
	"$@" 2>conftest.err && echo yes && return
	echo no
	cat conftest.err
	exit 1
}

compile() { # text
	printf '%s\n' "$1" >conftest.c
	$CC $CPPFLAGS -c conftest.c -o conftest.o
}

for header in gasnet_config.h $conduit-conduit/gasnet_core.h; do
	check "for $header" compile "#include <$header>"
done
check "for GASNet 1.18 or later" compile '#include <gasnet_config.h>
#if !defined GASNET_RELEASE_VERSION_PATCH || GASNET_RELEASE_VERSION_MAJOR * 1000 + GASNET_RELEASE_VERSION_MINOR < 1018
#error GASNet is too old
#endif'
fragment=$gasnet/include/$conduit-conduit/$conduit-$mode.mak
check "for $fragment" test -r "$fragment"
PKG_CONFIG_PATH=$(dirname "$(find "$gasnet"/lib* -name "gasnet-$conduit-$mode.pc")"):$PKG_CONFIG_PATH
export PKG_CONFIG_PATH
check "for gasnet-$conduit-$mode 1.18 or later" \
	pkg-config --atleast-version=1.18 "gasnet-$conduit-$mode"
tools=$(case $mode in seq) echo seq ;; *) echo par ;; esac)
cat >gasnet_configured.mk <<END
include $fragment
include $gasnet/include/gasnet_tools-$tools.mak
all: gasnet_configured gasnet_only_tools
gasnet_configured: $src/gasnet.c
	\$(GASNET_CC) \$(GASNET_CPPFLAGS) \$(GASNET_CFLAGS) -DNDEBUG \$< -o \$@ \\
		\$(GASNET_LDFLAGS) \$(GASNET_LIBS)
gasnet_only_tools:
	echo 'int main(void) { return gasnett_cpu_count() < 1; }' | \\
		\$(GASNETTOOLS_CC) \$(GASNETTOOLS_CPPFLAGS) \$(GASNETTOOLS_CFLAGS) \\
		-include gasnet_tools.h -x c - -o only_tools \\
		-x none \$(GASNETTOOLS_LDFLAGS) \$(GASNETTOOLS_LIBS)
	./only_tools
END
