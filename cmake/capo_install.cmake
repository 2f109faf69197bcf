# What `cmake --install` puts where, for find_package(capo): the program, the libraries with all their
# headers under include/capo, and a package file that lists them.
#
#   find_package(capo 0.1 REQUIRED COMPONENTS testing testing_gtest)
#   target_link_libraries(mine PRIVATE capo::testing_gtest)
#
# Without components capo::core, capo::schedules, capo::sim, capo::optimise and capo::run. Engines for devices are the program's own.

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
if(TARGET capo_mpi)
  install(TARGETS capo_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/capo)
endif()
# The program prints its own manual pages and completions, so they are made when it is installed.
install(CODE "
  set(share \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\")
  set(man \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man1\")
  set(bash \"\${share}/bash-completion/completions/capo\")
  set(zsh \"\${share}/zsh/site-functions/_capo\")
  set(fish \"\${share}/fish/vendor_completions.d/capo.fish\")
  file(MAKE_DIRECTORY \"\${man}\")
  execute_process(COMMAND \"$<TARGET_FILE:capo>\" man --pages \"\${man}\" COMMAND_ERROR_IS_FATAL ANY)
  foreach(shell bash zsh fish)
    cmake_path(GET \${shell} PARENT_PATH folder)
    file(MAKE_DIRECTORY \"\${folder}\")
    execute_process(COMMAND \"$<TARGET_FILE:capo>\" completion \${shell}
                    OUTPUT_FILE \"\${\${shell}}\" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
")
capo_install(libraries core schedules sim optimise run)
capo_install_headers(core schedules sim optimise run)
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

# `cpack` in the build folder makes a Debian package of all that.
if(PROJECT_IS_TOP_LEVEL)
  set(CPACK_GENERATOR DEB)
  set(CPACK_PACKAGE_NAME capo-orders)
  set(CPACK_PACKAGE_CONTACT "the authors of capo")
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SECTION devel)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  include(CPack)
endif()
