/* SPDX-License-Identifier: Apache-2.0
 *
 * init_blob.S - the sallyport-init executable, as data.
 */
	.section .rodata
	.balign 16
	.global launch_init_start
	.global launch_init_end
launch_init_start:
	.incbin SALLYPORT_INIT
launch_init_end:
	.byte 0
	.section .note.GNU-stack,"",%progbits
