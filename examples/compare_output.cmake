# cmake -DEXPECTED=<file> -P compare_output.cmake -- <command>: runs the command, which has to succeed
# and to print what the file holds. Measured times count as N, and capo's headers lie in no folder.

set(command "")
set(after_dashes OFF)
foreach(i RANGE ${CMAKE_ARGC})
  if(after_dashes AND i LESS CMAKE_ARGC)
    list(APPEND command "${CMAKE_ARGV${i}}")
  elseif("${CMAKE_ARGV${i}}" STREQUAL "--")
    set(after_dashes ON)
  endif()
endforeach()

execute_process(COMMAND ${command} OUTPUT_VARIABLE printed ERROR_VARIABLE printed RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "exit code ${code}:\n${printed}")
endif()
string(REGEX REPLACE "(capture|instantiate|upload|replay|launch|eager) [0-9]+" "\\1 N" printed "${printed}")
string(REGEX REPLACE "[^ \n]*/(capo/[a-z/_]+\\.h)" "\\1" printed "${printed}")
file(READ "${EXPECTED}" expected)
if(NOT printed STREQUAL expected)
  message(FATAL_ERROR "expected, from ${EXPECTED}:\n${expected}\nprinted:\n${printed}")
endif()
