# Everything at once, for a long time; hostile neighbours; manners.
add_library(stress_streams STATIC streams.c)
target_link_libraries(stress_streams PUBLIC mp_common p3_build)
target_include_directories(stress_streams PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/tests)

# soak_program(name sources...)
function(soak_program name)
  add_executable(stress_${name} ${ARGN})
  target_link_libraries(stress_${name} PRIVATE stress_streams)
  if(P3_SANITIZE)
    target_compile_definitions(stress_${name} PRIVATE P3_SANITIZED)
  endif()
endfunction()

soak_program(soak soak.c)

# soak_job(name nodes program arguments...)
function(soak_job name nodes program)
  p3_add_test(stress_${name} stress $<TARGET_FILE:yod> -sz ${nodes}
    --timeout ${P3_JOB_LIMIT} $<TARGET_FILE:stress_${program}> ${ARGN})
endfunction()

soak_job(soak 4 soak --seconds 4)
set_tests_properties(stress_soak PROPERTIES PROCESSORS 2)

# Hostile nodes, which use the library's internals.
add_executable(stress_hostile hostile.c honest_cci.c attack.c lifeline.c streams.c ../mp/mp.c)
target_link_libraries(stress_hostile PRIVATE portals_static p3_build)
target_include_directories(stress_hostile PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/tests)

# soak_driver(name script arguments...)
function(soak_driver name script)
  p3_add_test(stress_${name} stress ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${ARGN})
  set_property(TEST stress_${name} APPEND PROPERTY ENVIRONMENT
    "STRESS_BIN=${CMAKE_CURRENT_BINARY_DIR}" "MP_BIN=${CMAKE_CURRENT_BINARY_DIR}/../mp"
    PTL3_HUGEPAGES=off)
endfunction()

soak_driver(hostile_lanes hostile.sh lanes 4 "[023]" 3)
soak_driver(hostile_host hostile.sh lanes 4 "[023]" 3)
set_property(TEST stress_hostile_host APPEND PROPERTY ENVIRONMENT PTL3_MATCH=host:0,2,3)
p3_matrix_sanitized(stress_hostile_host)
soak_driver(hostile_lifeline hostile.sh lifeline 10 "[012]" 1)
if(NOT P3_SANITIZE AND NOT P3_VALGRIND) # more lives, and sleepers, whose doorbells count
  soak_driver(hostile_park hostile.sh lanes 4 "[023]" 3)
  set_property(TEST stress_hostile_park APPEND PROPERTY ENVIRONMENT PTL3_MODE=park)
  p3_matrix(stress_hostile_park)
endif()
if(NOT P3_FUZZ) # whose preset builds the fuzzers only
  set_property(TEST stress_hostile_lanes stress_hostile_lifeline APPEND PROPERTY LABELS fuzz)
endif()

add_executable(stress_stranger stranger.c)
target_link_libraries(stress_stranger PRIVATE p3_build)
soak_driver(stranger stranger.sh)
p3_dev_shm(stress_stranger)

soak_program(manners manners.c)
foreach(scene signals forks closed moved pinned far) # storm: by manners.sh alarms
  soak_job(${scene} 3 manners ${scene})
endforeach()
# jemalloc takes more locks before a fork than the search for deadlocks has room for.
set_property(TEST stress_forks APPEND PROPERTY ENVIRONMENT
  TSAN_OPTIONS=halt_on_error=1:detect_deadlocks=0:suppressions=${CMAKE_SOURCE_DIR}/tests/support/tsan.supp)
# swept_job(name scene setting options...)
function(swept_job name scene setting)
  p3_add_test(stress_${name} stress $<TARGET_FILE:yod> -sz 2 --keep-going --timeout ${P3_JOB_LIMIT}
    ${ARGN} $<TARGET_FILE:stress_manners> ${scene})
  set_property(TEST stress_${name} APPEND PROPERTY ENVIRONMENT ${setting})
endfunction()
# ThreadSanitizer reports descriptors that the program closes under the library as a
# race.
if(NOT P3_SANITIZE MATCHES thread)
  foreach(mode lease dedicated park)
    swept_job(swept_${mode} swept PTL3_MODE=${mode})
    swept_job(swept_one_${mode} replaced PTL3_MODE=${mode})
  endforeach()
endif()
# AddressSanitizer reports the stack that a cancelled thread has left as its own error.
if(NOT P3_SANITIZE AND NOT P3_VALGRIND)
  # Of the tools' shadow memory all pages would be locked.
  soak_job(locked 2 manners locked)
  set_tests_properties(stress_locked PROPERTIES SKIP_RETURN_CODE 77)
  soak_job(stack 3 manners stack)
  soak_job(cancel 3 manners cancel)
  foreach(mode lease dedicated park)
    foreach(scene cancel refused)
      soak_job(${scene}_${mode} 3 manners ${scene})
      set_property(TEST stress_${scene}_${mode} APPEND PROPERTY ENVIRONMENT PTL3_MODE=${mode})
    endforeach()
  endforeach()
  set_tests_properties(stress_refused_lease stress_refused_dedicated stress_refused_park
    PROPERTIES SKIP_RETURN_CODE 77)
  soak_job(cancel_fences 3 manners cancel)
  set_property(TEST stress_cancel_fences APPEND PROPERTY ENVIRONMENT PTL3_MEMBARRIER=off)
endif()

soak_program(ends ends.c)
# A node whose library has another layout word.
add_executable(stress_other_build ../mp/life.c ../mp/mp.c ${CMAKE_SOURCE_DIR}/lib/job/yod.c
  ${CMAKE_SOURCE_DIR}/lib/node/member.c
  ${CMAKE_SOURCE_DIR}/nic/run/nic.c ${CMAKE_SOURCE_DIR}/nic/proto/peer.c)
target_compile_options(stress_other_build PRIVATE
  -include ${CMAKE_CURRENT_SOURCE_DIR}/other_layout.h)
target_include_directories(stress_other_build PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(stress_other_build PRIVATE portals_static p3_build)
foreach(case ends builds alarms)
  soak_driver(${case} manners.sh ${case})
endforeach()
add_executable(stress_loader loader.c)
target_link_libraries(stress_loader PRIVATE p3_build ${CMAKE_DL_LIBS})
if(P3_SANITIZE)
  target_compile_definitions(stress_loader PRIVATE P3_SANITIZED)
endif()
if(P3_SANITIZE OR P3_VALGRIND)
  p3_add_test(stress_loader stress $<TARGET_FILE:stress_loader> $<TARGET_FILE:portals> 40)
else()
  p3_add_test(stress_loader stress $<TARGET_FILE:stress_loader> $<TARGET_FILE:portals> 1000)
endif()
