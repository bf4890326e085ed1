# The limits of all tests, in seconds by the clock, so long that no load reaches them: a test
# that passes never waits for them.  Inner ones are shorter than outer ones, so that the
# message comes first that says most.
set(P3_TEST_WAIT 120 CACHE STRING "seconds until a wait inside of a test fails")
set(wait ${P3_TEST_WAIT})
if(P3_SANITIZE OR P3_VALGRIND OR P3_FAULTS OR P3_LONG OR P3_GASNET_WHOLE)
  math(EXPR wait "${wait} * 3") # slower, or much more to do
endif()
math(EXPR P3_JOB_LIMIT "${wait} * 8")    # of a process: yod's --timeout
math(EXPR P3_TEST_LIMIT "${wait} * 10")  # after which tests/support/bounded ends a test
math(EXPR P3_CTEST_LIMIT "${wait} * 20")  # with the wait for a turn, as a last resort
set(P3_LIMITS P3_WAIT=${wait} P3_LIMIT=${P3_JOB_LIMIT}) # for a test's environment
