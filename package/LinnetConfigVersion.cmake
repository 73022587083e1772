# Of versions 0.x one minor version does not take the place of another: docs/install.md.
set(PACKAGE_VERSION "@VERSION@")
string(REGEX MATCH "^[0-9]+\\.[0-9]+" _linnet_minor "${PACKAGE_VERSION}")
if("${PACKAGE_FIND_VERSION}" VERSION_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
if("${PACKAGE_FIND_VERSION_MAJOR}.${PACKAGE_FIND_VERSION_MINOR}" VERSION_EQUAL _linnet_minor AND
   NOT PACKAGE_VERSION VERSION_LESS "${PACKAGE_FIND_VERSION}")
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
unset(_linnet_minor)
