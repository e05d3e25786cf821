# SPDX-License-Identifier: Apache-2.0
# How everything is compiled: the language, warnings, hardening, sanitizers.
option(SALLYPORT_SANITIZE "Build with AddressSanitizer and UBSan" OFF)
option(SALLYPORT_FUZZ "Build the fuzzers with libFuzzer (clang only)" OFF)
option(SALLYPORT_WERROR "Treat warnings as errors" ON)

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
if(NOT CMAKE_BUILD_TYPE)
	set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

add_compile_definitions(_GNU_SOURCE SALLYPORT_VERSION="${PROJECT_VERSION}")
add_compile_options(-Wall -Wextra -Wconversion -Wshadow -Wvla
	-Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
	-fno-strict-aliasing -fstack-protector-strong
	-ffunction-sections -fdata-sections)
if(SALLYPORT_WERROR)
	add_compile_options(-Werror)
endif()
add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack,--as-needed,--gc-sections)

include(CheckCCompilerFlag)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)
foreach(flag -fcf-protection=full -fstack-clash-protection)
	string(MAKE_C_IDENTIFIER "HAVE${flag}" var)
	check_c_compiler_flag(${flag} ${var})
	if(${var})
		add_compile_options($<$<COMPILE_LANGUAGE:C>:${flag}>)
	endif()
endforeach()

set(SANITIZE_FLAGS -fsanitize=address,undefined -fno-omit-frame-pointer
	-fno-sanitize-recover=undefined)
if(SALLYPORT_SANITIZE OR SALLYPORT_FUZZ)
	add_compile_options(${SANITIZE_FLAGS})
	add_compile_definitions(SALLYPORT_SANITIZED)
	add_link_options(${SANITIZE_FLAGS})
elseif(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
	add_compile_options($<$<COMPILE_LANGUAGE:C>:-U_FORTIFY_SOURCE>
		$<$<COMPILE_LANGUAGE:C>:-D_FORTIFY_SOURCE=3>)
endif()
