# What `cmake --install` puts where, for find_package(capo): the program, the libraries with all their
# headers under include/capo, and a package file that lists them.
#
#   find_package(capo 0.1 REQUIRED COMPONENTS testing testing_gtest)
#   target_link_libraries(mine PRIVATE capo::testing_gtest)
#
# Without components capo::core, capo::schedules, capo::sim and capo::run. Engines for devices are the program's own.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(CAPO_PACKAGE_FOLDER ${CMAKE_INSTALL_LIBDIR}/cmake/capo)

# capo_install(<set> <targets>): in the set of that name, which find_package() can be asked for.
function(capo_install set)
  list(TRANSFORM ARGN PREPEND capo_)
  install(TARGETS ${ARGN} EXPORT capo-${set})
  install(EXPORT capo-${set} NAMESPACE capo:: DESTINATION ${CAPO_PACKAGE_FOLDER})
endfunction()

# capo_install_headers(<parts>): found as they are in the tree, <capo/core/order/schedule.h>.
function(capo_install_headers)
  foreach(part IN LISTS ARGN)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${part} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/capo
            FILES_MATCHING PATTERN "*.h")
  endforeach()
endfunction()

install(TARGETS capo)
capo_install(libraries core schedules sim run)
capo_install_headers(core schedules sim run)
if(TARGET capo_testing)
  capo_install(testing testing oracle)
  capo_install(testing_gtest testing_gtest)
  capo_install_headers(testing)
endif()

write_basic_package_version_file(${PROJECT_BINARY_DIR}/capo-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/capo-config.cmake
              ${PROJECT_BINARY_DIR}/capo-config-version.cmake
        DESTINATION ${CAPO_PACKAGE_FOLDER})
