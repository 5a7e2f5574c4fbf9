# The libraries muster is built from, all from the distribution. libuv, llhttp, OpenSSL,
# zlib and RE2 are linked in, so that the binary runs on a machine that has none of them.

find_package(Threads REQUIRED)

find_path(UV_INCLUDE uv.h REQUIRED)
find_library(UV_STATIC NAMES libuv_a.a libuv.a REQUIRED)
add_library(uv_static STATIC IMPORTED)
set_target_properties(uv_static PROPERTIES
  IMPORTED_LOCATION ${UV_STATIC}
  INTERFACE_INCLUDE_DIRECTORIES ${UV_INCLUDE}
  INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS}")

# Where the distribution has libllhttp use it; Debian 12 has only the generated sources, which
# node-llhttp carries.
find_library(LLHTTP_STATIC NAMES libllhttp.a)
find_path(LLHTTP_INCLUDE llhttp.h PATHS /usr/include /usr/share/include/llhttp REQUIRED)
if(LLHTTP_STATIC)
  add_library(llhttp STATIC IMPORTED)
  set_target_properties(llhttp PROPERTIES IMPORTED_LOCATION ${LLHTTP_STATIC}
    INTERFACE_INCLUDE_DIRECTORIES ${LLHTTP_INCLUDE})
else()
  file(GLOB LLHTTP_SOURCES /usr/share/llhttp/*.c)
  if(NOT LLHTTP_SOURCES)
    message(FATAL_ERROR "llhttp: no library and no sources; install libllhttp-dev or node-llhttp")
  endif()
  add_library(llhttp STATIC ${LLHTTP_SOURCES})
  target_include_directories(llhttp SYSTEM PUBLIC ${LLHTTP_INCLUDE})
endif()

find_package(nlohmann_json REQUIRED)

find_path(OPENSSL_INCLUDE openssl/ssl.h REQUIRED)
find_library(CRYPTO_STATIC NAMES libcrypto.a REQUIRED)
find_library(SSL_STATIC NAMES libssl.a REQUIRED)
add_library(openssl_crypto STATIC IMPORTED)
set_target_properties(openssl_crypto PROPERTIES
  IMPORTED_LOCATION ${CRYPTO_STATIC}
  INTERFACE_INCLUDE_DIRECTORIES ${OPENSSL_INCLUDE}
  INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS}")
add_library(openssl_ssl STATIC IMPORTED)
set_target_properties(openssl_ssl PROPERTIES
  IMPORTED_LOCATION ${SSL_STATIC}
  INTERFACE_LINK_LIBRARIES openssl_crypto)

find_path(ZLIB_INCLUDE zlib.h REQUIRED)
find_library(ZLIB_STATIC NAMES libz.a REQUIRED)
add_library(zlib_static STATIC IMPORTED)
set_target_properties(zlib_static PROPERTIES
  IMPORTED_LOCATION ${ZLIB_STATIC}
  INTERFACE_INCLUDE_DIRECTORIES ${ZLIB_INCLUDE})

find_path(RE2_INCLUDE re2/re2.h REQUIRED)
find_library(RE2_STATIC NAMES libre2.a REQUIRED)
add_library(re2_static STATIC IMPORTED)
set_target_properties(re2_static PROPERTIES
  IMPORTED_LOCATION ${RE2_STATIC}
  INTERFACE_INCLUDE_DIRECTORIES ${RE2_INCLUDE}
  INTERFACE_LINK_LIBRARIES Threads::Threads)

# elfutils: other processes' stacks.
find_path(DW_INCLUDE elfutils/libdwfl.h REQUIRED)
find_library(DW_STATIC NAMES libdw.a REQUIRED)
find_library(ELF_STATIC NAMES libelf.a REQUIRED)
find_library(LZMA_STATIC NAMES liblzma.a REQUIRED)
find_library(BZ2_STATIC NAMES libbz2.a REQUIRED)
find_library(ZSTD_STATIC NAMES libzstd.a)
add_library(dw_static STATIC IMPORTED)
set_target_properties(dw_static PROPERTIES
  IMPORTED_LOCATION ${DW_STATIC}
  INTERFACE_INCLUDE_DIRECTORIES ${DW_INCLUDE}
  INTERFACE_LINK_LIBRARIES
    "${ELF_STATIC};zlib_static;${LZMA_STATIC};${BZ2_STATIC};$<$<BOOL:${ZSTD_STATIC}>:${ZSTD_STATIC}>;Threads::Threads;${CMAKE_DL_LIBS}")
