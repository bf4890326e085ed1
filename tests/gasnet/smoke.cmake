# A first test of GASNet over Portals, in each mode of threads.
foreach(mode seq par parsync seq_debug par_debug)
  add_executable(gasnet_smoke_${mode} ${CMAKE_CURRENT_LIST_DIR}/smoke.c)
  target_link_libraries(gasnet_smoke_${mode} PRIVATE gasnet_${mode} portals p3_build)
endforeach()
