# The consumer of GASNet in one mode, by the fragment for make: make -f gasnet.mk MODE=seq
src = $(dir $(firstword $(MAKEFILE_LIST)))
strict = -Wall -Wextra -pedantic-errors -Werror
include $(shell pkg-config --variable=includedir portals3)/portals-conduit/portals-$(MODE).mak
libdir := $(shell pkg-config --variable=libdir portals3)

gasnet_mak_$(MODE): $(src)gasnet.c
	$(GASNET_CC) -std=c99 $(strict) $(GASNET_CPPFLAGS) $(GASNET_CFLAGS) -c $< -o $@.o
	$(GASNET_LD) $(GASNET_LDFLAGS) $@.o -o $@ $(GASNET_LIBS) -Wl,-rpath,$(libdir)
gasnet_cxx_$(MODE): $(src)gasnet.c
	$(GASNET_CXX) -std=c++17 $(strict) $(GASNET_CXXCPPFLAGS) $(GASNET_CXXFLAGS) \
		-x c++ $< -o $@ -x none $(GASNET_LIBS) -Wl,-rpath,$(libdir)
