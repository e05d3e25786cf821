# SPDX-License-Identifier: Apache-2.0
# What is installed where, and the Debian package (cpack -G DEB).
include(GNUInstallDirs)
set(deploy ${PROJECT_SOURCE_DIR}/deploy)
set(packed ${PROJECT_BINARY_DIR}/package)

# sallyport_pack(FILE DIR [NAME]): FILE below DIR, as Debian wants it: packed,
# without the time of packing.
function(sallyport_pack file dir)
	get_filename_component(name ${file} NAME)
	if(ARGC GREATER 2)
		set(name ${ARGV2})
	endif()
	set(out ${packed}/${dir}/${name}.gz)
	get_filename_component(folder ${out} DIRECTORY)
	file(MAKE_DIRECTORY ${folder})
	add_custom_command(OUTPUT ${out}
		COMMAND sh -c "gzip -9nc '${file}' >'${out}'"
		DEPENDS ${file} VERBATIM)
	set_property(GLOBAL APPEND PROPERTY sallyport_packed ${out})
	install(FILES ${out} DESTINATION ${dir})
endfunction()

install(TARGETS sallyport RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
file(GLOB pages CONFIGURE_DEPENDS ${deploy}/man/*.[1-9])
foreach(page ${pages})
	string(REGEX REPLACE ".*\\." "" section ${page})
	sallyport_pack(${page} ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
sallyport_pack(${deploy}/debian/changelog ${CMAKE_INSTALL_DOCDIR})
install(FILES ${deploy}/debian/lintian-overrides
	DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides RENAME sallyport)
install(FILES ${deploy}/debian/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
file(GLOB texts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/*.md)
foreach(text ${PROJECT_SOURCE_DIR}/README.md ${texts})
	sallyport_pack(${text} ${CMAKE_INSTALL_DOCDIR})
endforeach()
get_property(all GLOBAL PROPERTY sallyport_packed)
add_custom_target(packed_files ALL DEPENDS ${all})

install(DIRECTORY ${deploy}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${deploy}/kubernetes
	DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(DIRECTORY ${deploy}/devcontainer USE_SOURCE_PERMISSIONS
	DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(FILES ${deploy}/policy.schema.json
	DESTINATION ${CMAKE_INSTALL_DATADIR}/sallyport)
install(FILES ${deploy}/apparmor/sallyport
	DESTINATION ${CMAKE_INSTALL_DATADIR}/sallyport/apparmor)
install(FILES ${deploy}/completion/sallyport.bash
	DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
	RENAME sallyport)
install(FILES ${deploy}/completion/_sallyport
	DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
# Not LIBDIR: these are not of an architecture.
file(GLOB units CONFIGURE_DEPENDS ${deploy}/systemd/*.service
	${deploy}/systemd/*.socket)
install(FILES ${units} DESTINATION lib/systemd/system)
install(FILES ${deploy}/systemd/sysusers.conf
	DESTINATION lib/sysusers.d RENAME sallyport.conf)

file(STRINGS ${deploy}/debian/changelog first LIMIT_COUNT 1)
if(NOT first MATCHES "^sallyport \\(([^)]+)\\)" OR
   NOT CMAKE_MATCH_1 STREQUAL PROJECT_VERSION)
	message(FATAL_ERROR "deploy/debian/changelog is not of version "
		"${PROJECT_VERSION}: ${first}")
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME sallyport)
set(CPACK_PACKAGE_CONTACT "sallyport maintainers <maintainers@sallyport.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE
	OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "bubblewrap, systemd | systemd-standalone-sysusers | systemd-sysusers")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "publicsuffix")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${deploy}/debian/postinst
	${deploy}/debian/prerm ${deploy}/debian/postrm)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"only way out of a sandbox: to allowed hosts, and recorded
Runs code that nobody trusts (a coding agent, a CI job, a package installer)
in a sandbox that reaches the hosts of a policy, and no others. Names are
resolved by the gate; each question, connection and request is recorded
before a byte leaves, in a signed log that outsiders can verify.

It works as an ordinary user, as a daemon with many sandboxes, as a network
driver of Docker, and inside a container that already has its network.")
include(CPack)
