# The installed files of GASNet over Portals, in two components, gasnet and
# gasnet_development: the libraries of each mode, static and shared; headers; the files for
# pkg-config, make and CMake.  The starter is one of the tools.
file(STRINGS include/gasnet_config.h GASNET_VERSION REGEX "define GASNETI_RELEASE_STR ")
string(REGEX REPLACE ".*\"(.*)\"" "\\1" GASNET_VERSION "${GASNET_VERSION}")
get_target_property(GASNET_SOVERSION gasnet_seq_shared SOVERSION)
set(GASNET_DEFINES_seq "-DGASNET_SEQ")
set(GASNET_DEFINES_par "-DGASNET_PAR -D_REENTRANT -D_GNU_SOURCE")
set(GASNET_DEFINES_parsync "-DGASNET_PARSYNC -D_REENTRANT -D_GNU_SOURCE")
set(GASNET_SEGMENT_DEFINE "")
if(NOT P3_GASNET_SEGMENT STREQUAL "FAST")
  set(GASNET_SEGMENT_DEFINE " -DGASNET_SEGMENT_${P3_GASNET_SEGMENT}")
endif()
set(GASNET_CXX c++)
if(CMAKE_CXX_COMPILER)
  set(GASNET_CXX ${CMAKE_CXX_COMPILER})
endif()
# A fragment is in the tree that it describes, wherever that was moved to.
set(GASNET_FRAGMENTS ${CMAKE_INSTALL_INCLUDEDIR}/portals-conduit)
file(RELATIVE_PATH GASNET_MAKE_PREFIX /${GASNET_FRAGMENTS} /)
string(REGEX REPLACE "/$" "" GASNET_MAKE_PREFIX ${GASNET_MAKE_PREFIX})
set(GASNET_MAKE_PREFIX
  "$(abspath $(dir $(lastword $(MAKEFILE_LIST)))${GASNET_MAKE_PREFIX})")
string(REPLACE "/..)" ")" GASNET_TOOLS_MAKE_PREFIX ${GASNET_MAKE_PREFIX})
# Programs find the shared libraries of that tree, but for Debian's, which the loader knows.
set(GASNET_RPATH " -Wl,-rpath,$(GASNET_PREFIX)/${CMAKE_INSTALL_LIBDIR}")
set(GASNET_PC_RPATH " -Wl,-rpath,\${libdir}")
if(P3_DEB)
  set(GASNET_MAKE_PREFIX ${CMAKE_INSTALL_PREFIX})
  set(GASNET_TOOLS_MAKE_PREFIX ${CMAKE_INSTALL_PREFIX})
  set(GASNET_RPATH)
  set(GASNET_PC_RPATH)
endif()

foreach(mode seq par parsync)
  foreach(suffix "" "-debug")
    string(REPLACE "-" "_" tail "${suffix}")
    set(GASNET_LIBRARY ${mode}${suffix})
    set(GASNET_DEFINES "${GASNET_DEFINES_${mode}}${GASNET_SEGMENT_DEFINE}")
    set(GASNET_OPT_CFLAGS -O3)
    if(suffix)
      string(APPEND GASNET_DEFINES " -DGASNET_DEBUG")
      set(GASNET_OPT_CFLAGS -g)
    endif()
    # Portals3::gasnet_MODE is the shared library, as Portals3::portals is.
    set(target gasnet_${mode}${tail})
    set_target_properties(${target}_shared PROPERTIES EXPORT_NAME ${target})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${target}_static)
    add_library(Portals3::${target} ALIAS ${target}_shared)
    add_library(Portals3::${target}_static ALIAS ${target})
    install(TARGETS ${target} EXPORT Portals3Gasnet ARCHIVE COMPONENT gasnet_development
      INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    install(TARGETS ${target}_shared EXPORT Portals3Gasnet
      LIBRARY COMPONENT gasnet NAMELINK_COMPONENT gasnet_development
      INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    configure_file(cmake/gasnet.pc.in gasnet-portals-${GASNET_LIBRARY}.pc @ONLY)
    configure_file(cmake/gasnet.mak.in portals-${GASNET_LIBRARY}.mak @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/gasnet-portals-${GASNET_LIBRARY}.pc
      DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT gasnet_development)
    install(FILES ${CMAKE_BINARY_DIR}/portals-${GASNET_LIBRARY}.mak
      DESTINATION ${GASNET_FRAGMENTS} COMPONENT gasnet_development)
  endforeach()
endforeach()
foreach(mode seq par)
  set(GASNET_LIBRARY ${mode})
  get_target_property(GASNET_DEFINES gasnet_tools_${mode} INTERFACE_COMPILE_DEFINITIONS)
  set(GASNET_DEFINES "-D${GASNET_DEFINES}")
  if(mode STREQUAL par)
    string(APPEND GASNET_DEFINES " -D_REENTRANT")
  endif()
  foreach(kind pc mak)
    configure_file(cmake/gasnet_tools.${kind}.in gasnet_tools-${mode}.${kind} @ONLY)
  endforeach()
  install(FILES ${CMAKE_BINARY_DIR}/gasnet_tools-${mode}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT gasnet_development)
  install(FILES ${CMAKE_BINARY_DIR}/gasnet_tools-${mode}.mak
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT gasnet_development)
  add_library(Portals3::gasnet_tools_${mode} ALIAS gasnet_tools_${mode})
  install(TARGETS gasnet_tools_${mode} EXPORT Portals3Gasnet
    ARCHIVE COMPONENT gasnet_development
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endforeach()
install(EXPORT Portals3Gasnet NAMESPACE Portals3:: FILE Portals3GasnetTargets.cmake
  DESTINATION ${P3_CONFIG_DIR} COMPONENT gasnet_development)
file(GLOB GASNET_HEADERS ${CMAKE_SOURCE_DIR}/include/gasnet*.h)
install(FILES ${GASNET_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT gasnet_development)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/portals-conduit/
  DESTINATION ${GASNET_FRAGMENTS} COMPONENT gasnet_development)

# The starter looks for yod in its own folder, here and where it is installed.
configure_file(cmake/gasnetrun_portals.in bin/gasnetrun_portals @ONLY
  FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
  WORLD_READ WORLD_EXECUTE)
install(PROGRAMS ${CMAKE_BINARY_DIR}/bin/gasnetrun_portals
  DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
