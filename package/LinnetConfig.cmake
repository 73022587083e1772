# find_package(Linnet): the targets Linnet::linnet (shared), Linnet::linnet_static and Linnet::speech (voices), of those that are
# installed. With Linnet_STATIC set before, Linnet::speech brings the static library.
include(CMakeFindDependencyMacro)
find_dependency(Threads)

get_filename_component(_linnet_lib "${CMAKE_CURRENT_LIST_DIR}" REALPATH)
get_filename_component(_linnet_lib "${_linnet_lib}/../.." ABSOLUTE)
find_path(Linnet_INCLUDE_DIR linnet.h HINTS "${_linnet_lib}/../include" "${_linnet_lib}/../../include" NO_DEFAULT_PATH)
mark_as_advanced(Linnet_INCLUDE_DIR)
if(NOT Linnet_INCLUDE_DIR)
  set(Linnet_FOUND FALSE)
  set(Linnet_NOT_FOUND_MESSAGE "linnet.h is not beside ${_linnet_lib}")
  return()
endif()

function(_linnet_target name type file)
  if(NOT TARGET Linnet::${name} AND EXISTS "${_linnet_lib}/${file}")
    add_library(Linnet::${name} ${type} IMPORTED)
    set_target_properties(Linnet::${name} PROPERTIES IMPORTED_LOCATION "${_linnet_lib}/${file}"
      INTERFACE_INCLUDE_DIRECTORIES "${Linnet_INCLUDE_DIR}" INTERFACE_LINK_LIBRARIES "${ARGN}")
  endif()
endfunction()

_linnet_target(linnet SHARED liblinnet.so)
_linnet_target(linnet_static STATIC liblinnet.a Threads::Threads m)
if(TARGET Linnet::linnet AND NOT Linnet_STATIC)
  _linnet_target(speech STATIC liblinnet-speech.a Linnet::linnet Threads::Threads m)
else()
  _linnet_target(speech STATIC liblinnet-speech.a Linnet::linnet_static)
endif()
unset(_linnet_lib)
