# cmake -DCOMPILER=c++ -DINCLUDE=folder -DSOURCE=file -P check.cmake: fails unless the compiler refuses the file with the words that its first
# line expects.
cmake_minimum_required(VERSION 3.25)
file(STRINGS ${SOURCE} first LIMIT_COUNT 1)
string(REGEX REPLACE "^// refused: " "" expected "${first}")
execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C ${COMPILER} -std=c++20 -fsyntax-only -I ${INCLUDE} ${SOURCE} ERROR_VARIABLE said RESULT_VARIABLE result)
if(result EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles")
elseif(NOT said MATCHES "${expected}")
  message(FATAL_ERROR "${SOURCE} is refused for another reason than '${expected}':\n${said}")
endif()
