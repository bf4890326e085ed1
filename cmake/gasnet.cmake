# The installed files of GASNet over Portals: libraries of each mode, the files for
# pkg-config and make, and the starter.  Headers are installed with the others.
set(GASNET_DEFINES_seq "-DGASNET_SEQ")
set(GASNET_DEFINES_par "-DGASNET_PAR -D_REENTRANT -D_GNU_SOURCE")
set(GASNET_DEFINES_parsync "-DGASNET_PARSYNC -D_REENTRANT -D_GNU_SOURCE")
set(GASNET_SEGMENT_DEFINE "")
if(NOT P3_GASNET_SEGMENT STREQUAL "FAST")
  set(GASNET_SEGMENT_DEFINE " -DGASNET_SEGMENT_${P3_GASNET_SEGMENT}")
endif()

foreach(mode seq par parsync)
  foreach(suffix "" "-debug")
    string(REPLACE "-" "_" tail "${suffix}")
    set(GASNET_LIBRARY ${mode}${suffix})
    set(GASNET_DEFINES "${GASNET_DEFINES_${mode}}${GASNET_SEGMENT_DEFINE}")
    if(suffix)
      string(APPEND GASNET_DEFINES " -DGASNET_DEBUG")
    endif()
    install(TARGETS gasnet_${mode}${tail} ARCHIVE COMPONENT development)
    install(TARGETS gasnet_${mode}${tail}_shared
      LIBRARY COMPONENT runtime NAMELINK_COMPONENT development)
    configure_file(cmake/gasnet.pc.in gasnet-portals-${GASNET_LIBRARY}.pc @ONLY)
    configure_file(cmake/gasnet.mak.in portals-${GASNET_LIBRARY}.mak @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/gasnet-portals-${GASNET_LIBRARY}.pc
      DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
    install(FILES ${CMAKE_BINARY_DIR}/portals-${GASNET_LIBRARY}.mak
      DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/portals-conduit COMPONENT development)
  endforeach()
endforeach()
install(TARGETS gasnet_tools_seq gasnet_tools_par ARCHIVE COMPONENT development)
install(PROGRAMS cmake/gasnetrun_portals DESTINATION ${CMAKE_INSTALL_BINDIR}
  COMPONENT tools)
