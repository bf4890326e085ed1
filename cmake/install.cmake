# The installed files, in components: runtime (the library), tools (yod, benches) and
# development (headers, static library, manual pages of functions, files for CMake and
# pkg-config); gasnet and gasnet_development are runtime and development of GASNet.  With
# P3_DEB each is a package.
include(CMakePackageConfigHelpers)

set(P3_CONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Portals3)
set(P3_TOOLS yod ptlstat tracedump portals-info portalperf matchperf utcp_nid)

install(TARGETS portals EXPORT Portals3
  LIBRARY COMPONENT runtime NAMELINK_COMPONENT development
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS portals_static EXPORT Portals3
  ARCHIVE COMPONENT development INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS ${P3_TOOLS} RUNTIME COMPONENT tools)

if(P3_VALGRIND_TOO)
  install(TARGETS portals_valgrind LIBRARY
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/portals/valgrind COMPONENT tools NAMELINK_SKIP)
endif()

# Headers, also under the names that some of them have in other implementations.
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  PATTERN "gasnet*.h" EXCLUDE)

# find_package(Portals3), pkg-config portals3
install(EXPORT Portals3 NAMESPACE Portals3:: FILE Portals3Targets.cmake
  DESTINATION ${P3_CONFIG_DIR} COMPONENT development)
configure_package_config_file(cmake/Portals3Config.cmake.in Portals3Config.cmake
  INSTALL_DESTINATION ${P3_CONFIG_DIR})
write_basic_package_version_file(Portals3ConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/Portals3Config.cmake
  ${CMAKE_BINARY_DIR}/Portals3ConfigVersion.cmake
  DESTINATION ${P3_CONFIG_DIR} COMPONENT development)
file(RELATIVE_PATH P3_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
set(P3_PC_PREFIX \${pcfiledir}/${P3_PC_PREFIX})
string(REGEX REPLACE "/$" "" P3_PC_PREFIX ${P3_PC_PREFIX})
if(P3_DEB)
  set(P3_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
endif()
configure_file(cmake/portals3.pc.in portals3.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/portals3.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

# CCI: pkg-config cci, and -lcci, which is the same library.  An empty library that needs it
# would not do: ld takes no symbols from a library that only another library needs.
set(P3_CCI_VERSION 2.1.0) # of the interface, as programs compare it
configure_file(cmake/cci.pc.in cci.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/cci.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/links)
foreach(suffix SHARED STATIC)
  file(CREATE_LINK libportals${CMAKE_${suffix}_LIBRARY_SUFFIX}
    ${CMAKE_BINARY_DIR}/links/libcci${CMAKE_${suffix}_LIBRARY_SUFFIX} SYMBOLIC)
  install(FILES ${CMAKE_BINARY_DIR}/links/libcci${CMAKE_${suffix}_LIBRARY_SUFFIX}
    DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
endforeach()
include(cmake/gasnet.cmake)

# Manual pages: of functions from the headers, of programs by help2man, if it is
# installed.
set(P3_MAN ${CMAKE_BINARY_DIR}/man)
file(GLOB P3_MAN_EXAMPLES ${CMAKE_SOURCE_DIR}/examples/*.[ch]
  ${CMAKE_SOURCE_DIR}/examples/gasnet/*.[ch])
set(P3_MAN_SOURCES ${CMAKE_SOURCE_DIR}/docs/settings.md ${CMAKE_SOURCE_DIR}/docs/gasnet.md
  ${P3_MAN_EXAMPLES} ${CMAKE_SOURCE_DIR}/docs/tutorial.md
  ${CMAKE_SOURCE_DIR}/include/portals3.h
  ${CMAKE_SOURCE_DIR}/include/portals3_runtime.h ${CMAKE_SOURCE_DIR}/include/portals3x.h
  ${CMAKE_SOURCE_DIR}/include/cnos_mpi_os.h ${CMAKE_SOURCE_DIR}/include/p3nal_tcp.h
  ${CMAKE_SOURCE_DIR}/include/cci.h ${CMAKE_SOURCE_DIR}/include/gasnet.h
  ${CMAKE_SOURCE_DIR}/include/gasnet_vis.h ${CMAKE_SOURCE_DIR}/include/gasnet_coll.h
  ${CMAKE_SOURCE_DIR}/include/gasnet_tools.h)
set(P3_MAN_TOOLS ${P3_TOOLS} gasnetrun_portals)
list(SORT P3_MAN_TOOLS)
list(JOIN P3_MAN_TOOLS " " P3_MAN_TOOL_WORDS)
string(TIMESTAMP P3_MAN_DATE %Y-%m-%d UTC) # heeds SOURCE_DATE_EPOCH
add_custom_command(OUTPUT ${P3_MAN}/functions.stamp
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${P3_MAN}/man3 ${P3_MAN}/man7
  COMMAND ${CMAKE_COMMAND} -E make_directory ${P3_MAN}/man3 ${P3_MAN}/man7
  COMMAND ${CMAKE_SOURCE_DIR}/cmake/man.py ${P3_MAN} ${P3_MAN_DATE} ${P3_MAN_TOOL_WORDS}
    ${P3_MAN_SOURCES}
  COMMAND ${CMAKE_COMMAND} -E touch ${P3_MAN}/functions.stamp
  DEPENDS ${P3_MAN_SOURCES} ${CMAKE_SOURCE_DIR}/cmake/man.py VERBATIM)
set(P3_MAN_MADE ${P3_MAN}/functions.stamp)

find_program(PYTHON3 python3 REQUIRED) # cmake/man.py
find_program(HELP2MAN help2man)
file(MAKE_DIRECTORY ${P3_MAN}/man1)
if(HELP2MAN AND NOT P3_SANITIZE AND NOT P3_VALGRIND)
  set(P3_TOOL_DIR ${CMAKE_BINARY_DIR}/bin)
  foreach(tool ${P3_MAN_TOOLS})
    configure_file(cmake/man/help.in ${P3_MAN}/help/${tool} @ONLY
      FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
    # Each page refers to all tools.
    file(READ ${CMAKE_SOURCE_DIR}/cmake/man/${tool}.h2m h2m)
    string(REGEX REPLACE "\n\\[SEE ALSO\\].*" "" h2m "${h2m}")
    set(see ${P3_MAN_TOOLS})
    list(REMOVE_ITEM see ${tool})
    list(TRANSFORM see REPLACE "(.+)" ".BR \\1 (1),\n")
    list(JOIN see "" see)
    file(CONFIGURE OUTPUT ${P3_MAN}/help/${tool}.h2m @ONLY
      CONTENT "@h2m@\n[SEE ALSO]\n@see@.BR portals3 (7)\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS cmake/man/${tool}.h2m)
    set(made ${P3_TOOL_DIR}/${tool})
    if(TARGET ${tool})
      set(made ${tool})
    endif()
    add_custom_command(OUTPUT ${P3_MAN}/man1/${tool}.1
      COMMAND ${CMAKE_COMMAND} -E env PTL3_HUGEPAGES=off ${HELP2MAN}
        --no-info --output=${P3_MAN}/man1/${tool}.1 --manual=libportals
        --source=libportals "--version-string=libportals ${PROJECT_VERSION}"
        --include=${P3_MAN}/help/${tool}.h2m ${P3_MAN}/help/${tool}
      DEPENDS ${made} portals ${P3_MAN}/help/${tool}.h2m ${P3_MAN}/help/${tool} VERBATIM)
    list(APPEND P3_MAN_MADE ${P3_MAN}/man1/${tool}.1)
  endforeach()
endif()
add_custom_target(man ALL DEPENDS ${P3_MAN_MADE})

# Install the pages of functions, and the overviews, from a folder.
function(p3_install_pages from)
  install(DIRECTORY ${from}/man3 ${from}/man7 DESTINATION ${CMAKE_INSTALL_MANDIR}
    COMPONENT development PATTERN "gasnet*" EXCLUDE PATTERN "GASNET*" EXCLUDE)
  install(DIRECTORY ${from}/man3 ${from}/man7 DESTINATION ${CMAKE_INSTALL_MANDIR}
    COMPONENT gasnet_development FILES_MATCHING PATTERN "gasnet*" PATTERN "GASNET*")
endfunction()
if(P3_DEB)
  include(cmake/deb.cmake)
else()
  install(DIRECTORY ${P3_MAN}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT tools)
  p3_install_pages(${P3_MAN})
endif()
set(P3_ZSH site-functions)
if(P3_DEB) # where Debian's zsh looks for those of packages
  set(P3_ZSH vendor-completions)
endif()
foreach(tool yod ptlstat tracedump portals-info)
  install(FILES launcher/tools/completion.bash
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ${tool}
    COMPONENT tools)
endforeach()
install(FILES launcher/tools/completion.zsh
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${P3_ZSH} RENAME _yod COMPONENT tools)

# Documents for users, the examples, and the tutorial's programs: sources, to be compiled with
# pkg-config.  The folders lie as in the source tree, so that links between documents hold;
# docs.awk turns those to pages that are not installed into text.
set(P3_EXAMPLES_DIR ${CMAKE_INSTALL_DATADIR}/doc/libportals)
if(P3_DEB)
  set(P3_EXAMPLES_DIR ${CMAKE_INSTALL_DATADIR}/doc/libportals-dev)
endif()
install(DIRECTORY examples DESTINATION ${P3_EXAMPLES_DIR} COMPONENT development
  PATTERN CMakeLists.txt EXCLUDE)
install(FILES cmake/documents.md RENAME README.md DESTINATION ${P3_EXAMPLES_DIR}
  COMPONENT development)
set(P3_DOCUMENTS tutorial completions operation settings porting compatibility many-hosts cci
  gasnet libfabric performance comparison conformance conformance-cci conformance-gasnet
  conformance-ofi)
list(TRANSFORM P3_DOCUMENTS APPEND .md)
file(GLOB P3_DOCUMENT_PICTURES RELATIVE ${CMAKE_SOURCE_DIR}/docs ${CMAKE_SOURCE_DIR}/docs/img/*.svg)
list(JOIN P3_DOCUMENTS " " P3_DOCUMENT_WORDS)
list(JOIN P3_DOCUMENT_PICTURES " " P3_PICTURE_WORDS)
foreach(page ${P3_DOCUMENTS})
  add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/docs/${page}
    COMMAND awk -v "installed=${P3_DOCUMENT_WORDS} ${P3_PICTURE_WORDS}"
      -f ${CMAKE_SOURCE_DIR}/cmake/docs.awk ${CMAKE_SOURCE_DIR}/docs/${page}
      > ${CMAKE_BINARY_DIR}/docs/${page}
    DEPENDS docs/${page} cmake/docs.awk VERBATIM)
  list(APPEND P3_DOCUMENTS_MADE ${CMAKE_BINARY_DIR}/docs/${page})
endforeach()
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/docs)
add_custom_target(documents ALL DEPENDS ${P3_DOCUMENTS_MADE})
install(FILES ${P3_DOCUMENTS_MADE} DESTINATION ${P3_EXAMPLES_DIR}/docs COMPONENT development)
install(DIRECTORY docs/img DESTINATION ${P3_EXAMPLES_DIR}/docs COMPONENT development)
install(DIRECTORY ${CMAKE_BINARY_DIR}/examples/tutorial-sources/
  DESTINATION ${P3_EXAMPLES_DIR}/examples/tutorial COMPONENT development)

# Empty libraries for old configure scripts, which name the libraries of the reference
# implementation.  To install only them: cmake --install BUILD --component old.
set(P3_OLD_COMPONENT old EXCLUDE_FROM_ALL)
if(P3_OLD_LIBRARIES)
  set(P3_OLD_COMPONENT development)
endif()
foreach(old p3api p3lib p3rt p3utcp pct)
  file(WRITE ${CMAKE_BINARY_DIR}/old/lib${old}.a "!<arch>\n")
  install(FILES ${CMAKE_BINARY_DIR}/old/lib${old}.a DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT ${P3_OLD_COMPONENT})
endforeach()
