if(NOT P3_GASNET_SEGMENT STREQUAL "FAST") # it uses the segments as memory
  return()
endif()
# A first test of GASNet over Portals, in each mode of threads and with each local side.
foreach(mode seq par parsync seq_debug par_debug)
  add_executable(gasnet_smoke_${mode} ${CMAKE_CURRENT_LIST_DIR}/smoke.c)
  target_link_libraries(gasnet_smoke_${mode} PRIVATE gasnet_${mode} p3_build)
endforeach()

function(gasnet_smoke_test name mode nodes)
  p3_add_test(gasnet_smoke_${name} gasnet
    env ${ARGN} $<TARGET_FILE:yod> -sz ${nodes} $<TARGET_FILE:gasnet_smoke_${mode}> 16)
endfunction()
gasnet_smoke_test(seq_1 seq 1)
gasnet_smoke_test(seq_2 seq 2)
gasnet_smoke_test(seq_3 seq 3)
gasnet_smoke_test(par_2 par 2)
gasnet_smoke_test(parsync_2 parsync 2)
gasnet_smoke_test(seq_debug_2 seq_debug 2)
gasnet_smoke_test(par_debug_2 par_debug 2)
foreach(local bounce tmpmd firehose)
  gasnet_smoke_test(${local} seq 2 GASNET_PORTAL_LOCAL=${local})
endforeach()
gasnet_smoke_test(least seq 3 GASNET_PORTAL_MSG_LIMIT=12 GASNET_PORTAL_CRED_PER_NODE=8
  GASNET_PORTAL_BANKED_CREDITS=0 GASNET_PORTAL_SB_CHUNKS=2 GASNET_PORTAL_RPL_CHUNKS=1)
gasnet_smoke_test(dedicated seq 2 PTL3_MODE=dedicated)
p3_quick(gasnet_smoke_seq_2 gasnet_smoke_par_2)
