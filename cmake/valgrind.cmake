# The library for programs that run under valgrind: it has the same calls and the same
# segments, but it announces its atomics to helgrind and drd, and its waiting loops let
# other threads run.  yod chooses it (launcher/yod/main.c).  Builds for another purpose
# (sanitizers, faults) have none.
include(CheckIncludeFile)
check_include_file(valgrind/helgrind.h P3_HAVE_HELGRIND_H)
file(RELATIVE_PATH P3_VALGRIND_DIR ${CMAKE_INSTALL_FULL_BINDIR}
  ${CMAKE_INSTALL_FULL_LIBDIR}/portals/valgrind)
set(P3_VALGRIND_TOO ${P3_HAVE_HELGRIND_H})
if(P3_SANITIZE OR P3_FUZZ OR P3_FAULTS OR P3_VALGRIND)
  set(P3_VALGRIND_TOO OFF)
endif()

if(P3_VALGRIND_TOO)
  add_library(portals_valgrind SHARED ${SHM_SOURCES} ${NIC_SOURCES} ${LIB_SOURCES})
  target_compile_definitions(portals_valgrind PRIVATE P3_VALGRIND)
  target_compile_options(portals_valgrind PRIVATE -O1 -g1)
  target_include_directories(portals_valgrind PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(portals_valgrind PRIVATE
    p3_build Threads::Threads ${NUMA_LIBRARY} ${URCU_LIBRARY} ${CMAKE_DL_LIBS})
  get_target_property(P3_LINK_OPTIONS portals LINK_OPTIONS)
  list(FILTER P3_LINK_OPTIONS EXCLUDE REGEX "^-f")
  target_link_options(portals_valgrind PRIVATE ${P3_LINK_OPTIONS})
  set_target_properties(portals_valgrind PROPERTIES OUTPUT_NAME portals
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    LINK_DEPENDS ${CMAKE_SOURCE_DIR}/lib/libportals.map
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin/${P3_VALGRIND_DIR})
endif()
