# MPI is found, never assumed: CAPO_MPI=AUTO builds the module of run/mpi where a library is, ON insists, OFF leaves it
# out. `capo run --transport mpi` loads it; nothing is linked with MPI.

set(CAPO_HAVE_MPI OFF)
if(NOT CAPO_MPI STREQUAL "OFF")
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    set(CAPO_HAVE_MPI ON)
  elseif(CAPO_MPI STREQUAL "ON")
    message(FATAL_ERROR "CAPO_MPI=ON, but no MPI was found; install openmpi-bin and libopenmpi-dev, or set MPI_HOME")
  endif()
endif()
message(STATUS "MPI module: ${CAPO_HAVE_MPI}")
