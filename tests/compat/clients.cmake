# Clients of each historic kind: a layer, and a program above it.
if(P3_SANITIZE OR P3_VALGRIND)
  set(COMPAT_mpi_work "1 65536")
  set(COMPAT_rpc_work 3)
  set(COMPAT_onesided_work 100)
else()
  set(COMPAT_mpi_work 6)
  set(COMPAT_rpc_work 9)
  set(COMPAT_onesided_work 1000)
endif()

add_library(compat_job STATIC job.c)
target_link_libraries(compat_job PUBLIC portals p3_build)
foreach(kind mpi rpc onesided)
  add_executable(compat_${kind} ${kind}_program.c ${kind}_layer.c)
  target_link_libraries(compat_${kind} PRIVATE compat_job)
endforeach()

# compat_client(kind name nodes options-of-job.h...): one test under yod
function(compat_client kind name nodes)
  p3_add_test(compat_${kind}_${name} compat
    ${CMAKE_CURRENT_SOURCE_DIR}/client.sh yod ${kind} ${nodes} "${COMPAT_${kind}_work}" ${ARGN})
  set_property(TEST compat_${kind}_${name} APPEND PROPERTY ENVIRONMENT
    "COMPAT_BIN=${CMAKE_CURRENT_BINARY_DIR}")
endfunction()

foreach(kind mpi rpc onesided)
  compat_client(${kind} 2 2 -i default -r cnos)
  compat_client(${kind} 4_cray 4 -i bridge -r p3rt)
endforeach()
if(NOT P3_SANITIZE AND NOT P3_VALGRIND)
  foreach(kind mpi rpc onesided)
    compat_client(${kind} 8 8 -i default -r p3rt)
  endforeach()
endif()

# compat_by_hand(starter kind processes options-of-job.h...)
function(compat_by_hand starter kind processes)
  set(name compat_${kind}_${starter}_${processes})
  p3_add_test(${name} compat
    ${CMAKE_CURRENT_SOURCE_DIR}/client.sh ${starter} ${kind} ${processes} "${COMPAT_${kind}_work}" ${ARGN})
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "COMPAT_BIN=${CMAKE_CURRENT_BINARY_DIR}")
  p3_dev_shm(${name}) # a domain's files
endfunction()

foreach(kind mpi rpc onesided)
  compat_by_hand(shell ${kind} 3 -i default -r p3rt)
endforeach()
if(NOT P3_SANITIZE AND NOT P3_VALGRIND)
  compat_by_hand(mpirun onesided 2 -i bridge -r cnos)
endif()
p3_quick(compat_mpi_2 compat_rpc_4_cray compat_rpc_shell_3 compat_onesided_shell_3)
p3_with_tsan(compat_mpi_2 compat_rpc_4_cray compat_mpi_shell_3 compat_rpc_shell_3
  compat_onesided_shell_3)
