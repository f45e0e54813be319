# Runs a program of tests/users and compares what it prints with what is expected:
#   cmake -DPROGRAM=... -DEXPECTED=FILE.txt -P compare.cmake
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE printed ERROR_VARIABLE complained RESULT_VARIABLE result)
file(READ ${EXPECTED} expected)
if(NOT result EQUAL 0 OR NOT printed STREQUAL expected)
  message(FATAL_ERROR "${PROGRAM} ended with ${result}\nexpected:\n${expected}\nprinted:\n${printed}\nand as errors:\n${complained}")
endif()
