/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_image.c - this program as an image: a tar (POSIX ustar) of it, of the
 * libraries that it has loaded, by the names that it asked for them, and of
 * their loader, which is called by name, so that nothing has to be where it is
 * here.
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmd/prove.h"
#include "cmd/prove_engine.h"

#define TAR_BLOCK 512
#define IMAGE_DIR "prove"

struct tar_head {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8];
	char type, link[100], magic[8], rest[247];
};
_Static_assert(sizeof(struct tar_head) == TAR_BLOCK, "a block");

/* @len bytes more, of zeroes. */
static char *room(struct image *image, size_t len)
{
	char *at;

	if (image->len + len > image->cap) {
		size_t cap = 2 * (image->cap + len);
		char *data = realloc(image->data, cap);

		if (!data)
			return NULL;
		image->data = data;
		image->cap = cap;
	}
	at = image->data + image->len;
	memset(at, 0, len);
	image->len += len;
	return at;
}

static size_t blocks(size_t len)
{
	return (len + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}

/* Where its @len bytes go; NULL: out of memory. */
static char *add_file(struct image *image, const char *name, unsigned mode,
		      size_t len)
{
	struct tar_head head = { .type = '0',
				 .magic = "ustar\0"
					  "0" };
	unsigned sum = 0;
	char *at;

	head.magic[7] = '0';
	snprintf(head.name, sizeof(head.name), IMAGE_DIR "/%s", name);
	snprintf(head.mode, sizeof(head.mode), "%07o", mode);
	snprintf(head.uid, sizeof(head.uid), "%07o", 0U);
	snprintf(head.gid, sizeof(head.gid), "%07o", 0U);
	snprintf(head.size, sizeof(head.size), "%011zo", len);
	snprintf(head.mtime, sizeof(head.mtime), "%011o", 0U);
	memset(head.sum, ' ', sizeof(head.sum));
	for (size_t i = 0; i < sizeof(head); i++)
		sum += ((const unsigned char *)&head)[i];
	snprintf(head.sum, sizeof(head.sum), "%06o", sum);
	at = room(image, TAR_BLOCK + blocks(len));
	if (!at)
		return NULL;
	memcpy(at, &head, sizeof(head));
	return at + TAR_BLOCK;
}

static int add_path(struct image *image, const char *name, const char *path)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t done = 0, len;
	struct stat st;
	char *to;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	len = (size_t)st.st_size;
	to = add_file(image, name, 0755, len);
	if (!to)
		return -ENOMEM;
	while (done < len) {
		ssize_t n = read(fd, to + done, len - done);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

static int add_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *path = info->dlpi_name, *name = strrchr(path, '/');
	struct image *image = arg;

	(void)size;
	/* Ourselves, and what the kernel maps. */
	if (!name)
		return 0;
	name++;
	if (strncmp(name, "ld-", 3) == 0)
		snprintf(image->loader, sizeof(image->loader), "%s", name);
	return add_path(image, name, path);
}

int image_make(const struct prove_sheet *sheet, struct image *ret)
{
	struct image image = { 0 };
	int err = add_path(&image, "sallyport", "/proc/self/exe");
	char *at;

	if (!err)
		err = dl_iterate_phdr(add_library, &image);
	if (!err) {
		at = add_file(&image, "sheet", 0666, sizeof(*sheet));
		if (at)
			memcpy(at, sheet, sizeof(*sheet));
		/* It ends with two empty blocks. */
		err = at && room(&image, 2 * TAR_BLOCK) ? 0 : -ENOMEM;
	}
	if (err)
		image_free(&image);
	else
		*ret = image;
	return err;
}

void image_free(struct image *image)
{
	free(image->data);
	*image = (struct image){ 0 };
}

json_t *image_command(const struct image *image, const char *word)
{
	char loader[128];

	if (!*image->loader)
		return json_pack("[s,s,s]", "/" IMAGE_DIR "/sallyport",
				 "prove-inside", word);
	snprintf(loader, sizeof(loader), "/" IMAGE_DIR "/%s", image->loader);
	return json_pack("[s,s,s,s,s,s]", loader, "--library-path",
			 "/" IMAGE_DIR, "/" IMAGE_DIR "/sallyport",
			 "prove-inside", word);
}
