# The library for measurements of the machine's parts: it is the ordinary one with the same
# optimizations, and it leaves out the parts that PTL3_ABLATE lists (shm/variant.h).
# bench/papers/all loads it by LD_LIBRARY_PATH.  It is not installed.
if(P3_ABLATION)
  add_library(portals_ablation SHARED ${SHM_SOURCES} ${NIC_SOURCES} ${LIB_SOURCES})
  target_compile_definitions(portals_ablation PRIVATE P3_ABLATION)
  target_compile_options(portals_ablation PRIVATE ${P3_LTO} -fno-fat-lto-objects)
  target_include_directories(portals_ablation PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(portals_ablation PRIVATE
    p3_build Threads::Threads ${NUMA_LIBRARY} ${URCU_LIBRARY} ${CMAKE_DL_LIBS})
  get_target_property(P3_LINK_OPTIONS portals LINK_OPTIONS)
  target_link_options(portals_ablation PRIVATE ${P3_LINK_OPTIONS})
  set_target_properties(portals_ablation PROPERTIES OUTPUT_NAME portals
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    LINK_DEPENDS ${CMAKE_SOURCE_DIR}/lib/libportals.map
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/ablation)
endif()
