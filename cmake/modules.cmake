# SPDX-License-Identifier: Apache-2.0
# One library a folder; one test program a module.
find_package(PkgConfig REQUIRED)
pkg_check_modules(EVENT REQUIRED IMPORTED_TARGET libevent)
pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libcrypto)
pkg_check_modules(CARES REQUIRED IMPORTED_TARGET libcares)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(NFTNL REQUIRED IMPORTED_TARGET libnftnl)
pkg_check_modules(MNL REQUIRED IMPORTED_TARGET libmnl)
pkg_check_modules(IDN2 REQUIRED IMPORTED_TARGET libidn2)
pkg_check_modules(SECCOMP REQUIRED IMPORTED_TARGET libseccomp)
pkg_check_modules(CAPNG REQUIRED IMPORTED_TARGET libcap-ng)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(PSL REQUIRED IMPORTED_TARGET libpsl)

# Dynamic linking is a third of the time of a short session, which executes us
# three times. So the program carries those libraries that the system has as an
# archive; its tests do not (libssl.so brings its own libcrypto.so), but for those
# of what only the archive has.
set(static_default ON)
if(SALLYPORT_SANITIZE OR SALLYPORT_FUZZ)
	set(static_default OFF)
endif()
option(SALLYPORT_STATIC_LIBS "Carry libraries inside the binary where possible"
	${static_default})

set(name $<TARGET_PROPERTY:NAME>)
string(CONCAT carries "$<OR:$<STREQUAL:${name},sallyport>,"
	"$<STREQUAL:${name},bench_ledger>,"
	"$<STREQUAL:${name},audit_test_sha_pair>,"
	"$<STREQUAL:${name},audit_test_writer>>")

# sallyport_carry(PACKAGE ARCHIVE...): instead of the shared PkgConfig::PACKAGE;
# all of them, or none.
function(sallyport_carry package)
	set(archives)
	foreach(archive ${ARGN})
		string(MAKE_C_IDENTIFIER "SALLYPORT_${archive}" var)
		find_library(${var} NAMES ${archive} HINTS ${${package}_LIBDIR})
		mark_as_advanced(${var})
		if(NOT ${var})
			return()
		endif()
		list(APPEND archives ${${var}})
	endforeach()
	get_target_property(shared PkgConfig::${package}
		INTERFACE_LINK_LIBRARIES)
	set_target_properties(PkgConfig::${package} PROPERTIES
		INTERFACE_LINK_LIBRARIES
		"$<IF:${carries},${archives},${shared}>")
	set(SALLYPORT_CARRIES_${package} ON PARENT_SCOPE)
endfunction()

if(SALLYPORT_STATIC_LIBS)
	sallyport_carry(EVENT libevent.a)
	sallyport_carry(CRYPTO libcrypto.a)
	# Nothing that must be there asks for it (audit/sha_pair.c).
	set_target_properties(PkgConfig::CRYPTO PROPERTIES
		INTERFACE_LINK_OPTIONS
		"$<${carries}:LINKER:-u,sha256_multi_block>")
	sallyport_carry(CARES libcares.a)
	sallyport_carry(YAML libyaml.a)
	sallyport_carry(NFTNL libnftnl.a)
	sallyport_carry(MNL libmnl.a)
	sallyport_carry(CAPNG libcap-ng.a)
	sallyport_carry(JANSSON libjansson.a)
	sallyport_carry(IDN2 libidn2.a libunistring.a)
	sallyport_carry(PSL libpsl.a libidn2.a libunistring.a)
endif()

# sallyport_library(NAME DEPS...): every .c file of this folder.
function(sallyport_library name)
	file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c
		${CMAKE_CURRENT_SOURCE_DIR}/sniff/*.c)
	if(NOT sources)
		file(WRITE ${CMAKE_BINARY_DIR}/empty.c "")
		set(sources ${CMAKE_BINARY_DIR}/empty.c)
	endif()
	add_library(sp_${name} STATIC ${sources})
	target_include_directories(sp_${name} PUBLIC ${PROJECT_SOURCE_DIR})
	target_link_libraries(sp_${name} PUBLIC ${ARGN})
endfunction()

# sallyport_tests(LIBS...): each test_*.c of this folder is one cmocka program
# and one ctest.
function(sallyport_tests)
	file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/test_*.c)
	get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
	foreach(source ${tests})
		get_filename_component(test ${source} NAME_WE)
		set(target ${folder}_${test})
		add_executable(${target} ${source})
		target_link_libraries(${target} PRIVATE ${ARGN} cmocka)
		set_target_properties(${target} PROPERTIES
			RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
		add_test(NAME ${folder}/${test} COMMAND ${target})
		set_tests_properties(${folder}/${test} PROPERTIES TIMEOUT 120)
	endforeach()
endfunction()
