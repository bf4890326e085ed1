# Debian packages: cmake --preset deb && cmake --build --preset deb && cpack --preset
# deb
#
# Pages and changelog are compressed, without a time in them; copyright is in each
# package.  GASNet has packages of its own, since its libraries have their own soname, which
# changes at other times than that of libportals, and since few programs want them.
set(P3_PACKAGES runtime=libportals${PROJECT_VERSION_MAJOR} tools=portals-tools
  development=libportals-dev gasnet=libgasnet-portals${GASNET_SOVERSION}
  gasnet_development=libgasnet-portals-dev)
if(P3_OFI)
  list(APPEND P3_PACKAGES libfabric=libfabric-portals)
endif()
set(P3_CHANGES ${CMAKE_BINARY_DIR}/changelog.Debian)
string(TIMESTAMP P3_CHANGE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file(cmake/deb/changelog.in ${P3_CHANGES} @ONLY)
file(READ LICENSE P3_LICENSE)
string(STRIP "${P3_LICENSE}" P3_LICENSE)
string(REPLACE "\n\n" "\n.\n" P3_LICENSE "${P3_LICENSE}")
string(REPLACE "\n" "\n " P3_LICENSE " ${P3_LICENSE}")
configure_file(cmake/deb/copyright.in ${CMAKE_BINARY_DIR}/copyright @ONLY)

set(P3_MAN_PACKED ${CMAKE_BINARY_DIR}/man.gz)
add_custom_command(OUTPUT packed.stamp
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${P3_MAN_PACKED}
  COMMAND ${CMAKE_COMMAND} -E copy_directory ${P3_MAN} ${P3_MAN_PACKED}
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${P3_MAN_PACKED}/functions.stamp ${P3_MAN_PACKED}/help
  COMMAND gzip -9nr ${P3_MAN_PACKED}
  COMMAND gzip -9nkf ${P3_CHANGES}
  COMMAND ${CMAKE_COMMAND} -E touch packed.stamp
  DEPENDS ${P3_MAN_MADE} ${P3_CHANGES} VERBATIM)
add_custom_target(packed ALL DEPENDS packed.stamp)
if(P3_OFI)
  add_dependencies(packed portals_fi)
endif()
install(DIRECTORY ${P3_MAN_PACKED}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT tools)
p3_install_pages(${P3_MAN_PACKED})

set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL runtime tools development gasnet gasnet_development)
if(P3_OFI)
  list(APPEND CPACK_COMPONENTS_ALL libfabric)
endif()
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_CONTACT "the libportals authors <libportals@localhost>")
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${CPACK_PACKAGE_CONTACT})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)

foreach(pair ${P3_PACKAGES})
  string(REGEX MATCH "(.*)=(.*)" whole ${pair})
  set(component ${CMAKE_MATCH_1})
  set(package ${CMAKE_MATCH_2})
  string(TOUPPER ${component} COMPONENT)
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_NAME ${package})
  install(FILES ${CMAKE_BINARY_DIR}/copyright ${P3_CHANGES}.gz
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component})
endforeach()
set(CPACK_DEBIAN_GASNET_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_GASNET_PACKAGE_DEPENDS
  "libportals${PROJECT_VERSION_MAJOR} (>= ${PROJECT_VERSION})")
set(P3_THIS "(= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
file(WRITE ${CMAKE_BINARY_DIR}/shlibs "libportals ${PROJECT_VERSION_MAJOR} "
  "libportals${PROJECT_VERSION_MAJOR} (>= ${PROJECT_VERSION})\n")
file(WRITE ${CMAKE_BINARY_DIR}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA
  ${CMAKE_BINARY_DIR}/shlibs ${CMAKE_BINARY_DIR}/triggers)
set(GASNET_SHLIBS)
foreach(mode seq par parsync)
  foreach(suffix "" "-debug")
    string(APPEND GASNET_SHLIBS "libgasnet-portals-${mode}${suffix} ${GASNET_SOVERSION} "
      "libgasnet-portals${GASNET_SOVERSION} (>= ${PROJECT_VERSION})\n")
  endforeach()
endforeach()
file(WRITE ${CMAKE_BINARY_DIR}/gasnet/shlibs ${GASNET_SHLIBS})
file(WRITE ${CMAKE_BINARY_DIR}/gasnet/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_GASNET_PACKAGE_CONTROL_EXTRA
  ${CMAKE_BINARY_DIR}/gasnet/shlibs ${CMAKE_BINARY_DIR}/gasnet/triggers)
set(CPACK_DEBIAN_GASNET_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_GASNET_DEVELOPMENT_PACKAGE_DEPENDS
  "libgasnet-portals${GASNET_SOVERSION} ${P3_THIS}, libportals-dev ${P3_THIS}")
set(CPACK_DEBIAN_GASNET_DEVELOPMENT_PACKAGE_SUGGESTS portals-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS
  "libportals${PROJECT_VERSION_MAJOR} (>= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_LIBFABRIC_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBFABRIC_PACKAGE_DEPENDS
  "libportals${PROJECT_VERSION_MAJOR} (>= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS libjemalloc2)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS libportals-dev) # the documents
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "libportals${PROJECT_VERSION_MAJOR} ${P3_THIS}, libnuma-dev, liburcu-dev")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS portals-tools)

set(P3_ABOUT "A Portals 3.3 network in user space: a job is a number of processes, on one
 machine or on several.  On one machine they send, receive and complete
 messages through shared memory, without a system call.")
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "Portals 3.3 message passing (library)\n${P3_ABOUT}")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "Portals 3.3 message passing (launcher and benchmarks)
${P3_ABOUT}")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Portals 3.3 message passing (development)
${P3_ABOUT}")
set(CPACK_COMPONENT_LIBFABRIC_DESCRIPTION "libfabric's provider portals
 Programs of libfabric, such as Open MPI by its mtl/ofi, use the network of
 libportals: matching in the network interface, and progress without calls.")
set(GASNET_ABOUT "GASNet-1 is the network of languages with a partitioned global address space:
 active messages, and puts and gets between the memories of the processes of a
 job, here by libportals, on one machine or on several.")
set(CPACK_COMPONENT_GASNET_DESCRIPTION "GASNet-1 over Portals 3.3 (libraries)\n${GASNET_ABOUT}")
set(CPACK_COMPONENT_GASNET_DEVELOPMENT_DESCRIPTION
  "GASNet-1 over Portals 3.3 (development)\n${GASNET_ABOUT}")
include(CPack)
