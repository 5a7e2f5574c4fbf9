# What `cmake --install` puts where: bin/muster, the worker library's headers and archives, and what
# finds them: find_package(muster) with the targets muster::comm and muster::train, or pkg-config
# with muster-comm and muster-train. The launcher and the library are components of their own
# (--component launcher, --component development).

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(MUSTER_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/muster)

install(TARGETS muster RUNTIME COMPONENT launcher)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT launcher)

install(DIRECTORY src/nccl/include/muster DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT development)
install(TARGETS muster_comm muster_train EXPORT muster
  ARCHIVE COMPONENT development
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT muster NAMESPACE muster:: FILE muster-targets.cmake
  DESTINATION ${MUSTER_PACKAGE_DIR} COMPONENT development)

# Gloo is a library that the program links; of CUDA and NCCL the archive knows only the headers.
set(MUSTER_HAS_GLOO OFF)
if(TARGET gloo)
  set(MUSTER_HAS_GLOO ON)
endif()
configure_package_config_file(cmake/muster-config.cmake.in muster-config.cmake
  INSTALL_DESTINATION ${MUSTER_PACKAGE_DIR})
# Before 1.0 another minor version may be another interface.
write_basic_package_version_file(muster-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
    ${PROJECT_BINARY_DIR}/muster-config.cmake ${PROJECT_BINARY_DIR}/muster-config-version.cmake
  DESTINATION ${MUSTER_PACKAGE_DIR} COMPONENT development)

# The way from the .pc file to the prefix, so that the tree can be moved.
file(RELATIVE_PATH MUSTER_PC_PREFIX
  /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
if(MUSTER_HAS_GLOO)
  set(MUSTER_PC_GLOO -lgloo)
endif()
foreach(name comm train)
  configure_file(cmake/muster-${name}.pc.in muster-${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/muster-${name}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()
