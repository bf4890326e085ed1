# Further builds of the shared library.  Each has the same calls and the same segments.
#
# p3_variant(NAME DEFINITION FOLDER LINK_OPTIONS COMPILE_OPTIONS...)
function(p3_variant name definition folder link)
  add_library(${name} SHARED ${SHM_SOURCES} ${NIC_SOURCES} ${LIB_SOURCES})
  target_compile_definitions(${name} PRIVATE ${definition})
  target_compile_options(${name} PRIVATE ${ARGN})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE
    p3_build Threads::Threads ${NUMA_LIBRARY} ${URCU_LIBRARY} ${CMAKE_DL_LIBS})
  target_link_options(${name} PRIVATE ${link})
  set_target_properties(${name} PROPERTIES OUTPUT_NAME portals
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    LINK_DEPENDS ${CMAKE_SOURCE_DIR}/lib/libportals.map
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${folder})
endfunction()

# The library for programs that run under valgrind: it announces its atomics to helgrind and
# drd, and its waiting loops let other threads run.  yod chooses it (launcher/yod/main.c).
# Builds for another purpose (sanitizers, faults) have none.
include(CheckIncludeFile)
check_include_file(valgrind/helgrind.h P3_HAVE_HELGRIND_H)
file(RELATIVE_PATH P3_VALGRIND_DIR ${CMAKE_INSTALL_FULL_BINDIR}
  ${CMAKE_INSTALL_FULL_LIBDIR}/portals/valgrind)
set(P3_VALGRIND_TOO ${P3_HAVE_HELGRIND_H})
if(P3_SANITIZE OR P3_FUZZ OR P3_FAULTS OR P3_VALGRIND)
  set(P3_VALGRIND_TOO OFF)
endif()
get_target_property(P3_LINK_OPTIONS portals LINK_OPTIONS)
if(P3_VALGRIND_TOO)
  set(P3_VALGRIND_LINK ${P3_LINK_OPTIONS})
  list(FILTER P3_VALGRIND_LINK EXCLUDE REGEX "^-f")
  p3_variant(portals_valgrind P3_VALGRIND bin/${P3_VALGRIND_DIR} "${P3_VALGRIND_LINK}" -O1 -g1)
endif()

# The library for measurements of the machine's parts, with the optimizations of the ordinary
# one: it leaves out the parts that PTL3_ABLATE lists (shm/variant.h).  bench/papers/all loads
# it by LD_LIBRARY_PATH.  It is not installed.
if(P3_ABLATION)
  p3_variant(portals_ablation P3_ABLATION ablation "${P3_LINK_OPTIONS}" ${P3_LTO}
    -fno-fat-lto-objects)
endif()
