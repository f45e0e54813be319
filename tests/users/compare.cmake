# Runs a program of tests/users and compares what it prints with what is expected:
#   cmake -DPROGRAM=... -DEXPECTED=FILE.txt -P compare.cmake
# Lines on stderr that begin with "clnet: " are warnings of traps: FILE.warnings has those that are meant to come, in their order.
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE printed ERROR_VARIABLE complained RESULT_VARIABLE result)
file(READ ${EXPECTED} expected)
string(REGEX MATCHALL "clnet: [^\n]*\n" warnings "${complained}")
string(REPLACE ".txt" ".warnings" warnings_file ${EXPECTED})
set(expected_warnings "")
if(EXISTS ${warnings_file})
  file(READ ${warnings_file} text)
  string(REGEX MATCHALL "clnet: [^\n]*\n" expected_warnings "${text}")
endif()
if(NOT result EQUAL 0 OR NOT printed STREQUAL expected OR NOT warnings STREQUAL expected_warnings)
  message(FATAL_ERROR "${PROGRAM} ended with ${result}\nexpected:\n${expected}\nprinted:\n${printed}\nwarnings expected:\n${expected_warnings}\nand as errors:\n${complained}")
endif()
