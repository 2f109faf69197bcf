# NCCL is found, never assumed: CAPO_NCCL=AUTO builds gpu/nccl where nccl.h is, beside CUDA, ON insists, OFF leaves it out.
# `capo run --transport nccl` loads the library when it is asked for; nothing is linked with NCCL.

set(CAPO_HAVE_NCCL OFF)
if(CAPO_HAVE_CUDA AND NOT CAPO_NCCL STREQUAL "OFF")
  find_package(CUDAToolkit REQUIRED)
  # The toolkit of some distributions has it, and so has PyPI's wheel nvidia-nccl-cu13 (nvidia/nccl/include).
  find_path(CAPO_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} $ENV{NCCL_HOME}/include)
  if(CAPO_NCCL_INCLUDE)
    set(CAPO_HAVE_NCCL ON)
  endif()
endif()
if(CAPO_NCCL STREQUAL "ON" AND NOT CAPO_HAVE_NCCL)
  message(FATAL_ERROR "CAPO_NCCL=ON, but CUDA or nccl.h was not found; set CAPO_NCCL_INCLUDE to the header's folder")
endif()
message(STATUS "NCCL: ${CAPO_HAVE_NCCL}")
